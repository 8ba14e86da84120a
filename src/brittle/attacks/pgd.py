"""Projected gradient descent on y f(x + δ) (Madry et al. 2018), for any network that torch can differentiate."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from brittle.attacks.pieces import NORMS


def pgd(
    f: Callable[[Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    norm: str,
    eps: float | Tensor,
    steps: int,
    step_size: float | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """The δ with the lowest y f(x + δ) seen in the ball of radius ε, given once for all samples or once for each.

    f: (n, d) -> (n,) scores, each of its own sample only. step_size: relative to ε; the default 2.5/steps reaches
    across the ball.
    """  # (n, d), (n,), () or (n,) -> (n, d)
    ball = NORMS[norm]
    # A number is filled in on the device: to copy it there is what a CUDA graph (train/graphs.py) cannot record.
    eps = (eps.to(x) if isinstance(eps, Tensor) else x.new_full((), eps)).expand(len(x))
    length = (2.5 / steps if step_size is None else step_size) * eps[:, None]
    delta = torch.zeros_like(x) if start is None else ball.project(start, eps)
    best, lowest = delta, torch.full_like(eps, torch.inf)
    for step in range(steps + 1):
        moved = delta.detach().requires_grad_(step < steps)
        with torch.set_grad_enabled(step < steps):
            scores = y * f(x + moved)
        lower = scores.detach() < lowest
        best, lowest = torch.where(lower[:, None], moved.detach(), best), lowest.minimum(scores.detach())
        if step < steps:
            (g,) = torch.autograd.grad(scores.sum(), moved)
            delta = ball.project(moved.detach() - length * ball.normalise(g), eps)
    return best
