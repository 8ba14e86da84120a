"""Networks of one shape, many side by side: the parameters of each are one row of θ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

# ℓ and ℓ' at the margins q = y f(x)
Loss = Callable[[Tensor], tuple[Tensor, Tensor]]
# x (s, n, d), y (s, n), what dropout keeps of each hidden layer -> the mean loss of each network (s,)
Gradient = Callable[[Tensor, Tensor, Sequence[Tensor]], Tensor]


class Family(Protocol):
    """Any architecture with its sizes; a binary classifier whose score is positive for the label 1."""

    d: int
    hidden: tuple[int, ...]  # the layers that dropout acts on, if any
    dropout: float
    shapes: Sequence[tuple[int, ...]]  # of the tensors that θ consists of, in order

    def initial(self, rngs: Sequence[np.random.Generator]) -> Tensor:
        """PyTorch's default initial weights, one network per generator."""  # (s, p)
        ...

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        """The scores of network r on its own samples x[r]; nothing is dropped."""  # (s, p), (s, n, d) -> (s, n)
        ...

    def gradient(self, theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
        """A function that writes the gradient of the mean loss at the current θ into grad."""  # both (s, p)
        ...


@dataclass(frozen=True)
class Members:
    """Networks of one family with their parameters, which `train/optimisers.py` trains as it does Deep ones."""

    family: Family
    theta: Tensor  # (s, p)

    def __call__(self, x: Tensor) -> Tensor:
        """The scores of network r on its own samples x[r]."""  # (s, n, d) -> (s, n)
        return self.family(self.theta, x)

    def flat(self) -> Tensor:
        return self.theta

    def like(self, theta: Tensor) -> Members:
        return replace(self, theta=theta)

    def shapes(self) -> list[torch.Size]:
        """All parameters as one vector: rules that treat matrices on their own are for Deep networks."""
        return [self.theta.shape[1:]]


def split(theta: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    """Split rows of parameters into the tensors that they hold."""  # (s, p) -> each (s, *shape)
    pieces = theta.split([math.prod(shape) for shape in shapes], dim=1)
    return [piece.unflatten(1, shape) for piece, shape in zip(pieces, shapes, strict=True)]


def uniform(rngs: Sequence[np.random.Generator], layers: Sequence[tuple[int, tuple[int, ...]]]) -> Tensor:
    """Draw U[±1/√fan_in] for every (fan_in, shape), PyTorch's default for linear, convolutional and GRU layers.

    A fan-in of 0 stands for a PReLU's slope of ¼.
    """

    def row(rng: np.random.Generator) -> np.ndarray:
        parts = []
        for fan_in, shape in layers:
            bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
            parts.append(rng.uniform(-bound, bound, math.prod(shape)) + (0.25 if fan_in == 0 else 0.0))
        return np.concatenate(parts)

    return torch.from_numpy(np.stack([row(rng) for rng in rngs])).float()  # (s, p)


def by_autograd(scores: Callable[[Tensor, Tensor], Tensor], theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
    """`Family.gradient` for architectures without a hand-written one."""

    def gradient(x: Tensor, y: Tensor, keep: Sequence[Tensor]) -> Tensor:
        with torch.enable_grad():
            leaf = theta.detach().requires_grad_()
            q = y * scores(leaf, x)
            value, slope = loss(q.detach())
            (g,) = torch.autograd.grad(q, leaf, slope / q.shape[1])
        grad.copy_(g)
        return value.mean(1)

    return gradient
