"""The building blocks of attacks: for each norm, its steepest direction and the projection onto its ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


def l2_normalise(g: Tensor) -> Tensor:
    """The step of l2 size 1 along which g·step is largest; 0 for 0."""  # (n, d) -> (n, d)
    return g / g.norm(dim=1, keepdim=True).clamp(min=torch.finfo(g.dtype).tiny)


def l2_project(delta: Tensor, eps: Tensor) -> Tensor:
    """The nearest point of the ball ‖δ‖₂ ≤ ε."""  # (n, d), (n,) -> (n, d)
    return l2_normalise(delta) * delta.norm(dim=1).minimum(eps)[:, None]


def linf_normalise(g: Tensor) -> Tensor:
    """The step of l∞ size 1 along which g·step is largest."""  # (n, d) -> (n, d)
    return g.sign()


def linf_project(delta: Tensor, eps: Tensor) -> Tensor:
    """The nearest point of the cube ‖δ‖∞ ≤ ε."""  # (n, d), (n,) -> (n, d)
    return delta.maximum(-eps[:, None]).minimum(eps[:, None])


@dataclass(frozen=True)
class Norm:
    normalise: Callable[[Tensor], Tensor]
    project: Callable[[Tensor, Tensor], Tensor]


NORMS = {"l2": Norm(l2_normalise, l2_project), "linf": Norm(linf_normalise, linf_project)}
