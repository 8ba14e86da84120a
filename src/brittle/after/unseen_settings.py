"""The settings of clusters that networks are trained on, and how their samples are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from brittle.after.unseen_params import UnseenSection
from brittle.core.rng import rng
from brittle.worlds.noisy_clusters import labels, orthogonal_centres, random_centres, sample


@dataclass(frozen=True)
class Setting:
    centres: str  # orthogonal or random
    d: int
    k: int  # clusters, half of them positive
    per_cluster: int  # training samples of each
    sigma: float  # of the noise

    @property
    def n(self) -> int:
        return self.k * self.per_cluster

    def draw_centres(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Centres of norm √d and their labels."""  # (k, d), (k,)
        if self.centres == "orthogonal":
            mu = orthogonal_centres(self.d, self.k, math.sqrt(self.d))
        else:
            mu = random_centres(self.d, self.k, rng(seed, "unseen centres"))
        return mu, labels(self.k, (self.k + 1) // 2)

    def draw(self, seed: int, n: int, purpose: str) -> tuple[np.ndarray, np.ndarray]:
        """n samples, others for each purpose."""  # (n, d), (n,)
        return sample(*self.draw_centres(seed), n, self.sigma, rng(seed, f"unseen {purpose}"))


def settings(p: UnseenSection) -> list[Setting]:
    """Every number of clusters and of samples with every noise, orthogonal centres first."""
    noises = [("orthogonal", sigma) for sigma in p.sigmas] + [("random", sigma) for sigma in p.random_sigmas]
    cells = ((centres, sigma, k, per) for centres, sigma in noises for k in p.ks for per in p.per_cluster)
    return [Setting(centres, p.d, k, per, sigma) for centres, sigma, k, per in cells]
