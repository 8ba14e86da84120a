"""The linear classifier of FP §3, the simplest of the models there that no training makes robust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.nets.family import Gradient, Loss


@dataclass(frozen=True)
class Linear:
    """f(x) = ⟨v, x⟩; without a bias, because the labels sign⟨w*, z⟩ are odd and the distribution of x is even."""

    d: int
    hidden = ()
    dropout = 0.0

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [(1, self.d)]

    def initial(self, rngs: Sequence[np.random.Generator]) -> Tensor:
        """0: the loss is convex, so any other start would only add noise."""  # (s, d)
        return torch.zeros(len(rngs), self.d)

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        return torch.bmm(x, theta.unsqueeze(2)).squeeze(2)

    def gradient(self, theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
        def gradient(x: Tensor, y: Tensor, keep: Sequence[Tensor]) -> Tensor:
            value, slope = loss(y * self(theta, x))
            pull = slope * y / y.shape[1]  # (s, n) ∂/∂f of the mean loss
            torch.bmm(pull.unsqueeze(1), x, out=grad.unsqueeze(1))
            return value.mean(1)

        return gradient
