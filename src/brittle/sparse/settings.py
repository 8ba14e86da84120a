"""A sparse coding model and samples of it to test on: drawn by one stage, loaded by the others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from brittle.attacks.softened_pgd import Scores, accuracy, perturbed
from brittle.core import store
from brittle.sparse.params import Sparse
from brittle.sparse.world import shape
from brittle.worlds.sparse_coding import SparseCoding

DATA = "data/sparse.safetensors"


@dataclass(frozen=True)
class Setting:
    """A world and samples of it to test on."""

    world: SparseCoding
    dictionary: Tensor  # (d, D)
    w_star: Tensor  # (D,)
    dense: Tensor  # (d,)
    x: Tensor  # (n, d)
    y: Tensor  # (n,)

    @classmethod
    def of(cls, world: SparseCoding, x: Tensor, y: Tensor) -> Setting:
        there = (torch.from_numpy(array).to(x.device) for array in (world.dictionary, world.w_star, world.dense))
        return cls(world, *there, x, y)

    def first(self, n: int) -> Setting:
        """The same world with only the first n samples."""
        return replace(self, x=self.x[:n], y=self.y[:n])

    def perturbed(self, f: Scores, norm: str, tau: float, softer: Scores | None = None) -> dict[str, Tensor]:
        """The perturbations δ of every attack within τ, for these samples."""
        return perturbed(f, self.x, self.y, self.dense, norm, tau, softer)

    def accuracy(self, f: Scores, delta: Tensor | float = 0.0) -> float:
        return accuracy(f, self.x, self.y, delta)


def load_setting(p: Sparse, where: torch.device) -> Setting:
    """Load what stage `sparse_data` drew."""
    axes = {"dictionary": "d D", "w_star": "D", "x": "n d", "y": "n"}
    arrays = store.load_tensors(DATA, axes, d=p.d, D=p.words, n=p.test)
    world = SparseCoding(dictionary=arrays["dictionary"], w_star=arrays["w_star"], **shape(p))
    return Setting.of(world, *(torch.from_numpy(arrays[name]).to(where) for name in ("x", "y")))
