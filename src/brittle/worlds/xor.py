"""XOR in the plane, also skewed (Tsoy & Konstantinov 2024): no line through the origin separates the labels."""

from __future__ import annotations

import numpy as np

SPREAD, CUT = 0.1, 0.2  # of the noise around a centre: E‖noise‖² = SPREAD², and all ‖noise‖ < CUT


def sample(n: int, angle: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """n points around ±(1, 0) with the label -1 and around ±(cos, sin) of the angle with the label 1.

    Those of a label are symmetric about its axis's normal, and the other label's are the same, reflected, as in the
    authors' code. n: a multiple of 4; at π/2 this is XOR.
    """  # (n, 2), (n,)
    noise = rng.normal(0, SPREAD / np.sqrt(2), (n, 2))  # four times as many as are needed, 2 % of which lie too far out
    x = noise[(noise**2).sum(1) < CUT**2][: n // 4] + np.array([1.0, 0.0])
    x = np.concatenate([x, x * [-1.0, 1.0]])
    c, s = np.cos(angle), np.sin(angle)
    return np.concatenate([x, x @ np.array([[c, s], [s, -c]])]), np.repeat([-1.0, 1.0], len(x))
