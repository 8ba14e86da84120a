"""Fully connected ReLU networks of any depth, many independent ones side by side (VYS §7 asks about them)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from brittle.nets.two_layer import TwoLayer


@dataclass(frozen=True)
class Deep:
    """N(x) = W_L σ(W_{L-1} … σ(W_1 x + b)), for s networks of depth L ≥ 2.

    Only the first layer has a bias. So every layer is linear in its own parameters and N is homogeneous of degree L
    in all of them together, as VYS §2 defines it: Thm 2.1 holds for it as it does for depth 2.
    """

    ws: tuple[Tensor, ...]  # W_l: (s, k_l, k_{l-1}), from k_0 = d to k_L = 1
    b: Tensor  # (s, k_1)

    @classmethod
    def of(cls, net: TwoLayer) -> Deep:
        """The same networks, as Deep ones of depth 2."""
        return cls((net.w, net.v.unsqueeze(1)), net.b)

    def two_layer(self) -> TwoLayer:
        """The same networks as TwoLayer, if the depth is 2."""
        w, v = self.ws
        return TwoLayer(w, self.b, v.squeeze(1))

    @property
    def depth(self) -> int:
        return len(self.ws)

    @property
    def degree(self) -> int:
        """How homogeneous the network is: scaling θ by α scales N by α^degree."""
        return self.depth

    def preactivations(self, x: Tensor) -> Tensor:
        """W_1 x_i + b."""  # (s, m, d) -> (s, m, k_1)
        return torch.baddbmm(self.b.unsqueeze(1), x, self.ws[0].transpose(1, 2))

    def after(self, a: Tensor) -> Tensor:
        """The output as a function of the first layer's preactivations, homogeneous in them of degree 1."""
        for w in self.ws[1:]:  # (s, m, k_1) -> (s, m)
            a = a.relu() @ w.transpose(1, 2)
        return a.squeeze(2)

    def __call__(self, x: Tensor) -> Tensor:
        """N(x_i), network r on its own samples x[r]."""  # (s, m, d) -> (s, m)
        return self.after(self.preactivations(x))

    def parameters(self) -> list[Tensor]:
        """W_1, …, W_L, b."""
        return [*self.ws, self.b]

    def flat(self) -> Tensor:
        """θ, all parameters in one row for each network."""  # (s, p)
        return torch.cat([p.flatten(1) for p in self.parameters()], dim=1)

    def like(self, theta: Tensor) -> Deep:
        """Networks of these shapes with the parameters θ."""  # (s, p)
        *ws, b = split(theta, self.shapes())
        return replace(self, ws=tuple(ws), b=b)

    def shapes(self) -> list[torch.Size]:
        """The shapes of one network's parameters, in the order of θ."""
        return [p.shape[1:] for p in self.parameters()]

    def to(self, target: torch.device | torch.dtype) -> Deep:
        """The networks on another device, or in another precision."""
        return replace(self, ws=tuple(w.to(target) for w in self.ws), b=self.b.to(target))


def split(theta: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
    """Split rows of parameters into the tensors that they hold."""  # (s, p) -> each (s, *shape)
    pieces = theta.split([math.prod(shape) for shape in shapes], dim=1)
    return [piece.unflatten(1, shape) for piece, shape in zip(pieces, shapes, strict=True)]


def initial(d: int, widths: Sequence[int], scale: float, rngs: list[np.random.Generator]) -> Deep:
    """PyTorch's default initialisation of linear layers, times `scale`; one network per generator.

    With a single width the numbers are those of `two_layer.initial`.
    """

    def uniform(fan_in: int, *shape: int) -> Tensor:
        bound = scale / np.sqrt(fan_in)
        return torch.from_numpy(np.stack([g.uniform(-bound, bound, shape) for g in rngs])).float()

    first, b = uniform(d, widths[0], d), uniform(d, widths[0])
    later = (uniform(fan_in, out, fan_in) for fan_in, out in zip(widths, [*widths[1:], 1], strict=True))
    return Deep((first, *later), b)
