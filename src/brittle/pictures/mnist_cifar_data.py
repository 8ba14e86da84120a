"""The digits and pictures from which MNIST-CIFAR's samples are composed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.core.rng import rng
from brittle.pictures import splits
from brittle.worlds import mnist_cifar
from brittle.worlds.mnist_cifar import Blocks


@dataclass(frozen=True)
class Source:
    """The digits and pictures of one split, to draw worlds from."""

    split: str
    blocks: Blocks
    digit_labels: Tensor
    picture_labels: Tensor

    def draw(self, world: str, n: int) -> tuple[Tensor, Tensor]:
        """Draw n pairs and their labels, in random order."""
        labels = (y.cpu().numpy() for y in (self.digit_labels, self.picture_labels))
        pairs, y = mnist_cifar.draw(world, *labels, n, rng(0, f"mnist_cifar {self.split} {world}"))
        return pairs.to(self.digit_labels.device), y.to(self.digit_labels.device)


def load_sources(device: torch.device) -> dict[str, Source]:
    digits, scenes = (splits.load_splits(name, device) for name in ("mnist", "cifar10"))
    return {
        split: Source(split, Blocks(digits[split].x, scenes[split].x), digits[split].y, scenes[split].y)
        for split in ("train", "test")
    }
