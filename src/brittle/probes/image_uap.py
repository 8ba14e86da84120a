"""One perturbation for all pictures, beside the difference of the class means, which needs no network (SB §4.3).

A perturbed picture is a picture again: its pixels are clamped to [0, 1], in the search and in what is measured, so that
what would make black blacker neither helps nor counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from brittle.attacks import uap
from brittle.attacks.image_pgd import fixed
from brittle.core.rng import rng

ROWS = 250  # pictures evaluated at a time


@dataclass(frozen=True)
class Ascent:
    """How the perturbation is searched for: within an l2 radius, on the first `samples` pictures."""

    eps: float
    step: float
    steps: int
    epochs: int
    samples: int


def universal(net: nn.Module, x: Tensor, y: Tensor, how: Ascent, seed: int) -> tuple[dict[str, float], Tensor]:
    """Accuracies under the δ found, the difference of the means and a random direction of the same norm; and δ itself.

    They are measured on the pictures that were not used to find δ.
    """  # (n, 3, h, w), (n,) -> _, (3, h, w)
    shape, flat = x.shape[1:], x.flatten(1)

    def f(some: Tensor) -> Tensor:
        return torch.cat([net(part.view(-1, *shape).clamp(0, 1)) for part in some.split(ROWS)])

    few, rest = slice(0, how.samples), slice(how.samples, None)
    with fixed(net):
        draws = rng(seed, "uap pictures")
        found = uap.by_ascent(f, flat[few], y[few], "l2", how.eps, how.step, how.steps, how.epochs, 100, draws)
    means = (y[:, None] * flat).mean(0)
    random = torch.from_numpy(rng(seed, "random picture").standard_normal(len(found))).to(found)
    row = {
        "eps": how.eps,
        "passes": how.epochs,
        "share": on_upper_half(found.view(shape)),
        "mean_share": on_upper_half(means.view(shape)),
    }
    for name, delta in (("none", 0 * found), ("uap", found), ("mean", means), ("random", random)):
        scaled = delta * (how.eps / delta.norm().clamp(min=1e-30))
        row[name] = uap.accuracy(f, flat[rest], y[rest], scaled)
    row["cosine"] = float(found @ means / (found.norm() * means.norm()))
    return row, found.view(shape)


def on_upper_half(delta: Tensor) -> float:
    """The share of the budget, the squared l2 norm, spent on the upper half: the digit in MNIST-CIFAR."""  # (3, h, w)
    return float(delta[:, : delta.shape[1] // 2].square().sum() / delta.square().sum())
