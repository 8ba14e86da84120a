"""Gaussian data: of variance 1/d (VYS §6), which is the sphere of radius 1 up to the spread of the norms, or of 1."""

from __future__ import annotations

import numpy as np

from brittle.worlds.sphere import labels


def sample(d: int, m: int, rng: np.random.Generator, norm: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """x ~ N(0, norm²·I/d), whose norm is nearly `norm` (√d: N(0, I)); y ~ U{±1}, independent of x."""  # (m, d), (m,)
    return rng.standard_normal((m, d)) / (np.sqrt(d) / norm), labels(m, rng)
