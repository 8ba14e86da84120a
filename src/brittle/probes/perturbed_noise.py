"""Are perturbations features (Kumano, Kera, Yamasaki 2024)? Train on nothing but noise and a network's perturbations.

Noise points with random labels t are perturbed towards t, as a network asks for that was trained on other samples. A
second network learns (noise + δ, t): whatever it knows of those samples it knows from δ alone. A third one learns the
same noise without δ.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from brittle.attacks.pgd import pgd
from brittle.attacks.universal import z_direction
from brittle.nets.family import Members

STEPS, STEP = 20, 0.2  # of the attack; a step is this share of ε, as in the authors' code


def towards(net: Members, noise: Tensor, targets: Tensor, eps: float) -> Tensor:
    """The δ in the l2 ball that bring one network's scores nearest to the targets' side."""  # (n, d), (n,) -> (n, d)
    return pgd(lambda x: net(x[None])[0], noise, -targets, "l2", eps, STEPS, STEP)


@dataclass(frozen=True)
class Direction:
    """What perturbations have in common."""

    shared: float  # cosine of the mean t·δ with z = Σ y_i x_i of the samples that the network was trained on
    each: float  # the mean cosine of a single t·δ with it
    noise: float  # cosine of Σ t·noise with z: what chance gives


def direction(delta: Tensor, noise: Tensor, targets: Tensor, x: Tensor, y: Tensor) -> Direction:
    z, moves = z_direction(x, y), targets[:, None] * delta
    along = (moves.mean(0), z_direction(noise, targets))
    shared, chance = (float(cosine_similarity(each, z, dim=0)) for each in along)
    return Direction(shared, float(cosine_similarity(moves, z[None]).mean()), chance)


@torch.no_grad()
def agreement(a: Members, b: Members, x: Tensor) -> Tensor:
    """The share of its own points on which network r of `a` and network r of `b` agree."""  # (s, n, d) -> (s,)
    return ((a(x) > 0) == (b(x) > 0)).double().mean(1)
