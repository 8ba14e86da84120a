"""The slab data that stages share: which worlds are drawn for which stage, where they are stored, what a file holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.core import store
from brittle.core.rng import rng
from brittle.slabs.params import Optimiser, Slabs
from brittle.worlds import slabs
from brittle.worlds.slabs import SlabWorld


@dataclass(frozen=True)
class Sample:
    """A world's data, rotated, with the directions of its features."""

    x: Tensor  # (n, d)
    y: Tensor  # (n,)
    x_valid: Tensor  # (n', d)
    y_valid: Tensor
    x_test: Tensor  # (n', d)
    y_test: Tensor
    q: Tensor  # (d, d) one direction per row; feature i of x is x·q[i]

    @property
    def q_s(self) -> Tensor:
        """The direction of the simple feature."""
        return self.q[:1]


def world(p: Slabs, name: str, d: int) -> SlabWorld:
    return slabs.world(name, d, gamma=p.gamma, b=p.b, noise=p.noise)


def worlds_of(p: Slabs, model: str) -> list[str]:
    """The worlds that a model is trained on."""
    return [world for world in p.worlds if f"{model}@{world}" not in p.skip]


def how(p: Slabs, model: str) -> Optimiser:
    """How a model is trained, by its architecture."""
    return getattr(p.training, model.partition("-")[0])


def path(part: str) -> str:
    return f"data/{part}.safetensors"


def draw(p: Slabs, name: str, d: int, n: int) -> dict[str, np.ndarray]:
    """One world's data, rotated."""
    drawn = world(p, name, d)
    q = slabs.rotation(d, rng(p.seed, f"{name} {d} rotation")) if p.rotate else np.eye(d, dtype=np.float32)
    arrays = {"q": q}
    for part, size in (("", n), ("_valid", p.test), ("_test", p.test)):
        x, y = drawn.sample(size, rng(p.seed, f"{name} {d} samples{part}"))
        arrays |= {f"x{part}": x @ q, f"y{part}": y}
    return arrays


def save_worlds(part: str, worlds: dict[tuple[str, int], dict[str, np.ndarray]]) -> None:
    """Every world of a part in one file, each array under NAME_D."""
    named = {f"{name}_{d}.{key}": a for (name, d), arrays in worlds.items() for key, a in arrays.items()}
    store.save_tensors(path(part), named)


def load_sample(part: str, name: str, d: int, where: torch.device) -> Sample:
    shapes = {"x": "n d", "y": "n", "x_valid": "t d", "y_valid": "t", "x_test": "t d", "y_test": "t", "q": "d d"}
    arrays = store.load_tensors(path(part), {f"{name}_{d}.{key}": axes for key, axes in shapes.items()}, d=d)
    return Sample(**{key: torch.from_numpy(arrays[f"{name}_{d}.{key}"]).to(where) for key in shapes})
