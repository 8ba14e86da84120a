"""VYS's title in one comparison: a trained network's robustness beside that of Thm 3.1's network on the same data."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from brittle.attacks.universal import z_direction
from brittle.nets.robust_construction import thm31, thm31_bound
from brittle.nets.two_layer import TwoLayer
from brittle.probes.certify import certified
from brittle.probes.radius import attacked


@dataclass(frozen=True)
class Comparison:
    """For each of n samples. The trained network's radius is bounded from above, the other's from below."""

    attacked: Tensor  # (n,) of the trained network
    certified: Tensor  # (n,) of Thm 3.1's
    bound: float  # what Thm 3.1 promises, (1-c)/4 · √d


def against_thm31(net: TwoLayer, x: Tensor, y: Tensor, samples: int) -> Comparison:
    """Attack the first `samples` training samples, and certify Thm 3.1's network on them; float64."""  # (m, d), (m,)
    xs, ys = x[:samples], y[:samples]
    above, below = attacked(net, xs, ys, z_direction(x, y)), certified(thm31(x, y), xs, ys).radius
    return Comparison(above, below, thm31_bound(x))
