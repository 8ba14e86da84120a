"""(w, L)-FCN: fully connected networks of width w with L hidden layers (SB Appendix B), their gradient written by hand.

Autograd would take twice as long on networks of this size, most of it overhead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu, leaky_relu_

from brittle.nets.family import Gradient, Loss, split, uniform

aten = torch.ops.aten  # whose gradients can be written in place
ACTIVATIONS = ("relu", "leaky_relu", "prelu", "tanh")
LEAK = 0.01  # PyTorch's default


@dataclass(frozen=True)
class Fcn:
    """f(x) = v·φ(W_L … φ(W_1 x + b_1) … + b_L) + c."""

    d: int
    width: int
    depth: int
    activation: str = "relu"
    dropout: float = 0.0  # the share of each hidden layer that is left out in training

    @property
    def hidden(self) -> tuple[int, ...]:
        return (self.width,) * self.depth

    def _layers(self) -> list[tuple[int, tuple[int, ...]]]:
        """(fan in, shape) of W_1, b_1, …, W_L, b_L, v, c and, for PReLU, of the slopes."""
        layers = []
        for fan_in in (self.d, *self.hidden[:-1]):
            layers += [(fan_in, (self.width, fan_in)), (fan_in, (1, self.width))]
        layers += [(self.width, (1, self.width)), (self.width, (1, 1))]
        return layers + [(0, (1, 1))] * (self.depth if self.activation == "prelu" else 0)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [shape for _, shape in self._layers()]

    def initial(self, rngs: Sequence[np.random.Generator]) -> Tensor:
        return uniform(rngs, self._layers())

    def _split(self, theta: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor, Tensor, list[Tensor]]:
        """The W, the b, v, c and the slopes."""
        parts = split(theta, self.shapes)
        end = 2 * self.depth
        return parts[0:end:2], parts[1:end:2], parts[end], parts[end + 1], parts[end + 2 :]

    def features(self, theta: Tensor, x: Tensor) -> Tensor:
        """What the last hidden layer says of samples."""  # (s, p), (s, n, d) -> (s, n, width)
        ws, bs, _, _, slopes = self._split(theta)
        for layer, (w, b) in enumerate(zip(ws, bs, strict=True)):
            x = self._phi(torch.baddbmm(b, x, w.transpose(1, 2)), slopes[layer] if slopes else None)
        return x

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        _, _, v, c, _ = self._split(theta)
        return (self.features(theta, x) * v).sum(2) + c.squeeze(2)

    def _phi(self, a: Tensor, slope: Tensor | None) -> Tensor:
        if self.activation == "relu":
            return a.relu()
        if self.activation == "leaky_relu":
            return leaky_relu(a, LEAK)
        if self.activation == "tanh":
            return a.tanh()
        return torch.where(a > 0, a, slope * a)

    def _phi_(self, a: Tensor, slope: Tensor | None) -> Tensor:
        """φ(a), written over a where a is no longer needed."""
        if self.activation == "prelu":
            return self._phi(a, slope)
        return {"relu": torch.relu_, "leaky_relu": leaky_relu_, "tanh": torch.tanh_}[self.activation](a)

    def _phi_backward_(self, g: Tensor, a: Tensor, h: Tensor, slope: Tensor | None) -> Tensor:
        """g·φ'(a), where h = φ(a), written over g. PReLU alone uses a."""
        if self.activation == "relu":
            return aten.threshold_backward.grad_input(g, h, 0, grad_input=g)
        if self.activation == "leaky_relu":
            return aten.leaky_relu_backward.grad_input(g, h, LEAK, True, grad_input=g)
        if self.activation == "tanh":
            return aten.tanh_backward.grad_input(g, h, grad_input=g)
        return g.copy_(torch.where(a > 0, g, slope * g))

    def gradient(self, theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
        """Write the backward pass with samples as columns, h (s, width, n): there a layer is W h + b.

        Products of matrices with as many columns as samples are faster than with as many as neurons.
        """
        ws, bs, v, c, slopes = self._split(theta)
        g_ws, g_bs, g_v, g_c, g_slopes = self._split(grad)
        bs, g_bs = [b.transpose(1, 2) for b in bs], [g_b.squeeze(1) for g_b in g_bs]
        transposed, v_column = [w.transpose(1, 2) for w in ws], v.transpose(1, 2)
        slopes = slopes or [None] * self.depth

        @cache  # because to ask the system for memory at every update takes longer than some products
        def memory(n: int) -> list[list[Tensor]]:
            return [[theta.new_empty(len(theta), self.width, n) for _ in range(self.depth)] for _ in range(2)]

        def gradient(x: Tensor, y: Tensor, keep: Sequence[Tensor]) -> Tensor:
            n = y.shape[1]
            before, backs = memory(n)  # of each layer; before φ, and the gradient there
            inputs, after = [x.transpose(1, 2)], []
            keep = [mask.transpose(1, 2) for mask in keep]
            for layer in range(self.depth):
                torch.baddbmm(bs[layer], ws[layer], inputs[layer], out=before[layer])
                after.append(self._phi_(before[layer], slopes[layer]))
                inputs.append(after[layer] * keep[layer] if keep else after[layer])
            f = torch.baddbmm(c, v, inputs[-1]).squeeze(1)
            value, slope = loss(f.mul_(y))
            pull = slope.mul_(y).mul_(1 / n).unsqueeze(1)  # (s, 1, n) ∂/∂f of the mean loss
            torch.bmm(pull, inputs[-1].transpose(1, 2), out=g_v)
            torch.sum(pull, 2, keepdim=True, out=g_c)
            torch.mul(v_column, pull, out=backs[-1])
            for layer in reversed(range(self.depth)):
                back = backs[layer]
                if keep:
                    back *= keep[layer]
                if g_slopes:
                    torch.sum(back * before[layer].clamp(max=0), (1, 2), keepdim=True, out=g_slopes[layer])
                self._phi_backward_(back, before[layer], after[layer], slopes[layer])
                torch.bmm(back, inputs[layer].transpose(1, 2), out=g_ws[layer])
                torch.sum(back, 2, out=g_bs[layer])
                if layer:
                    torch.bmm(transposed[layer], back, out=backs[layer - 1])
            return value.mean(1)

        return gradient
