"""Networks of one hidden layer without biases, of which only the input weights are trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from brittle.nets.family import Gradient, Loss, by_autograd, uniform


@dataclass(frozen=True)
class FixedOutput:
    """The network of SB Thm 1.

    f(x) = Σ_j v_j σ(w_j·x) with v_j = 1/√k for the first half of the k units and -1/√k for the other.
    """

    d: int
    units: int
    leak = 0.0  # the slope of σ below zero
    hidden = ()
    dropout = 0.0

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [(self.units, self.d)]

    def initial(self, rngs: Sequence[np.random.Generator]) -> Tensor:
        """w_ij ~ N(0, 1/(d k log⁴ d))."""  # (s, k · d)
        scale = 1 / (math.sqrt(self.d * self.units) * math.log(self.d) ** 2)
        draws = [rng.standard_normal(self.units * self.d) for rng in rngs]
        return torch.from_numpy(scale * np.stack(draws)).float()

    def weights(self, theta: Tensor) -> Tensor:
        return theta.unflatten(1, (self.units, self.d))  # (s, k, d)

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        a = torch.bmm(x, self.weights(theta).transpose(1, 2))  # (s, n, k)
        h = leaky_relu(a, self.leak).unflatten(2, (2, -1)).sum(3)  # (s, n, 2)
        return (h[..., 0] - h[..., 1]) / math.sqrt(self.units)

    def gradient(self, theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
        return by_autograd(self, theta, grad, loss)


@dataclass(frozen=True)
class LeakyFixedOutput(FixedOutput):
    """The same with leaky ReLUs, from PyTorch's own initial weights (Kumano, Kera, Yamasaki 2024)."""

    leak: float = 0.01  # PyTorch's default

    def initial(self, rngs: Sequence[np.random.Generator]) -> Tensor:
        """w_ij ~ U[±1/√d]."""  # (s, k · d)
        return uniform(rngs, [(self.d, (self.units, self.d))])
