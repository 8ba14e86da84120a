"""A network's row in the tables of SB: how well it labels, with S and with all but S taken from other samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

import torch
from torch import Tensor

from brittle.nets.family import Family
from brittle.probes.randomised import Drawn, ks, randomised
from brittle.rng import rng
from brittle.stages.groups import Trained
from brittle.stages.slabs import Sample


def network(family: Family, trained: Trained, i: int, where: torch.device) -> Callable[[Tensor], Tensor]:
    """Network i of a group, as a function from samples to scores."""
    theta = torch.from_numpy(trained.theta[i : i + 1]).to(where)
    return lambda x: family(theta, x.unsqueeze(0)).squeeze(0)


def average(fs: list[Callable[[Tensor], Tensor]]) -> Callable[[Tensor], Tensor]:
    """The ensemble: the mean of the scores."""
    return lambda x: torch.stack([f(x) for f in fs]).mean(0)


def drawn(
    f: Callable[[Tensor], Tensor],
    sample: Sample,
    permutations: int,
    seed: int,
    versions: Sequence[str] = ("s", "rest"),
) -> dict[str, Drawn]:
    """On the test samples. Each seed has donors of its own, so that the spread over seeds is also that of the draws."""
    stream = rng(seed, "donors")
    return randomised(f, sample.x_test, sample.y_test, sample.q_s, stream, permutations, versions)


def row(versions: dict[str, Drawn], y: Tensor) -> dict[str, float]:
    """Accuracy and areas of each version, and how far the logits of the positives moved (Kolmogorov–Smirnov)."""
    values = {
        f"{version}_{name}": value for version, each in versions.items() for name, value in asdict(each.mean).items()
    }
    before = versions["standard"].values[y > 0]
    return values | {f"{version}_ks": ks(before, versions[version].values[y > 0]) for version in ("s", "rest")}
