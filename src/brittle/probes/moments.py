"""The universal perturbation predicted without a network: the lowest moment in which the labels differ.

z = Σ y_i x_i is the first of the tensors T_k = Σ y_i x_i^⊗k. Where the classes have the same mean it is noise, and so
is T_2 where they have the same covariance. The direction u with the largest |T_k(u, …, u)| = |Σ y_i (u·x_i)^k| of the
first T_k that is not noise is the simplest feature there is to learn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

STARTS, STEPS = 20, 60
DEGREES = 4
NOISE = 4.0  # in standard errors of a correlation: anything below counts as noise


@dataclass(frozen=True)
class Moment:
    degree: int
    direction: Tensor  # (d,) of length 1
    correlation: float  # of (u·x)^k with the label, on test samples
    told: bool  # whether that is more than noise


def direction(x: Tensor, y: Tensor, degree: int, draws: np.random.Generator) -> Tensor:
    """The maximiser of |Σ y_i (u·x_i)^k| among unit vectors: in closed form for k = 1, else by power iteration."""
    if degree == 1:  # (n, d), (n,) -> (d,)
        z = y @ x
        return z / z.norm()
    u = torch.from_numpy(draws.standard_normal((STARTS, x.shape[1]))).to(x)
    for _ in range(STEPS):
        along = x @ (u / u.norm(dim=1, keepdim=True)).T  # (n, starts)
        value = (y[:, None] * along**degree).sum(0)
        u = ((y[:, None] * along ** (degree - 1)).T @ x) * value.sign()[:, None]
    u = u / u.norm(dim=1, keepdim=True)
    return u[(y[:, None] * (x @ u.T) ** degree).sum(0).abs().argmax()]


def moments(x: Tensor, y: Tensor, x_test: Tensor, y_test: Tensor, draws: np.random.Generator) -> list[Moment]:
    """The moments from the first to the lowest that distinguishes the labels; all of them if none does.

    Samples are centred, so that a mean that they all share is not a feature; only z itself is as in VYS.
    """  # (n, d), (n,), (t, d), (t,)
    found, middle = [], x.mean(0)
    for degree in range(1, DEGREES + 1):
        u = direction(x if degree == 1 else x - middle, y, degree, draws)
        correlation = float(torch.corrcoef(torch.stack([((x_test - middle) @ u) ** degree, y_test]))[0, 1])
        found.append(Moment(degree, u, correlation, abs(correlation) * len(y_test) ** 0.5 >= NOISE))
        if found[-1].told:
            break
    return found
