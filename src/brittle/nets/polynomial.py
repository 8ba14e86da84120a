"""Odd polynomials in the dictionary's words, of constant degree (FP Corollary 5.7).

f(x) = Σ_j Σ_p v_jp (s⟨M_j, x⟩)^p for p = 1, 3, … They are told the dictionary, which a network has to find. There are
no even powers, because labels are odd, and no products of words, because labels are signs of a sum over words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.nets.family import Gradient, Loss, by_autograd


@dataclass(frozen=True, eq=False)  # comparing tensors does not give one bool
class Polynomial:
    dictionary: Tensor  # M (d, D)
    degree: int
    scale: float = 1.0  # s, such that features are of order 1
    hidden = ()
    dropout = 0.0

    @property
    def d(self) -> int:
        return len(self.dictionary)

    @property
    def powers(self) -> range:
        return range(1, self.degree + 1, 2)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [(len(self.powers) * self.dictionary.shape[1],)]

    def initial(self, rngs: Sequence[np.random.Generator]) -> Tensor:
        """0: the loss is convex in v."""  # (s, p)
        return self.dictionary.new_zeros(len(rngs), *self.shapes[0])

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        z = self.scale * (x @ self.dictionary)  # (s, n, D)
        features = torch.cat([z**power for power in self.powers], dim=2)
        return torch.bmm(features, theta.unsqueeze(2)).squeeze(2)

    def gradient(self, theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
        return by_autograd(self, theta, grad, loss)
