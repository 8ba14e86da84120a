"""Tables as markdown that also reads well as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

NONE = "–"  # where there is no number


def table(about: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A line of text, then the table with aligned columns."""
    widths = [max(3, *(len(row[i]) for row in (header, *rows))) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    body = "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )
    return f"{about}\n\n{body}\n"


def read(text: str) -> tuple[str, list[str], list[list[str]]]:
    """The arguments of `table`, from the text it returned; ValueError if it is not such a text."""
    lines = [line.strip() for line in text.splitlines()]
    about = " ".join(line for line in lines if line and not line.startswith("|"))
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    if any(len(row) != len(header) for row in rows):
        raise ValueError("a row is not as long as the header")
    return about, header, rows


def span(values: Iterable[float] | None, form: str = "g") -> str:
    """The range of the values as text, from the smallest to the largest."""
    found = pd.Series(values, dtype=float).dropna()
    if found.empty:
        return NONE
    low, high = format(found.min(), form), format(found.max(), form)
    return low if low == high else f"{low} to {high}"
