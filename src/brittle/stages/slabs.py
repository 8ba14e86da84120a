"""The data of the slab worlds as stages share them: which are drawn for whom, where they lie, what is in a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle import store
from brittle.params.slabs import AllSlabsParams, Optimiser, Slabs
from brittle.rng import rng
from brittle.worlds import slabs
from brittle.worlds.slabs import World


@dataclass(frozen=True)
class Sample:
    """A world's data, rotated, with the directions in which its features are seen."""

    x: Tensor  # (n, d)
    y: Tensor  # (n,)
    x_valid: Tensor  # (n', d)
    y_valid: Tensor
    x_test: Tensor  # (n', d)
    y_test: Tensor
    q: Tensor  # (d, d) one direction a row; feature i of x is x·q[i]

    @property
    def q_s(self) -> Tensor:
        """The direction of the simple feature."""
        return self.q[:1]


def world(p: Slabs, name: str, d: int) -> World:
    return slabs.world(name, d, gamma=p.gamma, b=p.b, noise=p.noise)


def worlds_of(p: Slabs, model: str) -> list[str]:
    """Those that a model is trained on."""
    return [world for world in p.worlds if f"{model}@{world}" not in p.skip]


def how(p: Slabs, model: str) -> Optimiser:
    """How a model is trained, by its architecture."""
    return getattr(p.training, model.partition("-")[0])


def needed(params: AllSlabsParams) -> dict[str, dict[tuple[str, int], int]]:
    """For each part of the pipeline the worlds it trains on, by name and dimension, with the number of samples.

    Each part has a folder of its own, so that it trains anew only where its own data have changed.
    """
    p, features, recipes, noisy, hard = (
        params.slabs,
        params.features,
        params.recipes,
        params.noisy,
        params.adversarial,
    )
    return {
        "slabs": {(name, p.d): p.samples for name in p.worlds},
        "features": {(features.world, 1 + complex): features.samples for complex in features.complex},
        "recipes": {(name, p.d): p.samples for name in (*recipes.worlds, recipes.regularised.world)},
        "noisy": {(f"noisy-lms-{noisy.k}", p.d): noisy.samples}
        | {(name, p.d - 1): noisy.samples for name in noisy.alone.worlds},
        "adversarial": {(hard.world, p.d): hard.samples},
    }


def path(part: str, name: str, d: int) -> str:
    return f"data/{part}/{name}_{d}.safetensors"


def draw(p: Slabs, name: str, d: int, n: int) -> dict[str, np.ndarray]:
    """What a file holds."""
    drawn = world(p, name, d)
    q = slabs.rotation(d, rng(p.seed, f"{name} {d} rotation")) if p.rotate else np.eye(d, dtype=np.float32)
    arrays = {"q": q}
    for part, size in (("", n), ("_valid", p.test), ("_test", p.test)):
        x, y = drawn.sample(size, rng(p.seed, f"{name} {d} samples{part}"))
        arrays |= {f"x{part}": x @ q, f"y{part}": y}
    return arrays


def load(part: str, name: str, d: int, where: torch.device) -> Sample:
    shapes = {"x": "n d", "y": "n", "x_valid": "t d", "y_valid": "t", "x_test": "t d", "y_test": "t", "q": "d d"}
    arrays = store.load_tensors(path(part, name, d), shapes, d=d)
    return Sample(**{key: torch.from_numpy(arrays[key]).to(where) for key in shapes})
