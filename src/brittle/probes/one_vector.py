"""One vector for all samples: what the data alone predict about the universal perturbation that ascent finds (X1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.attacks import uap
from brittle.core.rng import rng
from brittle.probes.moments import Moment, moments
from brittle.worlds.common import World

SIZES = (
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
    1.25,
    1.5,
    2.0,
    2.5,
    3.0,
    4.0,
    6.0,
    8.0,
    12.0,
    16.0,
)  # the sizes in a curve, × the world's radius
BALLS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # the radii that ascent tries, × the world's radius
SAMPLES, STEPS = 250, 20  # the samples that ascent uses, and the steps it takes
MOST = 20_000  # samples from which the moments are computed, at most

Net = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Vector:
    """A direction to move every sample along, against its label."""

    name: str
    needs: str  # what must be known to compute it
    direction: Tensor  # (d,) of length 1
    told: bool = False  # the lowest moment that distinguishes the labels: it should predict the perturbation
    signed: bool = True  # else both signs are tried

    def cosine(self, other: Tensor) -> float:
        cosine = float(self.direction @ other)
        return cosine if self.signed else abs(cosine)

    def curve(self, f: Net, world: World) -> list[float]:
        """Accuracy on test samples at each of SIZES."""
        signs = (1.0,) if self.signed else (1.0, -1.0)
        return [
            min(
                uap.accuracy(f, world.x_test, world.y_test, sign * size * world.radius * self.direction)
                for sign in signs
            )
            for size in SIZES
        ]


def of_data(world: World) -> list[Vector]:
    """z = T_1 and, if it does not separate the labels, T_2, T_3, …, up to the first that does. No network needed."""
    x, y = world.x[:MOST], world.y[:MOST]
    found = moments(x, y, world.x_test, world.y_test, rng(0, "moments"))
    return [
        Vector(
            "z" if moment.degree == 1 else f"T{moment.degree}", "the data", moment.direction, moment.told, signed(found)
        )
        for moment in found
    ]


def signed(found: list[Moment]) -> bool:
    """Whether the sign matters: where labels show only in an even moment, a perturbation is as good as its opposite."""
    return found[-1].degree % 2 == 1


def random(world: World) -> Vector:
    noise = torch.from_numpy(rng(0, "one vector").standard_normal(world.x.shape[1])).to(world.x)
    return Vector("random", "nothing", noise / noise.norm())


def by_ascent(f: Net, world: World) -> Vector:
    """The universal perturbation in the smallest ball where it halves the accuracy; in the largest ball if in none.

    In a larger ball than needed, ascent spends the rest of the budget in arbitrary directions.
    """
    x, y = world.x[:SAMPLES], world.y[:SAMPLES]
    half = uap.accuracy(f, x, y, torch.zeros_like(x[0])) / 2
    for ball in BALLS:
        eps = ball * world.radius
        delta = uap.by_ascent(f, x, y, "l2", eps, eps / 5, STEPS, 1, len(x), rng(0, "one vector"))
        if uap.accuracy(f, x, y, delta) <= half:
            break
    return Vector("ascent", "the data and this network", delta / delta.norm().clamp(min=1e-12))


def halves_at(world: World, curve: list[float]) -> float:
    """The size at which the accuracy first falls to half, interpolated linearly between SIZES; ∞ if it never does."""
    sizes, accuracies = np.array(SIZES) * world.radius, np.array(curve)
    half = accuracies[0] / 2
    below = np.flatnonzero(accuracies <= half)
    if not len(below) or below[0] == 0:
        return float(sizes[0]) if len(below) else math.inf
    i = below[0]
    share = (accuracies[i - 1] - half) / (accuracies[i - 1] - accuracies[i])
    return float(sizes[i - 1] + share * (sizes[i] - sizes[i - 1]))
