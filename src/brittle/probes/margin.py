"""The samples on the margin, and how little it takes to flip them all (VYS §6)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from brittle.attacks.line import Crossings, crossings
from brittle.attacks.universal import z_direction
from brittle.nets.two_layer import TwoLayer


class NotSeparated(Exception):
    """A network with a training sample wrong has no margin."""


def on_margin(outputs: Tensor, slack: float) -> Tensor:
    """The samples whose output y_i N(x_i) is at most `slack` times the smallest."""  # (m,) -> (m,) bool
    return outputs <= slack * outputs.min()


def along(net: TwoLayer, x: Tensor, y: Tensor, u: Tensor) -> Crossings:
    """Where a single network changes its mind about x_i - y_i c u, as c grows."""  # (m, d), (m,), (d,)
    return crossings(net.preactivations(x[None])[0], net.w[0] @ u, net.v[0], y)


@dataclass(frozen=True)
class MarginProbe:
    outputs: Tensor  # (m,) y_i N(x_i)
    margin: Tensor  # (m,) bool, the set I
    z: Crossings  # of the samples of I, along z = Σ_I y_i x_i
    random: Crossings  # and along a random direction, for comparison

    @property
    def c(self) -> float:
        """The smallest size at which z flips every sample of I: the y-axis of VYS Fig 1."""
        return self.z.all_at_once()

    @property
    def random_at_c(self) -> float:
        """The share of I that the random direction flips at the same size."""
        return float(self.random.flipped(self.outputs.new_tensor([self.c])))


def probe(net: TwoLayer, x: Tensor, y: Tensor, slack: float, random: Tensor) -> MarginProbe:
    """Everything the headline experiment measures on one network; float64."""  # (m, d), (m,), (d,)
    outputs = y * net(x[None])[0]
    if not bool((outputs > 0).all()):
        raise NotSeparated(f"{int((~(outputs > 0)).sum())} of {len(y)} training samples are wrong")
    margin = on_margin(outputs, slack)
    xi, yi = x[margin], y[margin]
    return MarginProbe(
        outputs=outputs,
        margin=margin,
        z=along(net, xi, yi, z_direction(xi, yi)),
        random=along(net, xi, yi, random / random.norm()),
    )
