"""The settings in which VYS Thm 4.1 applies: orthogonal samples, and a handful of samples on the sphere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brittle.core.rng import rng
from brittle.margin.theory_params import Regime
from brittle.worlds import orthogonal, sphere


@dataclass(frozen=True)
class Setting:
    world: str
    d: int
    m: int

    @property
    def name(self) -> str:
        return f"{self.world}.{self.d}.{self.m}"

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        if self.world == "orthogonal":
            x, y = orthogonal.sample(self.d, self.m)
        else:  # alternating labels, so that both occur
            x = sphere.points(self.d, self.m, rng(seed, "regime data"))
            y = np.where(np.arange(self.m) % 2 == 0, 1.0, -1.0)
        return x.astype("f4"), y.astype("f4")

    def draws(self, seeds: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """One dataset per seed; orthogonal data are the same for all."""
        x, y = zip(*(self.draw(seed) for seed in seeds), strict=True)
        return np.stack(x), np.stack(y)


def settings(p: Regime) -> list[Setting]:
    """All settings: orthogonal samples, p = 0, so m up to (d + 1)/3; on the sphere, p ~ √d·log allows two or three."""
    most = {d: (d + 1) // 3 for d in p.ds}
    ms = {(d, max(2, round(share * most[d]))) for d in p.ds for share in p.shares}
    return [Setting("orthogonal", d, m) for d, m in sorted(ms)] + [Setting("sphere", d, 2) for d in p.sphere_ds]
