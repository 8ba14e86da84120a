"""Means and standard deviations over seeds, under stable names; spreads over samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

RESAMPLINGS = 1000


def over_seeds(name: str, table: pd.DataFrame, columns: Iterable[str]) -> dict[str, float]:
    """`name.column.mean` and `name.column.std` (n - 1 in the denominator; nan for one seed)."""
    stats = table[list(columns)].agg(["mean", "std"])
    return {f"{name}.{column}.{stat}": float(stats.loc[stat, column]) for column in stats for stat in stats.index}


def resampled(values: Iterable[float], statistic: Callable[[np.ndarray], float] = np.median) -> float:
    """The spread of a statistic of samples, over a thousand resamplings of them."""
    values, rng = np.asarray(list(values), dtype=float), np.random.default_rng(0)
    if len(values) < 2:
        return math.nan
    draws = rng.integers(len(values), size=(RESAMPLINGS, len(values)))
    return float(np.std([statistic(values[draw]) for draw in draws]))
