"""Gaussian data of variance 1/d (VYS §6): the sphere of radius 1, up to the spread of the norms."""

from __future__ import annotations

import numpy as np

from brittle.worlds.sphere import labels


def sample(d: int, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x ~ N(0, I/d), y ~ U{±1}, independent of x."""  # (m, d), (m,)
    return rng.standard_normal((m, d)) / np.sqrt(d), labels(m, rng)
