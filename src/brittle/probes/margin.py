"""The samples on the margin, and the smallest perturbation along z that flips them all (VYS §6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from brittle.attacks.line import Crossings, crossings
from brittle.attacks.universal import z_direction
from brittle.core.errors import BadInput
from brittle.nets.two_layer import TwoLayer


class NotSeparated(BadInput):
    """A network that misclassifies a training sample has no margin."""


def on_margin(outputs: Tensor, slack: float) -> Tensor:
    """The samples whose output y_i N(x_i) is at most `slack` times the smallest."""  # (m,) -> (m,) bool
    return outputs <= slack * outputs.min()


def along(net: TwoLayer, x: Tensor, y: Tensor, u: Tensor) -> Crossings:
    """Where a single network changes its label for x_i - y_i c u, as c grows."""  # (m, d), (m,), (d,)
    return crossings(net.preactivations(x[None])[0], net.w[0] @ u, net.v[0], y)


@dataclass(frozen=True)
class MarginProbe:
    outputs: Tensor  # (m,) y_i N(x_i)
    margin: Tensor  # (m,) bool, the set I
    z: Crossings  # of the samples of I, along z = Σ_I y_i x_i

    @property
    def c(self) -> float:
        """The smallest size at which z flips every sample of I: the y-axis of VYS Fig 1."""
        return self.z.all_at_once()


def probe(net: TwoLayer, x: Tensor, y: Tensor, slack: float) -> MarginProbe:
    """What VYS §6 measures on one network; float64."""  # (m, d), (m,)
    outputs = separated(net, x, y)
    margin = on_margin(outputs, slack)
    xi, yi = x[margin], y[margin]
    return MarginProbe(outputs, margin, along(net, xi, yi, z_direction(xi, yi)))


def separated(net: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    """The outputs y_i N(x_i), which must all be positive."""  # (m, d), (m,) -> (m,)
    outputs = y * net(x[None])[0]
    if not bool((outputs > 0).all()):
        wrong = f"{int((~(outputs > 0)).sum())} of {len(y)} training samples are wrong"
        raise NotSeparated(
            f"{wrong}, so there is no margin yet; lower the log10_target (or level) of this stage's section"
        )
    return outputs
