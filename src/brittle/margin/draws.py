"""Sphere data for many stages: drawn where they are needed, not stored, as drawing costs nothing."""

from __future__ import annotations

import numpy as np

from brittle.core.rng import rng
from brittle.worlds import sphere


def draw(d: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same samples as the headline experiment has at this d, m and seed."""  # (m, d), (m,)
    x, y = sphere.sample(d, m, rng(seed, "margin data"))
    return x.astype("f4"), y.astype("f4")


def draws(d: int, m: int, seeds: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """One dataset per seed."""  # (s, m, d), (s, m)
    x, y = zip(*(draw(d, m, seed) for seed in seeds), strict=True)
    return np.stack(x), np.stack(y)
