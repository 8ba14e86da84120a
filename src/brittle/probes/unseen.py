"""A network trained on clusters, on fresh samples of them: one vector of the training data, and attacks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.attacks.line import Crossings
from brittle.attacks.universal import z_direction
from brittle.nets.robust_construction import thm31
from brittle.nets.two_layer import TwoLayer
from brittle.probes.margin import along
from brittle.probes.radius import attacked
from brittle.probes.within_span import certified_within_span

FLIPPED = 0.99  # the share of the samples that z is to flip


@dataclass(frozen=True)
class Samples:
    x: Tensor  # (n, d)
    y: Tensor  # (n,)


@dataclass(frozen=True)
class Unseen:
    """What fresh samples say of a network, and of Thm 3.1's network on the centres."""

    accuracy: float
    c: float  # the smallest size at which z flips 99 % of them, a wrong one counts as flipped; ∞ if none does
    c_train: float  # the same of the training samples
    random_at_c: float  # the share that a random direction of that size flips
    attacked: float  # radius of the trained network, from above, in the median
    robust_accuracy: float  # accuracy of Thm 3.1's network on the centres
    certified: float  # its radius, from below, in the median
    ratio: float  # certified over attacked, sample by sample, in the median

    curve: dict[str, Tensor]  # by direction, the share flipped at each of the sizes that were asked for


def unseen(
    net: TwoLayer, seen: Samples, fresh: Samples, centres: Samples, few: int, u: Tensor, sizes: Tensor
) -> Unseen:
    """Measure a single network; float64. few: fresh samples that are attacked and certified; u: a random direction."""
    z = z_direction(seen.x, seen.y)
    by_z, by_u = (along(net, fresh.x, fresh.y, direction) for direction in (z, u / u.norm()))
    c = size_for(by_z, FLIPPED)
    x, y = fresh.x[:few], fresh.y[:few]
    robust = thm31(centres.x, centres.y)
    radius, proved = attacked(net, x, y, z), certified_within_span(robust, x, y).radius
    return Unseen(
        accuracy=accuracy(net, fresh),
        c=c,
        c_train=size_for(along(net, seen.x, seen.y, z), FLIPPED),
        random_at_c=float(by_u.flipped(sizes.new_tensor([c]))) if math.isfinite(c) else math.nan,
        attacked=float(radius.median()),
        robust_accuracy=accuracy(robust, fresh),
        certified=float(proved.median()),
        ratio=float((proved / radius).median()),
        curve={"z": by_z.flipped(sizes), "random": by_u.flipped(sizes)},
    )


def accuracy(net: TwoLayer, at: Samples) -> float:
    return float((at.y * net(at.x[None])[0] > 0).double().mean())


def size_for(moved: Crossings, share: float) -> float:
    """The smallest size at which this share of the samples is flipped; ∞ if there is none."""
    sizes = torch.cat([moved.c.new_zeros(1), moved.c]).sort().values
    enough = sizes[moved.flipped(sizes) >= share]
    return float(enough[0]) if len(enough) else math.inf
