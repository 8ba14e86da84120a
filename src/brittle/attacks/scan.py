"""Where a network of any kind first changes its label along a line, by a scan and bisection."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


@torch.no_grad()
def first_flip(
    f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, u: Tensor, high: float, points: int, halvings: int = 20
) -> Tensor:
    """The smallest c ≤ high with y_i f(x_i - y_i c u) ≤ 0, ∞ if none is seen.

    A sample that flips and flips back between two points of the scan is not seen. On depth-2 ReLU networks
    `line.py` finds every crossing exactly.
    """  # (n, d), (n,), (d,) -> (n,)
    along = -y[:, None] * u / u.norm()
    step = high / points

    def wrong(c: Tensor) -> Tensor:
        return y * f(x + c[:, None] * along) <= 0

    first = torch.where(wrong(torch.zeros_like(y)), 0.0, torch.full_like(y, torch.inf))
    for i in range(1, points + 1):
        at = torch.full_like(y, i * step)
        first = torch.where(first.isinf() & wrong(at), at, first)
    low, top = (first - step).clamp(min=0), first
    for _ in range(halvings):
        middle = (low + top) / 2
        flips = wrong(middle.nan_to_num(0.0, 0.0))
        low, top = torch.where(flips, low, middle), torch.where(flips, middle, top)
    return torch.where(first.isfinite(), top, first)
