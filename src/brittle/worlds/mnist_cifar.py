"""MNIST-CIFAR (SB §3.1): a digit above a picture, each of which determines the label.

A world is named by its classes: `0-1-automobile-truck` has digit 0 above an automobile as label -1 and digit 1 above a
truck as +1. A sample is a pair of indices, of its digit and its picture: the features S and Sᶜ of the other worlds,
which can be exchanged one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from brittle.worlds.classes import CLASSES

LETTERS = {"0-1-automobile-truck": "A", "1-4-automobile-truck": "B", "0-1-airplane-ship": "C"}  # SB's appendix B


@dataclass(frozen=True)
class Blocks:
    """The digits and pictures that samples are composed of."""

    digits: Tensor  # (a, 28, 28) uint8
    pictures: Tensor  # (b, 32, 32, 3) uint8

    def show(self, pairs: Tensor) -> Tensor:
        """The digit, framed in black and grey in all three colours, above the picture."""  # (n, 2) -> (n, 64, 32, 3)
        digit, picture = pairs.long().unbind(1)
        above = pad(self.digits[digit], (2, 2, 2, 2))[..., None].expand(-1, -1, -1, 3)
        return torch.cat([above, self.pictures[picture]], 1)


def classes(name: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """The two digits and the indices of the two classes of pictures, for label -1 and label +1."""
    low, high, *pictures = name.split("-")
    return (int(low), int(high)), (CLASSES.index(pictures[0]), CLASSES.index(pictures[1]))


def draw(
    name: str, digit_labels: np.ndarray, picture_labels: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """n pairs in random order, half of each label, and the labels -1 and +1.

    Within a label digits and pictures are paired at random; none is reused before all others of its class are used.
    """  # -> (n, 2) float, (n,)
    sides = zip((-1.0, 1.0), zip(*classes(name), strict=True), strict=True)
    pairs, labels = [], []
    for y, (digit, picture) in sides:
        count = n // 2 if y < 0 else n - n // 2
        columns = [
            _taken(np.flatnonzero(of == kind), count, rng)
            for of, kind in ((digit_labels, digit), (picture_labels, picture))
        ]
        pairs.append(np.stack(columns, 1))
        labels.append(np.full(count, y))
    order = rng.permutation(n)
    return (
        torch.from_numpy(np.concatenate(pairs)[order].astype(np.float32)),
        torch.from_numpy(np.concatenate(labels)[order].astype(np.float32)),
    )


def _taken(these: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    rounds = [rng.permutation(these) for _ in range(-(-count // len(these)))]
    return np.concatenate(rounds)[:count]
