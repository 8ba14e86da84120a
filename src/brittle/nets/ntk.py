"""The neural tangent kernel of FP Definition 5.5: a linear model in the weight derivatives of the symmetric network.

The derivatives are taken at random weights w_i:
p(x) = Σ_i ⟨x, v_i⟩ s_i with s_i = E_ρ(1[⟨w_i, x⟩ + ρ ≥ b] + 1[-⟨w_i, x⟩ + ρ ≥ b]), the slopes g'(⟨w_i, x⟩).
The plus sign is Fact A.1's. Definition 5.5 prints a minus, with which p would be even, and its sign independent of the
labels, which are odd.
As p(x) = ⟨x, Vᵀ s(x)⟩, neither it nor its gradients need the (n, m, d) features. At b = 0 every s_i is 1, and p is
linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from brittle.nets.family import Gradient, Loss
from brittle.nets.symmetric import ROOT, odd


@dataclass(frozen=True, eq=False)  # comparing tensors does not give one bool
class Ntk:
    w: Tensor  # (m, d) fixed; the paper's are N(0, I)
    b: float
    sigma: float  # σ_ρ
    hidden = ()
    dropout = 0.0

    @property
    def d(self) -> int:
        return self.w.shape[1]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(self.w.shape)]

    def initial(self, rngs: Sequence[np.random.Generator]) -> Tensor:
        """0: the loss is convex in v."""  # (s, m · d)
        return self.w.new_zeros(len(rngs), self.w.numel())

    def weights(self, theta: Tensor) -> Tensor:
        return theta.unflatten(1, self.w.shape)  # (s, m, d)

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        return _Scores.apply(self.weights(theta), x, self)

    def slopes(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """⟨w_i, x⟩ and s_i."""  # (s, n, d) -> (s, n, m) twice
        a = x @ self.w.T
        return a, odd(a, self.b, self.sigma)[1]

    def curvature(self, a: Tensor) -> Tensor:
        """s' = (φ((a - b)/σ) - φ((-a - b)/σ))/σ, for φ the standard normal density; at σ = 0 the steps are flat."""
        if self.sigma == 0:
            return torch.zeros_like(a)
        up, down = (((side - self.b) / self.sigma).square_().mul_(-0.5).exp_() for side in (a, -a))
        return up.sub_(down).mul_(ROOT / self.sigma)

    def gradient(self, theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
        v, g_v = self.weights(theta), self.weights(grad)

        def gradient(x: Tensor, y: Tensor, keep: Sequence[Tensor]) -> Tensor:
            _, s = self.slopes(x)
            value, slope = loss(y * (x * torch.bmm(s, v)).sum(2))
            pull = slope * y / y.shape[1]  # (s, n) ∂/∂p of the mean loss
            torch.bmm(s.transpose(1, 2), x * pull.unsqueeze(2), out=g_v)
            return value.mean(1)

        return gradient

    def to(self, target: torch.device | torch.dtype) -> Ntk:
        """The model on another device, or in another precision."""
        return replace(self, w=self.w.to(target))


class _Scores(torch.autograd.Function):
    """p as an autograd function, for attacks: ∇_x p = Vᵀ s + Σ_i ⟨x, v_i⟩ s_i' w_i and ∇_{v_i} p = s_i x."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, v: Tensor, x: Tensor, net: Ntk) -> Tensor:
        a, s = net.slopes(x)
        mixed = torch.bmm(s, v)  # (s, n, d) Vᵀ s
        ctx.net = net
        ctx.save_for_backward(v, x, a, s, mixed)
        return (x * mixed).sum(2)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (v, x, a, s, mixed), g = ctx.saved_tensors, grads[0].unsqueeze(2)  # (s, n, 1)
        by_v = by_x = None
        if ctx.needs_input_grad[0]:
            by_v = torch.bmm(s.transpose(1, 2), x * g)
        if ctx.needs_input_grad[1]:
            by_x = g * (mixed + (torch.bmm(x, v.transpose(1, 2)) * ctx.net.curvature(a)) @ ctx.net.w)
        return by_v, by_x, None
