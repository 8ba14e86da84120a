"""A network's row in the tables of SB: its scores as they are, and with S or all but S from other samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

import torch
from torch import Tensor

from brittle.core.rng import rng
from brittle.nets.family import Family
from brittle.probes.randomised import Drawn, ks, randomised
from brittle.slabs.draws import Sample
from brittle.slabs.groups import TrainedGroup


def network(family: Family, trained: TrainedGroup, i: int, where: torch.device) -> Callable[[Tensor], Tensor]:
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
    """Scores on the test samples. Each seed has its own donors, so the spread over seeds includes that of the draws."""
    stream = rng(seed, "donors")
    return randomised(f, sample.x_test, sample.y_test, sample.q_s, stream, permutations, versions)


def row(versions: dict[str, Drawn], y: Tensor) -> dict[str, float]:
    """Accuracy and areas of each version, and how far the logits of the positives moved (Kolmogorov–Smirnov)."""
    values = {
        f"{version}_{name}": value for version, each in versions.items() for name, value in asdict(each.mean).items()
    }
    before = versions["standard"].values[y > 0]
    return values | {f"{version}_ks": ks(before, versions[version].values[y > 0]) for version in ("s", "rest")}
