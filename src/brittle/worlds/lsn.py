"""The LSN world of SB §3.1: a linear coordinate, one of three slabs, and noise; intervals shrunk to points (Thm 1)."""

from __future__ import annotations

import numpy as np

from brittle.core.rng import normal32


def sample(d: int, n: int, rng: np.random.Generator, margin: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """y = ±1, x_1 = y, x_2 = ((y+1)/2)·ε with ε = ±1, and x_3, …, x_d standard Gaussian, independent of the label.

    margin: x_1 = y times this. The slab's points are 1 apart, those of the linear coordinate 2 × this.
    """
    x = normal32((n, d), rng)  # (n, d)
    y, epsilon = rng.choice(np.array([-1, 1], dtype=np.float32), size=(2, n))  # (n,), (n,)
    x[:, 0], x[:, 1] = margin * y, (y + 1) / 2 * epsilon
    return x, y
