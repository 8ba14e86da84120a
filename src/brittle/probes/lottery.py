"""The lottery tickets of FP Definition B.1: which neurons are lucky in which words before training.

At the beginning the bias is b0 = √c₁ σ0 √log d (Phase I.1 of Appendix C), which gives c₁. Neuron i is potentially lucky
in word j, i ∈ S_pot, where ⟨w_i, M_j⟩² ≥ (c₁ - c₂) σ0² log d; and surely, i ∈ S_sure, where ⟨w_i, M_j⟩ has the sign of
w*_j, its square is at least (c₁ + c₂) σ0² log d, and i is potentially lucky in no other word.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

GAP = 0.1  # c₂/c₁: the paper's is a constant in (0, 0.1)


@dataclass(frozen=True)
class Tickets:
    """The two sets, for every neuron and word."""

    pot: Tensor  # (m, D) bool
    sure: Tensor  # (m, D) bool


def tickets(w: Tensor, dictionary: Tensor, w_star: Tensor, b0: float, gap: float = GAP) -> Tickets:
    """Find the lucky neurons among those with these initial weights; w_star's signs are the words' own."""
    signed = (w @ dictionary) * w_star.sign()  # (m, d), (d, D), (D,) -> (m, D)
    low, high = (b0 * math.sqrt(1 + side * gap) for side in (-1, 1))  # √(c₁ ∓ c₂) σ0 √log d
    pot = signed.abs() >= low
    return Tickets(pot, (signed >= high) & (pot.sum(1, keepdim=True) == 1))
