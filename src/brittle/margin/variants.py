"""The networks of the variants: one loss or one kind of data changed at a time, and many networks on one dataset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brittle.core.rng import rng
from brittle.margin.variants_params import Variants
from brittle.worlds import clusters, gaussian, sphere


@dataclass(frozen=True)
class Variant:
    name: str
    world: str
    loss: str
    width: int
    data_seeds: list[int]
    init_seeds: list[int]

    def draw(self, p: Variants, seed: int) -> tuple[np.ndarray, np.ndarray]:
        g = rng(seed, "margin data")
        if self.world == "sphere":
            x, y = sphere.sample(p.d, p.m, g)
        elif self.world == "gaussian":
            x, y = gaussian.sample(p.d, p.m, g)
        else:
            x, y = clusters.sample(p.d, p.m, p.cluster_size, p.cluster_spread, g)
        return x.astype("f4"), y.astype("f4")

    def draws(self, p: Variants) -> tuple[np.ndarray, np.ndarray]:
        """The data of each network."""
        x, y = zip(*(self.draw(p, seed) for seed in self.data_seeds), strict=True)
        return np.stack(x), np.stack(y)


def headline(p: Variants) -> list[Variant]:
    """The headline experiment and one change to it at a time (VYS §6, Cor 4.1)."""
    kinds = [
        ("sphere", "exponential"),
        ("sphere", "logistic"),
        ("gaussian", "exponential"),
        ("clusters", "exponential"),
    ]
    return [Variant(f"{world}.{loss}", world, loss, p.width, p.seeds, p.seeds) for world, loss in kinds]


def transfer(p: Variants) -> list[Variant]:
    """Networks of several widths, losses and initial weights, all on the first seed's data."""
    t, losses = p.transfer, ("exponential", "logistic")
    data = [p.seeds[0]] * len(t.inits)
    return [Variant(f"transfer.{w}.{loss}", "sphere", loss, w, data, t.inits) for w in t.widths for loss in losses]
