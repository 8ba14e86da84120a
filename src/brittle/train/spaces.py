"""Two coordinate systems for the first layer of a depth-2 network under gradient descent.

Write x̃ = (x, 1) and w̃ = (w, b), so that a bias is one more weight and the preactivations are a = x̃ w̃ᵀ. A gradient step
moves w̃ along gᵀ x̃, where g = ∂/∂a; the preactivations then move along x̃ x̃ᵀ g, *linearly* in the step. So a step
search needs no matrix product at all, only `a + t·da`, and one step costs:

- WeightSpace, θ = w̃ᵀ: two products, x̃ᵀ g and x̃ (x̃ᵀ g): 4 m d k operations;
- GramSpace, w̃ᵀ = w̃₀ᵀ + x̃ᵀ θ (the weights never leave span(initial weights, data)): one, (x̃ x̃ᵀ) g: 2 m² k operations.

The second is cheaper for m < 2d.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from brittle.nets.two_layer import TwoLayer


class Space(Protocol):
    """Coordinates θ of s first layers."""

    origin: Tensor  # (s, n, k), θ of the initial network

    def preactivations(self, theta: Tensor) -> Tensor:
        """a at θ."""  # (s, n, k) -> (s, m, k)
        ...

    def direction(self, g: Tensor, da: Tensor) -> tuple[Tensor, Tensor]:
        """The steepest direction for a pull g on the preactivations: how θ moves, and the squared length of its w̃.

        How the preactivations move with it is written to da.
        """  # (s, m, k), (s, m, k) -> (s, n, k), (s,)
        ...

    def network(self, theta: Tensor, v: Tensor) -> TwoLayer: ...


def with_bias(x: Tensor) -> Tensor:
    """x̃ = (x, 1)."""  # (s, m, d) -> (s, m, d + 1)
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=2)


def joined(net: TwoLayer) -> Tensor:
    """w̃ᵀ, one column per neuron."""  # (s, d + 1, k)
    return torch.cat([net.w, net.b.unsqueeze(2)], dim=2).transpose(1, 2).contiguous()


def split(w: Tensor, v: Tensor) -> TwoLayer:
    """The network with first layer w̃ᵀ."""
    return TwoLayer(w=w[:, :-1].transpose(1, 2).contiguous(), b=w[:, -1].contiguous(), v=v)


def dot(a: Tensor, b: Tensor) -> Tensor:
    """⟨a, b⟩ of each network, without writing all the products."""  # (s, …), (s, …) -> (s,)
    return torch.stack([torch.dot(*pair) for pair in zip(a.flatten(1), b.flatten(1), strict=True)])


class WeightSpace:
    def __init__(self, x: Tensor, net: TwoLayer) -> None:
        self.x = with_bias(x)
        self.origin = joined(net)
        self.step = torch.empty_like(self.origin)  # memory that is kept

    def preactivations(self, theta: Tensor) -> Tensor:
        return self.x @ theta

    def direction(self, g: Tensor, da: Tensor) -> tuple[Tensor, Tensor]:
        torch.bmm(self.x.transpose(1, 2), g, out=self.step)
        torch.bmm(self.x, self.step, out=da)
        return self.step, dot(self.step, self.step)

    def network(self, theta: Tensor, v: Tensor) -> TwoLayer:
        return split(theta, v)


class GramSpace:
    def __init__(self, x: Tensor, net: TwoLayer) -> None:
        self.x = with_bias(x)
        self.gram = self.x @ self.x.transpose(1, 2)
        self.w0 = joined(net)
        self.a0 = self.x @ self.w0
        self.origin = torch.zeros_like(self.a0)

    def preactivations(self, theta: Tensor) -> Tensor:
        return torch.baddbmm(self.a0, self.gram, theta)

    def direction(self, g: Tensor, da: Tensor) -> tuple[Tensor, Tensor]:
        torch.bmm(self.gram, g, out=da)
        return g, dot(g, da)  # ‖x̃ᵀ g‖²

    def network(self, theta: Tensor, v: Tensor) -> TwoLayer:
        return split(torch.baddbmm(self.w0, self.x.transpose(1, 2), theta), v)


def cheapest(x: Tensor, net: TwoLayer) -> Space:
    m, d = x.shape[1:]
    return GramSpace(x, net) if m < 2 * d else WeightSpace(x, net)
