"""How far samples are from the boundary of a depth-2 network, from above: by short descents, for many networks."""

from __future__ import annotations

from torch import Tensor

from brittle.attacks.nearest_boundary import minimum
from brittle.nets.two_layer import TwoLayer

# From the gradient and from z, 20 steps each. On networks of d = 100 and m = d^½ … d^1.2 no radius was longer by more
# than 2e-4 than by the best of all attacks (PGD, and 50 steps from four starts), which takes 20 times as long.
STEPS, RESTARTS = 20, 0


def attacked(net: TwoLayer, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """The size of the smallest perturbation found for each sample, 0 where it is wrong already; float64."""
    # (m, d), (m,), (d,) -> (m,)
    return minimum(net, x, y, STEPS, RESTARTS, z=z).size
