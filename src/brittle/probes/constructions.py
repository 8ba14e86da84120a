"""What VYS proves about hand-built networks: the robust one of Thm 3.1, and the worked example of §5.1."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from brittle.attacks.nearest_boundary import best
from brittle.nets.robust_construction import largest_cosine, thm31, thm31_bound, without_biases
from brittle.probes.certify import certified


@dataclass(frozen=True)
class Thm31:
    """Thm 3.1's network on one dataset; radii are those of the least robust sample."""

    cosine: float  # the theorem's c
    bound: float  # the radius that it promises
    smallest_output: float  # y N(x)
    certified: float
    exact: float  # share of the certificates that are tight
    attacked: float
    beaten: int  # samples attacked below their certificate


def robust_network(x: Tensor, y: Tensor) -> Thm31:
    """Certify the network of Thm 3.1 on its own data, and attack it."""  # (m, d), (m,) in float64
    net = thm31(x, y)
    radius, attack = certified(net, x, y), best(net, x, y)
    return Thm31(
        cosine=largest_cosine(x),
        bound=thm31_bound(x),
        smallest_output=float((y * net(x[None])[0]).min()),
        certified=float(radius.radius.min()),
        exact=float(radius.exact.double().mean()),
        attacked=float(attack.size.min()),
        beaten=int((attack.size < radius.radius).sum()),
    )


@dataclass(frozen=True)
class Example51:
    """How far the numbers are from what §5.1 says: N survives √d/2; ‖z‖ = 2√2 takes its bias-free twin N' to -1."""

    certified: float
    certified_error: float
    z_norm_error: float
    twin_error: float


def worked_example(x: Tensor, y: Tensor) -> Example51:
    """Both networks of §5.1 on d orthogonal samples, of which half are positive."""  # (d, d), (d,) in float64
    d = x.shape[1]
    biased, twin = thm31(x, y), without_biases(x, y)
    z = 4 / d * x[y < 0].sum(0)  # against every positive sample
    radius, after = certified(biased, x, y).radius, twin((x[y > 0] + z)[None])[0]
    return Example51(
        certified=float(radius.min()),
        certified_error=float((radius - math.sqrt(d) / 2).abs().max()),
        z_norm_error=abs(float(z.norm()) - 2 * math.sqrt(2)),
        twin_error=float((after + 1).abs().max()),
    )
