"""What networks for pictures have in common: inputs are pixels in [0, 1], and layers can be frozen or redrawn."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from brittle.core.rng import normal32

MEAN, STD = 0.4734, 0.2516  # of CIFAR-10's pixels, all channels together


@torch.no_grad()
def _he(module: nn.Conv2d | nn.Linear, times: float, rng: np.random.Generator) -> None:
    size = math.sqrt(2 / module.weight[0].numel()) * times
    module.weight.copy_(torch.from_numpy(normal32(module.weight.shape, rng) * np.float32(size)))
    if module.bias is not None:
        module.bias.zero_()


@torch.no_grad()
def _torch(module: nn.Conv2d | nn.Linear, times: float, rng: np.random.Generator) -> None:
    """As PyTorch draws them, weights √6 times smaller than He's."""
    most = times / math.sqrt(module.weight[0].numel())
    for part in (module.weight, module.bias):
        if part is not None:
            drawn = 2 * rng.random(part.shape, dtype=np.float32) - 1
            part.copy_(torch.from_numpy(drawn * np.float32(most)))


INITIAL = {"he": _he, "torch": _torch}


class Layered(nn.Module):
    """A network that knows its layers in order, each a group of modules with one convolution (or the last linear map).

    A shortcut's projection belongs to the layer that begins its block; a batch normalisation to the layer it feeds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.layers: list[list[nn.Module]] = []

    def normalise(self, x: Tensor) -> Tensor:
        return (x - MEAN) / STD

    @property
    def convolutions(self) -> list[nn.Conv2d]:
        """One convolution per layer, in order; FP's layer ℓ is number ℓ - 1."""
        first = ([m for m in layer if isinstance(m, nn.Conv2d)] for layer in self.layers)
        return [found[0] for found in first if found]

    def draw(self, rng: np.random.Generator, since: int = 0, first: float = 1.0, initial: str = "he") -> None:
        """Draw random weights for the layers from number `since` on; those of that layer are multiplied by `first`.

        `he`: He et al.'s, biases 0. `torch`: PyTorch's own, uniform within 1/√(fan in), biases too.
        """
        for number, layer in enumerate(self.layers[since:], since):
            for module in layer:
                if isinstance(module, nn.Conv2d | nn.Linear):
                    INITIAL[initial](module, first if number == since else 1.0, rng)
                elif isinstance(module, nn.BatchNorm2d):
                    module.reset_parameters()

    def freeze(self, before: int) -> None:
        """Stop training layers with a smaller number, and updating the statistics of their batch normalisations."""
        self.frozen = before
        for number, layer in enumerate(self.layers):
            for module in layer:
                module.requires_grad_(number >= before)
        self.train(self.training)

    frozen = 0

    def train(self, mode: bool = True) -> Layered:
        super().train(mode)
        for layer in self.layers[: self.frozen]:
            for module in layer:
                module.eval()
        return self
