"""How alike features are: FP §1's θ(w, w') = |⟨w, w'⟩|/(‖w‖ ‖w'‖), and the sums of Theorems 5.1(a) and 5.3(c)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize


def theta(w: Tensor, other: Tensor) -> Tensor:
    """θ between each neuron of w and the same neuron of `other`."""  # (m, d), (m, d) -> (m,)
    return cosine_similarity(w, other).abs()


def theta_pairs(w: Tensor, most: int = 1000) -> Tensor:
    """θ of each pair of different neurons, among the first `most` neurons."""  # (m, d) -> (pairs,)
    u = normalize(w[:most])
    i, j = torch.triu_indices(len(u), len(u), 1)
    return (u @ u.T).abs()[i, j]


def moved(w: Tensor, start: Tensor) -> float:
    """Σ⟨w_i, w_i⁰⟩² / Σ‖w_i‖² ‖w_i⁰‖²: 0 if every neuron is orthogonal to its start (Theorem 5.1(a))."""
    products = (w * start).sum(1).square().sum()
    return float(products / (w.square().sum(1) * start.square().sum(1)).sum())


def correlated(w: Tensor) -> float:
    """Σ_ij⟨w_i, w_j⟩² / (Σ‖w_i‖²)²: 1 if all are parallel, about 1/d if they are spread out (Theorem 5.1(a))."""
    return float((w.T @ w).square().sum() / w.square().sum().square())


def local(w: Tensor, after: Tensor) -> float:
    """Σ‖w_i - w'_i‖² / Σ‖w_i‖² (Theorem 5.3(c))."""
    return float((w - after).square().sum() / w.square().sum())


def turned(w: Tensor, after: Tensor) -> float:
    """The part of `local` that no rescaling of single neurons undoes: Σ‖w_i‖² sin²(w_i, w'_i) / Σ‖w_i‖²."""
    energy = w.square().sum(1)
    return float((energy * (1 - theta(w, after).square())).sum() / energy.sum())
