"""The decision boundary in the plane of two features (SB Fig 3(c)): does the label change along the second?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.probes.randomised import evaluate


@dataclass(frozen=True)
class Boundary:
    """Scores on a grid of feature i (of S) × feature j (outside), with the other features of real samples.

    The samples are not averaged: an average would hide where the boundary depends on the other features.
    """

    ticks: Tensor  # (side,) the values of either feature
    scores: Tensor  # (b, side, side) for each sample, at each value of i, along the values of j

    @property
    def labels(self) -> Tensor:
        """Whether the label is positive."""  # (b, side, side) bool
        return self.scores > 0

    @property
    def changes(self) -> float:
        """The share of grid points whose label differs from the majority on their line along j; at most 1/2."""
        positive = self.labels.double().mean(2)  # (b, side)
        return float(positive.minimum(1 - positive).mean())

    @property
    def mixed(self) -> float:
        """The share of the lines along j that have both labels: the strict form of `changes`."""
        return float((self.labels.any(2) & ~self.labels.all(2)).double().mean())


def grid(
    f: Callable[[Tensor], Tensor],
    bases: Tensor,
    q: Tensor,
    i: int,
    j: int,
    side: int,
    low: float = -1.0,
    high: float = 1.0,
) -> Boundary:
    """Scores where features i and j of each base take every pair of values. An even `side` leaves out the middle.

    That matters where the boundary is u_i = 0, as for a linear feature: on it, labels are decided by rounding.
    """  # (b, d), (d, d)
    ticks = torch.linspace(low, high, side, dtype=bases.dtype, device=bases.device)
    plane = q[[i, j]]  # (2, d)
    points = torch.cartesian_prod(ticks, ticks) @ plane  # (side², d)
    others = bases - bases @ plane.T @ plane
    values = torch.stack([evaluate(f, base + points) for base in others])
    return Boundary(ticks, values.unflatten(1, (side, side)))
