"""A world as every remedy and every probe sees it: samples with two labels, and what is known of them beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from brittle.plugins import Plugin


@dataclass(frozen=True, kw_only=True)
class World:
    """Training and test samples. Where labels cannot be foreseen (random ones), test on the training samples."""

    x: Tensor  # (n, d)
    y: Tensor  # (n,) ±1
    x_test: Tensor  # (t, d)
    y_test: Tensor  # (t,)
    radius: float  # l2, at which robust accuracy is stated
    simple: Tensor | None = (
        None  # S, the simplest feature that tells the label: orthonormal rows (s, d), or a mask (d,)
    )
    simple_is: str = ""  # in words
    basis: Tensor | None = None  # (d, D) columns: the features that neurons and perturbations are mixtures of
    best: str = ""  # the best classifier that is known, in words …
    best_robust: float = math.nan  # … and the share of the test samples that it provably keeps within the radius
    net: str = "two_layer"  # the network that learns it
    shape: tuple[int, ...] = ()  # of one sample, where that is not (d,): colours, height, width

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.shape or (self.x.shape[1],)

    @property
    def simple_rows(self) -> Tensor | None:
        """S as orthonormal rows."""  # (s, d)
        if self.simple is None or self.simple.ndim == 2:
            return self.simple
        return torch.eye(len(self.simple), device=self.simple.device)[self.simple]

    def on_simple(self, v: Tensor) -> Tensor:
        """The part of vectors that is in S."""  # (n, d) -> (n, d)
        return v * self.simple if self.simple.ndim == 1 else v @ self.simple.T @ self.simple

    def to(self, where: torch.device) -> World:
        tensors = {f.name: getattr(self, f.name) for f in fields(self) if isinstance(getattr(self, f.name), Tensor)}
        return replace(self, **{name: tensor.to(where) for name, tensor in tensors.items()})


def checked(world: object, source: Plugin) -> World:
    """The world, if its parts fit together; else one line that says which does not."""
    if not isinstance(world, World):
        raise source.wrong(f"must return a brittle.worlds.common.World, not {type(world).__name__}")
    d = world.x.shape[1] if isinstance(world.x, Tensor) and world.x.ndim == 2 else 0
    for name in ("x", "x_test", "y", "y_test"):
        tensor = getattr(world, name)
        wanted = ("samples", d or "d") if name[0] == "x" else (len(getattr(world, name.replace("y", "x"))),)
        if not isinstance(tensor, Tensor) or tensor.dtype != torch.float32:
            raise source.wrong(f"has {name} that is not a tensor of float32")
        if tensor.ndim != len(wanted) or len(tensor) == 0 or tensor.shape[-1] != wanted[-1]:
            raise source.wrong(f"has {name} of the shape {tuple(tensor.shape)}; must be {wanted}".replace("'", ""))
        if not bool(tensor.isfinite().all()):
            raise source.wrong(f"has {name} with numbers that are not finite")
        if name[0] == "y" and set(tensor.unique().tolist()) != {-1.0, 1.0}:
            raise source.wrong(f"has labels {name} other than -1 and 1, or only one of them")
    if not 0 < world.radius < math.inf:
        raise source.wrong(f"has the radius {world.radius}; must be a number > 0")
    if world.shape and math.prod(world.shape) != d:
        raise source.wrong(f"has the shape {world.shape}, but samples of {d} numbers")
    if world.basis is not None and (world.basis.ndim != 2 or len(world.basis) != d):
        raise source.wrong(f"has a basis of the shape {tuple(world.basis.shape)}; must be ({d}, features)")
    if world.simple is not None:
        rows = world.simple_rows
        if rows.shape[1] != d or (rows @ rows.T - torch.eye(len(rows))).abs().max() > 1e-3:
            shape = tuple(world.simple.shape)
            raise source.wrong(f"has `simple` of the shape {shape}; must be orthonormal rows (s, {d}) or a mask ({d},)")
    return world
