"""The networks of the variants: one loss or one kind of data changed at a time, and many networks on each dataset."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from brittle.core.rng import rng
from brittle.margin.variants_params import Variants
from brittle.worlds import clusters, gaussian, sphere


@dataclass(frozen=True)
class Data:
    """One kind of data. Norm and distribution are changed apart, because either alone may make the difference."""

    world: str
    unit: bool = False  # of norm 1, or nearly so, instead of √d

    @property
    def name(self) -> str:
        return f"{self.world}.unit" if self.unit else self.world

    def draw(self, p: Variants, seed: int) -> tuple[np.ndarray, np.ndarray]:
        g, norm = rng(seed, "margin data"), 1.0 if self.unit else math.sqrt(p.d)
        if self.world == "sphere":
            x, y = sphere.sample(p.d, p.m, g, norm)
        elif self.world == "gaussian":
            x, y = gaussian.sample(p.d, p.m, g, norm)
        else:
            x, y = clusters.sample(p.d, p.m, p.cluster_size, p.cluster_spread, g, orthogonal=True)
        return x.astype("f4"), y.astype("f4")


@dataclass(frozen=True)
class Variant:
    name: str
    data: Data
    loss: str
    width: int
    data_seeds: list[int]
    init_seeds: list[int]

    def draw(self, p: Variants, seed: int) -> tuple[np.ndarray, np.ndarray]:
        return self.data.draw(p, seed)

    def draws(self, p: Variants) -> tuple[np.ndarray, np.ndarray]:
        """The data of each network."""
        x, y = zip(*(self.draw(p, seed) for seed in self.data_seeds), strict=True)
        return np.stack(x), np.stack(y)


SPHERE, GAUSSIAN, CLUSTERS = Data("sphere"), Data("gaussian"), Data("clusters")
UNIT_SPHERE, UNIT_GAUSSIAN = Data("sphere", unit=True), Data("gaussian", unit=True)
SHARED = (SPHERE, GAUSSIAN, UNIT_SPHERE)  # a dataset of each for one z; the last has the fewest samples on the margin


def headline(p: Variants) -> list[Variant]:
    """The headline experiment and one change to it at a time (VYS §6, Cor 4.1)."""
    kinds = [
        (SPHERE, "exponential"),
        (SPHERE, "logistic"),
        (UNIT_GAUSSIAN, "exponential"),
        (CLUSTERS, "exponential"),
        (GAUSSIAN, "exponential"),
        (UNIT_SPHERE, "exponential"),  # the control: the norm without the Gaussian
    ]
    return [Variant(f"{data.name}.{loss}", data, loss, p.width, p.seeds, p.seeds) for data, loss in kinds]


def transfer(p: Variants) -> list[Variant]:
    """Networks of several widths, losses and initial weights, on the first seed's dataset of each kind."""
    t, seed = p.transfer, [p.seeds[0]] * len(p.transfer.inits)
    cells = [(data, width, loss) for data in SHARED for width in t.widths for loss in ("exponential", "logistic")]
    return [Variant(f"transfer.{data.name}.{w}.{loss}", data, loss, w, seed, t.inits) for data, w, loss in cells]
