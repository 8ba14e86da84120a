"""A world as every remedy and every probe sees it: samples with two labels, and what is known about them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from brittle.plugins import Plugin


@dataclass(frozen=True, kw_only=True)
class World:
    """Training and test samples. Where labels cannot be predicted (random ones), test on the training samples."""

    x: Tensor  # (n, d)
    y: Tensor  # (n,) ±1
    x_test: Tensor  # (t, d)
    y_test: Tensor  # (t,)
    radius: float  # l2, at which robust accuracy is measured
    simple: Tensor | None = (
        None  # S, the simplest feature that predicts the label: orthonormal rows (s, d), or a mask (d,)
    )
    simple_is: str = ""  # S in words
    basis: Tensor | None = None  # (d, D) columns: the features that neurons and perturbations are mixtures of
    best: str = ""  # the best classifier that is known, in words …
    best_robust: float = math.nan  # … and the share of the test samples that it provably keeps within the radius
    net: str = "two_layer"  # the network that learns it
    shape: tuple[int, ...] = ()  # of one sample, where that is not (d,): colours, height, width

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.shape or (self.x.shape[1],)

    def on_simple(self, v: Tensor) -> Tensor:
        """The component of vectors in S."""  # (n, d) -> (n, d)
        return v * self.simple if self.simple.ndim == 1 else v @ self.simple.T @ self.simple

    def to(self, where: torch.device) -> World:
        tensors = {f.name: getattr(self, f.name) for f in fields(self) if isinstance(getattr(self, f.name), Tensor)}
        return replace(self, **{name: tensor.to(where) for name, tensor in tensors.items()})


def checked(world: object, source: Plugin) -> World:
    """The world, if its parts fit together; otherwise BadInput with one line that says which does not."""
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
    if not isinstance(world.radius, int | float) or not 0 < world.radius < math.inf:
        raise source.wrong(f"has the radius {world.radius!r}; must be a number > 0")
    if world.shape and (not isinstance(world.shape, tuple) or math.prod(world.shape) != d):
        raise source.wrong(f"has the shape {world.shape!r}, but samples of {d} numbers")
    if world.basis is not None and not (_real(world.basis) and world.basis.ndim == 2 and len(world.basis) == d):
        raise source.wrong(f"has a basis that is not a finite tensor of float32 of the shape ({d}, features)")
    if world.simple is not None and not _is_simple(world.simple, d):
        shape = tuple(world.simple.shape) if isinstance(world.simple, Tensor) else type(world.simple).__name__
        raise source.wrong(f"has `simple` of the shape {shape}; must be orthonormal rows (s, {d}) or a mask ({d},)")
    return world


def _real(tensor: object) -> bool:
    return isinstance(tensor, Tensor) and tensor.dtype == torch.float32 and bool(tensor.isfinite().all())


def _is_simple(simple: object, d: int) -> bool:
    """Whether it is a mask of booleans, not all of them false, or orthonormal rows."""
    if isinstance(simple, Tensor) and simple.dtype == torch.bool:
        return simple.shape == (d,) and bool(simple.any())
    if not _real(simple) or simple.ndim != 2 or simple.shape[1] != d or len(simple) == 0:
        return False
    return float((simple @ simple.T - torch.eye(len(simple))).abs().max()) <= 1e-3
