"""Certified radii of FP §3's thresholded model, and the threshold that certifies the most samples."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.core.device import sqrt
from brittle.nets.threshold import Thresholded


def certified(model: Thresholded, x: Tensor, y: Tensor, multipliers: int = 60) -> Tensor:
    """A radius within which nothing flips the model, by duality; 0 where it is wrong already.

    With t the coefficients times the label, r² = min Σ_j (s_j - t_j)² subject to Σ_j |w*_j| soft(s_j, b) ≤ 0, which for
    every λ ≥ 0 is at least Σ_j min_s (s - t_j)² + λ |w*_j| soft(s, b): word by word, exactly.
    """  # (n, d), (n,) -> (n,)
    t = y[:, None].double() * model.coefficients(x).double()
    weight, b = model.w_star.abs().double(), model.b
    inside = (t.clamp(-b, b) - t).square()  # where soft is 0
    top = 4 * float(t.abs().max() + b)
    best = torch.zeros_like(t[:, 0])
    for lam in torch.logspace(-4, 0, multipliers, dtype=t.dtype) * top:
        pull = lam * weight
        above, below = (t - pull / 2).clamp(min=b), (t - pull / 2).clamp(max=-b)
        value = torch.minimum((above - t).square() + pull * (above - b), (below - t).square() + pull * (below + b))
        best = best.maximum(torch.minimum(value, inside).sum(1))
    return sqrt(best)


def fitted(dictionary: Tensor, w_star: Tensor, x: Tensor, y: Tensor, radius: float, k: int) -> Thresholded:
    """The model whose threshold, as a share of 1/√k, certifies the most samples."""
    shares = torch.arange(1, 20) / 20
    models = [Thresholded(dictionary, w_star, float(share) / k**0.5) for share in shares]
    return max(models, key=lambda model: float((certified(model, x, y) > radius).double().mean()))
