"""Random numbers."""

from __future__ import annotations

import zlib

import numpy as np


def rng(seed: int, purpose: str) -> np.random.Generator:
    """An independent stream for each seed and purpose, the same on every machine and device."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


def normal32(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Standard normal numbers in float32, rounded from those in float64.

    Those that numpy draws in float32 depend on the C library's expf and log1pf, which newer releases round differently.
    """
    return rng.standard_normal(shape).astype(np.float32)
