"""Noise: points that are uniform in a cube, with labels that tell nothing."""

from __future__ import annotations

import numpy as np

from brittle.worlds.sphere import labels


def sample(d: int, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """x ~ U[-1, 1]^d; y ~ U{±1}, independent of x."""  # (m, d), (m,)
    return rng.uniform(-1, 1, (m, d)), labels(m, rng)
