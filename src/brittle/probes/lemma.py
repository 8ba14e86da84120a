"""Inner products of random points (VYS Lemma 3.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

BLOCK = 2048  # rows of the Gram matrix at a time


@dataclass(frozen=True)
class Lemma31:
    largest: float  # max_{i≠j} |⟨x_i, x_j⟩| of unit vectors
    half: float  # the first bound, ½
    log: float  # the second, log d / √d


def inner_products(x: np.ndarray) -> Lemma31:
    """The largest inner product of unit vectors beside the bounds of Lemma 3.1. (log d/√d exceeds ½ below d = 75.)"""
    largest, d = 0.0, x.shape[1]  # (m, d)
    for i in range(0, len(x), BLOCK):
        gram = np.abs(x[i : i + BLOCK] @ x[i:].T)
        np.fill_diagonal(gram, 0.0)
        largest = max(largest, float(gram.max()))
    return Lemma31(largest, 0.5, math.log(d) / math.sqrt(d))
