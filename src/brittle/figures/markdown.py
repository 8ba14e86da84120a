"""Tables as markdown that also reads well as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

NONE = "–"  # where there is no number


def table(about: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A line of words, then the table, its columns aligned."""
    widths = [max(3, *(len(row[i]) for row in (header, *rows))) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    body = "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )
    return f"{about}\n\n{body}\n"


def span(values: Iterable[float] | None, form: str = "g") -> str:
    """From the smallest to the largest."""
    found = pd.Series(values, dtype=float).dropna()
    if found.empty:
        return NONE
    low, high = format(found.min(), form), format(found.max(), form)
    return low if low == high else f"{low} to {high}"
