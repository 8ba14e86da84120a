"""The networks of `deep.py` with σ(a)³ in place of σ(a): homogeneous, too, and twice continuously differentiable.

Theorems on the margins that optimisers with momentum maximise (Gronich & Vardi 2026) ask for smoothness, which ReLU
lacks.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from brittle.nets.deep import Deep

POWER = 3


@dataclass(frozen=True)
class SmoothDeep(Deep):
    """N(x) = W_L φ(W_{L-1} … φ(W_1 x + b)) with φ(a) = max(0, a)³."""

    @property
    def degree(self) -> int:
        """1 for the first layer; every later one takes the cube of what is below it, and adds its own weights."""
        degree = 1
        for _ in self.ws[1:]:
            degree = POWER * degree + 1
        return degree

    def after(self, a: Tensor) -> Tensor:
        """The output as a function of the first layer's preactivations."""
        for w in self.ws[1:]:  # (s, m, k_1) -> (s, m)
            a = a.relu().pow(POWER) @ w.transpose(1, 2)
        return a.squeeze(2)
