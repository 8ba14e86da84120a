"""MNIST and CIFAR-10 as fetched, split into training and test pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.core import store

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Split:
    x: Tensor  # uint8: (n, 28, 28) or (n, 32, 32, 3)
    y: Tensor  # (n,) int64


def load_splits(name: str, device: torch.device) -> dict[str, Split]:
    """Load the splits `train` and `test` of a data set that has been fetched."""
    axes = "h w c" if name == "cifar10" else "h w"
    shapes = {f"{split}_{part}": f"{split} {axes}" if part == "x" else split for split in SPLITS for part in "xy"}
    arrays = store.load_tensors(f"data/{name}.safetensors", shapes)
    return {
        split: Split(torch.from_numpy(arrays[f"{split}_x"]).to(device), _labels(arrays[f"{split}_y"]).to(device))
        for split in SPLITS
    }


def _labels(y: np.ndarray) -> Tensor:
    return torch.from_numpy(y.astype(np.int64))
