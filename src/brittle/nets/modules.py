"""The networks that every remedy is tried on, as torch modules: one score per sample, positive for the label 1.

Each is simple enough to be analysed: those with one hidden layer of ReLUs have certificates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from brittle.core.rng import rng
from brittle.nets.power_relu import scores
from brittle.nets.two_layer import TwoLayer
from brittle.plugins import net

WIDTH = 300  # of the first two networks
FILTERS = 8  # of the first layer of the third


class Relu(nn.Module):
    """VYS's network, Σ_j v_j σ(w_j·x + b_j)."""

    def __init__(self, d: int, width: int, draws: np.random.Generator) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(d, width), nn.Linear(width, 1, bias=False)
        for p, fan_in in ((self.first.weight, d), (self.first.bias, d), (self.last.weight, width)):
            _fill(p, draws.uniform(-1, 1, p.shape) / math.sqrt(fan_in))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu())[:, 0]

    def two_layer(self) -> TwoLayer:
        return _float64(self.first.weight, self.first.bias, self.last.weight[0])


class SymmetricModule(nn.Module):
    """FP's network without smoothing, Σ_j σ(w_j·x - b) - σ(-w_j·x - b), of which only the w_j are trained (§4).

    FP lets b grow while most neurons die; here it is fixed, and at first a neuron is on for one sample in a few dozen.
    """

    def __init__(self, d: int, width: int, draws: np.random.Generator, norm: float = 0.3, bias: float = 0.06) -> None:
        super().__init__()
        self.first = nn.Linear(d, width, bias=False)
        self.bias = bias
        _fill(self.first.weight, draws.standard_normal((width, d)) * norm / math.sqrt(d))

    def forward(self, x: Tensor) -> Tensor:
        a = self.first(x)
        return ((a.abs() - self.bias).relu() * a.sign()).sum(1)

    def two_layer(self) -> TwoLayer:
        w = self.first.weight
        ones = torch.ones_like(w[:, 0])
        return _float64(torch.cat([w, -w]), -self.bias * torch.cat([ones, ones]), torch.cat([ones, -ones]))


class PowerReluModule(nn.Module):
    """Min and Vidal's network of powers of ReLU (nets/power_relu.py), from PyTorch's default initialisation.

    Samples are divided by `norm`, say their typical norm: powers of small or of large numbers are hard to train on.
    """

    def __init__(self, d: int, width: int, p: float, draws: np.random.Generator, norm: float = 1.0) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(d, width, bias=False), nn.Linear(width, 1, bias=False)
        self.p = p
        self.register_buffer("norm", torch.tensor(norm))  # stored with the weights
        for weight, fan_in in ((self.first.weight, d), (self.last.weight, width)):
            _fill(weight, draws.uniform(-1, 1, weight.shape) / math.sqrt(fan_in))

    def forward(self, x: Tensor) -> Tensor:
        return scores(self.first.weight, self.last.weight[0], x / self.norm, self.p)


class Cnn(nn.Module):
    """Three strided convolutions, for pictures; no batch normalisation, so attack and test see the same function."""

    def __init__(self, shape: tuple[int, ...], filters: int, draws: np.random.Generator) -> None:
        super().__init__()
        self.shape = shape
        sizes = [shape[0], filters, 2 * filters, 4 * filters]
        sides = [math.ceil(side / 8) for side in shape[1:]]
        self.first = nn.Conv2d(sizes[0], sizes[1], 5, stride=2, padding=2)
        self.others = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in pairwise(sizes[1:]))
        self.last = nn.Linear(sizes[-1] * math.prod(sides), 1)
        for layer in (self.first, *self.others, self.last):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            _fill(layer.weight, draws.uniform(-bound, bound, layer.weight.shape))
            _fill(layer.bias, draws.uniform(-bound, bound, layer.bias.shape))

    def forward(self, x: Tensor) -> Tensor:
        x = (x.view(-1, *self.shape) - 0.5).contiguous(memory_format=torch.channels_last)
        for layer in (self.first, *self.others):
            x = layer(x).relu()
        return self.last(x.flatten(1))[:, 0]


class Average(nn.Module):
    """An ensemble: the mean of the scores."""

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([member(x) for member in self.members]).mean(0)


@net
def two_layer(shape: tuple[int, ...], seed: int) -> nn.Module:
    return Relu(math.prod(shape), WIDTH, rng(seed, "two_layer"))


@net
def power_relu(shape: tuple[int, ...], seed: int) -> nn.Module:
    return PowerReluModule(math.prod(shape), WIDTH, 3.0, rng(seed, "power_relu"))


@net
def symmetric(shape: tuple[int, ...], seed: int) -> nn.Module:
    return SymmetricModule(math.prod(shape), WIDTH, rng(seed, "symmetric"))


@net
def cnn(shape: tuple[int, ...], seed: int) -> nn.Module:
    return Cnn(shape, FILTERS, rng(seed, "cnn"))


def as_two_layer(network: nn.Module) -> TwoLayer | None:
    """The same function in the form that certificates support, in float64; None for other networks."""
    if isinstance(network, Relu | SymmetricModule):
        return network.two_layer()
    if isinstance(network, Average):
        parts = [as_two_layer(member) for member in network.members]
        if all(parts):
            w, b, v = (torch.cat([getattr(part, name) for part in parts], 1) for name in ("w", "b", "v"))
            return TwoLayer(w, b, v / len(parts))
    return None


def first_layer(network: nn.Module) -> Tensor | None:
    """The first layer's weights, one row per neuron, if there is one; for an ensemble those of its first member."""
    if isinstance(network, Average):
        return first_layer(network.members[0])
    layers = [m for m in network.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    return layers[0].weight.detach().flatten(1) if layers else None


def _fill(p: nn.Parameter, values: np.ndarray) -> None:
    with torch.no_grad():
        p.copy_(torch.from_numpy(values))


def _float64(w: Tensor, b: Tensor, v: Tensor) -> TwoLayer:
    return TwoLayer(*(t.detach().cpu().double()[None] for t in (w, b, v)))
