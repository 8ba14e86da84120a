"""Networks built by hand: the robust one of VYS Thm 3.1, and its bias-free counterpart of §5.1."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.nets.two_layer import TwoLayer


def largest_cosine(x: Tensor) -> float:
    """max_{i≠j} |⟨x_i, x_j⟩| / d, for samples of norm √d: the c of Thm 3.1."""  # (m, d)
    gram = (x @ x.T).abs()
    return float(gram.fill_diagonal_(0.0).max()) / x.shape[1]


def thm31(x: Tensor, y: Tensor) -> TwoLayer:
    """One neuron per sample, v_j = y_j, w_j = 2x_j / (d(1-c)), b_j = -(1+c)/(1-c): only neuron i is active at x_i."""
    # (m, d), (m,) -> one network of width m
    d, c = x.shape[1], largest_cosine(x)
    w = 2 * x / (d * (1 - c))
    return TwoLayer(w=w[None], b=torch.full_like(y, -(1 + c) / (1 - c))[None], v=y[None])


def thm31_bound(x: Tensor) -> float:
    """The radius that Thm 3.1 guarantees, (1-c)/4 · √d. Its proof uses only half of what the network achieves."""
    return (1 - largest_cosine(x)) / 4 * x.shape[1] ** 0.5


def without_biases(x: Tensor, y: Tensor) -> TwoLayer:
    """§5.1's N': w'_j = x_j / d, b' = 0, v' = y. Its margin is larger than in Thm 3.1, but it is far less robust."""
    return TwoLayer(w=(x / x.shape[1])[None], b=torch.zeros_like(y)[None], v=y[None])
