"""A ReLU network that is nowhere above a symmetric network of FP, and so certifies that network's robustness."""

from __future__ import annotations

import torch

from brittle.nets.symmetric import Symmetric, smoothed_relu
from brittle.nets.two_layer import TwoLayer


def from_below(net: Symmetric, shift: float = 2.0) -> TwoLayer:
    """A ReLU network N ≤ f everywhere, for certificates: since f is odd, N(y(x + δ)) > 0 proves that y f(x + δ) > 0.

    ReLU(u) ≤ R(u) ≤ ReLU(u + s) + R(-s) for every s ≥ 0: beyond -s the gap's slope is Φ - 1 < 0, before it Φ > 0.
    """
    s = shift * net.sigma
    over = float(smoothed_relu(torch.tensor(-s, dtype=torch.float64), net.sigma)[0])  # 0 if σ_ρ = 0
    w, m = net.w.double(), len(net.w)
    ones = w.new_ones(m)
    return TwoLayer(
        w=torch.cat([w, -w, torch.zeros_like(w[:1])])[None],
        b=torch.cat([-net.b * ones, (s - net.b) * ones, w.new_ones(1)])[None],
        v=torch.cat([ones, -ones, w.new_full((1,), -m * over)])[None],
    )
