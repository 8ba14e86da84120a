"""The smallest perturbation that PGD finds, for any network that torch can differentiate, in either norm.

It is an upper bound on the distance to the boundary. On depth-2 ReLU networks `nearest_boundary.py` does better in l2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.attacks.pgd import pgd

ORDERS = {"l2": 2.0, "linf": math.inf}
BACK = 20  # bisection steps on the way straight back to the sample: accurate to a millionth


@dataclass(frozen=True)
class Minimal:
    """Perturbations with y_i f(x_i + δ_i) ≤ 0."""

    delta: Tensor  # (n, d); 0 where nothing was found
    size: Tensor  # (n,) its norm; 0 where the sample is wrong as it is, ∞ where nothing was found


def minimal(
    f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, norm: str, high: float, steps: int, halvings: int
) -> Minimal:
    """The smallest ε ≤ high at which PGD succeeds, by bisection; each flip is pulled straight back to the boundary.

    Where nothing has been found yet, ε is halved all the same: in a smaller ball the steps are shorter and find what
    long steps jump over (a thin slab of the other label). Every second PGD run starts from the best δ so far, because
    the path from the sample alone may end at a part of the boundary that is further away.
    """  # (n, d), (n,) -> (n, d), (n,)
    with torch.no_grad():
        wrong = y * f(x) <= 0
    delta, size = torch.zeros_like(x), torch.where(wrong, 0.0, torch.full_like(y, torch.inf))
    low, eps = torch.zeros_like(size), torch.full_like(size, high)
    for halving in range(halvings + 1):
        tried = _back(f, x, y, pgd(f, x, y, norm, eps, steps, start=delta if halving % 2 else None))
        with torch.no_grad():
            flips = y * f(x + tried) <= 0
        reached = torch.where(flips, torch.linalg.vector_norm(tried, ORDERS[norm], dim=1), torch.inf)
        smaller = reached < size
        delta, size = torch.where(smaller[:, None], tried, delta), size.minimum(reached)
        low = torch.where(flips | size.isinf(), low, eps)
        eps = (low + torch.where(size.isinf(), eps, size)) / 2
    return Minimal(delta, size)


def _back(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, delta: Tensor) -> Tensor:
    """The smallest multiple of δ that still flips the sample, by bisection; δ where none does."""  # (n, d) -> (n, d)
    low, high = torch.zeros_like(y), torch.ones_like(y)
    with torch.no_grad():
        for _ in range(BACK):
            middle = (low + high) / 2
            flips = y * f(x + middle[:, None] * delta) <= 0
            low, high = torch.where(flips, low, middle), torch.where(flips, middle, high)
    return high[:, None] * delta
