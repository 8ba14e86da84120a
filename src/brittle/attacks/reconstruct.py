"""Read training samples from the weights of a network of depth 2 alone.

At a KKT point of the max-margin problem (VYS Eq. 3), with w̃ = (w, b) and x̃ = (x, 1),

    w̃_j = v_j Σ_i λ_i s_ij y_i x̃_i   and   v_j = Σ_i λ_i y_i σ(a_ij),   a_ij = w̃_j·x̃_i,   s_ij in ∂σ(a_ij).

`from_kkt` looks for candidates x and λ with which these equations hold (Haim and others 2022). `differences` is ours,
in closed form: w̃_j/v_j is a sum of samples, those that neuron j sees, so two neurons that differ in one sample differ
by that sample's multiple. Neither depends on the scale of θ, nor does λ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from brittle.core.rng import normal32
from brittle.nets.two_layer import TwoLayer
from brittle.train.spaces import joined, with_bias


@dataclass(frozen=True)
class Search:
    """How candidates are looked for: by Adam, while the smoothed ReLU's derivative becomes ever sharper."""

    candidates: int  # half of them with either label
    steps: int
    lr: float  # at first; falls to 0 along a half cosine
    sharpness: tuple[float, float]  # of σ'(a) = sigmoid(sharpness · a/(‖w̃‖ √(d+1))), first and last


@dataclass(frozen=True)
class Candidates:
    x: Tensor  # (s, n, d)
    multipliers: Tensor  # (s, n) λ
    residual: Tensor  # (s,) ‖θ - Σ λ_i y_i ∇N(x_i)‖² / ‖θ‖², with the smoothed derivative


def from_kkt(net: TwoLayer, how: Search, rngs: Sequence[np.random.Generator]) -> Candidates:
    """Candidates for each of s networks, from a start at random. λ ≥ 0, as λ is a square."""
    w, v = joined(net), net.v  # (s, d + 1, k), (s, k)
    d, n = w.shape[1] - 1, how.candidates
    y = torch.where(torch.arange(n, device=w.device) < n // 2, 1.0, -1.0)
    size = (w * w).sum((1, 2)) + (v * v).sum(1)  # ‖θ‖²
    x = torch.from_numpy(np.stack([normal32((n, d), rng) for rng in rngs])).to(w.device)
    # Of λ, so that a sum of n/2 candidates has the length of w̃_j/v_j at a KKT point, which is 1 (the layers balance).
    root = torch.full_like(x[..., 0], (n * (d + 1) / 2) ** -0.25).requires_grad_()
    unit = w.norm(dim=1)[:, None] * math.sqrt(d + 1)
    adam = torch.optim.Adam([x.requires_grad_(), root], lr=how.lr, betas=(0.9, 0.99))
    for step in range(how.steps):
        done = step / how.steps
        sharp = how.sharpness[0] * (how.sharpness[1] / how.sharpness[0]) ** done
        adam.param_groups[0]["lr"] = how.lr * 0.5 * (1 + math.cos(math.pi * done))
        adam.zero_grad()
        with torch.enable_grad():
            residual = unexplained(w, v, x, y * root * root, sharp / unit) / size
            residual.sum().backward()
        adam.step()
    return Candidates(x.detach(), root.detach() ** 2, residual.detach())


def unexplained(w: Tensor, v: Tensor, x: Tensor, c: Tensor, sharpness: Tensor) -> Tensor:
    """‖θ - Σ_i c_i ∇N(x_i)‖² for c_i = λ_i y_i.

    w: (s, d + 1, k) columns w̃_j; sharpness: (s, 1, k), of the derivative of each neuron's ReLU.
    """  # (s, k), (s, n, d), (s, n) -> (s,)
    points = with_bias(x)
    a = points @ w
    pull = c.unsqueeze(2) * torch.sigmoid(sharpness * a)  # (s, n, k)
    of_w = w - points.transpose(1, 2) @ pull * v.unsqueeze(1)
    of_v = v - (c.unsqueeze(1) @ a.relu()).squeeze(1)
    return (of_w * of_w).sum((1, 2)) + (of_v * of_v).sum(1)


def differences(net: TwoLayer) -> Tensor:
    """The directions of w̃_j/v_j - w̃_l/v_l for all pairs of neurons of a single network.

    The last coordinate, λ_i y_i s_i times that of x̃ = (x, 1), has the sign that makes it x and not -x.
    """  # -> (k(k - 1)/2, d)
    rows = joined(net)[0].T / net.v[0][:, None]  # (k, d + 1)
    first, second = torch.triu_indices(len(rows), len(rows), 1, device=rows.device)
    moved = rows[first] - rows[second]
    return normalize(moved[:, :-1] * moved[:, -1:].sign(), dim=1)


def nearest(candidates: Tensor, x: Tensor) -> Tensor:
    """The cosine of each sample with the candidate nearest to it."""  # (n, d), (m, d) -> (m,)
    return (normalize(x, dim=1) @ normalize(candidates, dim=1).T).amax(1)
