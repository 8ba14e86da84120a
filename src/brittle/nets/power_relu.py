"""Two-layer networks with powers of ReLU (Min and Vidal 2024), whose neurons turn towards single clusters.

f_p(x) = Σ_j v_j σ(w_j·x)^p / ‖w_j‖^(p-1) = Σ_j v_j ‖w_j‖ σ(cos)^p ‖x‖^p: whatever the power, f_p is homogeneous of
degree 2 in the weights, and p = 1 is the ReLU network without biases. (`prelu` is another thing: the parametric ReLU,
whose slope below zero is learnt.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.core.rng import normal32
from brittle.nets.family import Gradient, Loss, split, uniform

TINY = 1e-30  # instead of a norm of 0


def cosines(w: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """σ(w_j·x_i)/‖w_j‖ and the norms."""  # (…, k, d), (…, n, d) -> (…, n, k), (…, 1, k)
    norm = w.norm(dim=-1).clamp(min=TINY).unsqueeze(-2)
    return (x @ w.transpose(-1, -2)).relu() / norm, norm


def scores(w: Tensor, v: Tensor, x: Tensor, p: float) -> Tensor:
    """f_p(x_i)."""  # (…, k, d), (…, k), (…, n, d) -> (…, n)
    along, norm = cosines(w, x)
    return (along**p * (v.unsqueeze(-2) * norm)).sum(-1)


@dataclass(frozen=True)
class PowerRelu:
    """f_p(x) = Σ_j v_j σ(w_j·x)^p / ‖w_j‖^(p-1), no biases."""

    d: int
    width: int
    p: float
    std: float | None = None  # of all initial weights; None: PyTorch's default initialisation
    hidden = ()
    dropout = 0.0

    def _layers(self) -> list[tuple[int, tuple[int, ...]]]:
        return [(self.d, (self.width, self.d)), (self.width, (self.width,))]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [shape for _, shape in self._layers()]

    def initial(self, rngs: Sequence[np.random.Generator]) -> Tensor:
        if self.std is None:
            return uniform(rngs, self._layers())
        return self.std * torch.from_numpy(np.stack([normal32((self.width * (self.d + 1),), rng) for rng in rngs]))

    def weights(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """W and v."""  # (s, p) -> (s, k, d), (s, k)
        w, v = split(theta, self.shapes)
        return w, v

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        return scores(*self.weights(theta), x, self.p)

    def gradient(self, theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
        """∂f/∂v_j = h_j and ∂f/∂w_j = v_j (p r_j^(p-1) x - (p-1) h_j w_j/‖w_j‖²).

        r_j = σ(w_j·x)/‖w_j‖ and h_j = ‖w_j‖ r_j^p.
        """
        (w, v), (g_w, g_v) = self.weights(theta), self.weights(grad)

        def gradient(x: Tensor, y: Tensor, keep: Sequence[Tensor]) -> Tensor:
            r, norm = cosines(w, x)  # (s, n, k), (s, 1, k)
            power = r ** (self.p - 1)
            h = norm * r * power
            value, slope = loss(y * (h @ v.unsqueeze(2)).squeeze(2))
            pull = (slope * y / y.shape[1]).unsqueeze(1)  # (s, 1, n) ∂/∂f of the mean loss
            torch.sum(pull.transpose(1, 2) * h, 1, out=g_v)
            back = torch.where(r > 0, power, 0.0) * pull.transpose(1, 2) * (self.p * v).unsqueeze(1)
            shrink = (self.p - 1) * v * g_v / norm.squeeze(1) ** 2
            g_w.copy_(back.transpose(1, 2) @ x - shrink.unsqueeze(2) * w)
            return value.mean(1)

        return gradient
