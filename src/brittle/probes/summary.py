"""Means and standard deviations over seeds, under stable names."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd


def over_seeds(name: str, table: pd.DataFrame, columns: Iterable[str]) -> dict[str, float]:
    """`name.column.mean` and `name.column.std` (n - 1 in the denominator; nan for one seed)."""
    stats = table[list(columns)].agg(["mean", "std"])
    return {f"{name}.{column}.{stat}": float(stats.loc[stat, column]) for column in stats for stat in stats.index}
