"""A network with powers of ReLU on clusters: what its neurons point at, and how far samples are from its boundary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from brittle.attacks.minimum_norm_pgd import minimal
from brittle.attacks.scan import first_flip
from brittle.nets.on_centres import class_sums, own_centres

STEPS, HALVINGS = 20, 8  # of PGD; twice as many steps make no radius shorter by more than a hundredth
POINTS = 200  # along z


@dataclass(frozen=True)
class Alignment:
    """Mean cosines of the neurons, weighted by |v_j| ‖w_j‖, what each contributes."""

    average: float  # with the average of the class that its v_j has the sign of
    centre: float  # with the nearest centre


def alignment(w: Tensor, v: Tensor, mu: Tensor, y: Tensor) -> Alignment:  # (m, d), (m,), (k, d), (k,)
    share = v.abs() * w.norm(dim=1)
    share, direction = share / share.sum(), normalize(w)
    positive, negative = (direction @ normalize(class_sums(mu, y, 1.0)[0]).T).T
    centre = (direction @ normalize(own_centres(mu, y)[0]).T).amax(1)
    return Alignment(float(share @ torch.where(v > 0, positive, negative)), float(share @ centre))


@dataclass(frozen=True)
class Flips:
    """The sizes at which fresh samples flip; 0 for those that are wrong as they are, ∞ where nothing was found."""

    nearest: Tensor  # (n,) by the smallest perturbation that PGD finds for each
    by_z: Tensor  # (n,) along z


def flips(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, z: Tensor, high: float) -> Flips:
    """Both, up to the size `high`."""  # (n, d), (n,), (d,)
    return Flips(minimal(f, x, y, "l2", high, STEPS, HALVINGS).size, first_flip(f, x, y, z, high, POINTS))


def halving(sizes: Tensor) -> float:
    """The smallest size at which no more than half of those that are right at first are still right."""  # (n,)
    right = sizes[sizes > 0].sort().values
    return float(right[(len(right) + 1) // 2 - 1]) if len(right) else 0.0
