"""Uniform data on a sphere: of radius √d, as in VYS §6, or of another one."""

from __future__ import annotations

import numpy as np


def points(d: int, m: int, rng: np.random.Generator, radius: float | None = None) -> np.ndarray:
    """m independent points, uniform on √d·S^(d-1), or on the sphere of that radius."""  # (m, d)
    x = rng.standard_normal((m, d))
    return x * ((np.sqrt(d) if radius is None else radius) / np.linalg.norm(x, axis=1, keepdims=True))


def labels(m: int, rng: np.random.Generator) -> np.ndarray:
    """m independent fair labels, ±1."""  # (m,)
    return rng.choice([-1.0, 1.0], size=m)


def sample(d: int, m: int, rng: np.random.Generator, radius: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """x ~ U(√d·S^(d-1)), or on the sphere of that radius; y ~ U{±1}, independent of x."""  # (m, d), (m,)
    return points(d, m, rng, radius), labels(m, rng)
