"""Robustness on test data: what a perturbation computed from the training data does to points that were not in them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from brittle.nets.two_layer import TwoLayer
from brittle.probes.margin import along
from brittle.probes.radius import attacked


@dataclass(frozen=True)
class OnPoints:
    """What the training data's z, and single attacks, do to some points of which the labels are known."""

    points: int
    accuracy: float
    flipped: float  # share that z flips at the size that flips the margin set, a wrong point counts as flipped
    flipped_twice: float  # at twice that size
    c: float  # the smallest size at which z flips all of them
    radius: float  # attacked, of the median point
    radius_over_norm: float  # the same relative to the norm of each point


def on_points(net: TwoLayer, c: float, z: Tensor, x: Tensor, y: Tensor) -> OnPoints:
    """Follow z, which flips the margin set at size c, on other points; float64."""  # (d,), (n, d), (n,)
    moved, radius = along(net, x, y, z), attacked(net, x, y, z)
    at_c, at_twice = moved.flipped(x.new_tensor([c, 2 * c])).tolist()
    return OnPoints(
        points=len(y),
        accuracy=float((y * net(x[None])[0] > 0).double().mean()),
        flipped=at_c,
        flipped_twice=at_twice,
        c=moved.all_at_once(),
        radius=float(radius.median()),
        radius_over_norm=float((radius / x.norm(dim=1)).median()),
    )
