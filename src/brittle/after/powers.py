"""The networks with powers of ReLU that are trained, and the data that each is trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brittle.after.powers_params import PowersSection
from brittle.core.rng import rng
from brittle.nets.power_relu import PowerRelu
from brittle.worlds.noisy_clusters import labels, orthogonal_centres, sample


@dataclass(frozen=True)
class Cell:
    p: float  # the power
    k: int  # clusters
    alpha: float  # length of the noise, in the mean square

    @property
    def name(self) -> str:
        return f"{self.p:g}.{self.k}.{self.alpha:g}"

    def centres(self, of: PowersSection) -> tuple[np.ndarray, np.ndarray]:
        """e_1 … e_K and their labels."""  # (k, d), (k,)
        return orthogonal_centres(of.d, self.k, 1.0), labels(self.k, round(of.positive * self.k))

    def draw(self, of: PowersSection, seed: int, n: int, purpose: str) -> tuple[np.ndarray, np.ndarray]:
        """n samples, others for each purpose; noise has the variance α²/d in each coordinate."""  # (n, d), (n,)
        return sample(*self.centres(of), n, self.alpha / of.d**0.5, rng(seed, f"powers {purpose}"))


def cells(p: PowersSection) -> list[Cell]:
    """Every power; and some of them with other numbers of clusters and other noise."""
    every = [Cell(power, p.k, p.alpha) for power in p.ps]
    every += [Cell(power, k, p.alpha) for power in p.varied.ps for k in p.varied.ks]
    every += [Cell(power, p.k, alpha) for power in p.varied.ps for alpha in p.varied.alphas]
    return list(dict.fromkeys(every))


def family(p: PowersSection, cell: Cell) -> PowerRelu:
    return PowerRelu(p.d, p.width, cell.p, p.std)
