"""Universal perturbations of any network (SB §4.3, Fig 4): one δ for all samples, added against the label, x - y δ."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from brittle.attacks.pieces import NORMS

ROWS = 1 << 13  # samples evaluated at a time


def by_ascent(
    f: Callable[[Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    norm: str,
    eps: float,
    step: float,
    steps_per_batch: int,
    epochs: int,
    batch: int,
    rng: np.random.Generator,
) -> Tensor:
    """Lower the mean of y f(x - y δ) by projected steps of size `step`, in the units of x, batch after batch.

    It uses the mean score, not the loss: the gradient of a loss vanishes on samples that are confidently right, which
    are the ones to flip, and remains on those already flipped; that of the score weighs all alike and never underflows.
    Where the best length is shorter than ε (a shift from slab to slab), the rest of the budget goes to directions that
    hardly matter: then look at the `share` in a smaller ball.
    """  # (n, d), (n,) -> (d,)
    ball = NORMS[norm]
    delta, radius = torch.zeros_like(x[:1]), torch.full_like(x[:1, 0], eps)
    for _ in range(epochs):
        for rows in torch.from_numpy(rng.permutation(len(x))).to(x.device).split(batch):
            some, signs = x[rows], y[rows]
            for _ in range(steps_per_batch):
                moved = delta.detach().requires_grad_()
                score = (signs * f(some - signs[:, None] * moved)).mean()
                (g,) = torch.autograd.grad(score, moved)
                delta = ball.project(moved.detach() - step * ball.normalise(g), radius)
    return delta[0]


def by_svd(deltas: Tensor, y: Tensor) -> Tensor:
    """The unit direction that per-sample perturbations x_i + δ_i share most: their top right-singular vector.

    Its sign is the one for which the -y_i δ_i point along it on the whole.
    """  # (n, d), (n,) -> (d,)
    v = torch.linalg.svd(deltas, full_matrices=False).Vh[0]
    return torch.where(-(y @ deltas) @ v < 0, -v, v)


def share(delta: Tensor, q_s: Tensor) -> float:
    """The share of the budget, the squared l2 norm, that is spent on the features S."""  # (d,), (|S|, d)
    return float((q_s @ delta).square().sum() / delta.square().sum())


def accuracy(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, delta: Tensor) -> float:
    """The share of samples that f still labels correctly at x - y δ."""  # (n, d), (n,), (d,)
    with torch.no_grad():
        parts = zip(x.split(ROWS), y.split(ROWS), strict=True)
        right = sum(int((signs * f(some - signs[:, None] * delta) > 0).sum()) for some, signs in parts)
    return right / len(x)


def transfer(fs: Sequence[Callable[[Tensor], Tensor]], deltas: Sequence[Tensor], x: Tensor, y: Tensor) -> Tensor:
    """The accuracy of every network (column) under every perturbation (row)."""  # (n, d), (n,) -> (k, len(fs))
    return torch.tensor([[accuracy(f, x, y, delta) for f in fs] for delta in deltas], dtype=torch.float64)


def cosines(deltas: Sequence[Tensor]) -> Tensor:
    """The cosine between every two perturbations."""  # k of (d,) -> (k, k)
    units = torch.stack([delta / delta.norm() for delta in deltas])
    return units @ units.T
