"""How the tests of claims say what they change in a table, and what verdict they then expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from brittle.report.papers import PAPERS
from brittle.verdicts import Finding, Found

CLAIMS = {claim.id: claim for paper in PAPERS for claim in paper.in_order()}
Change = Callable[[pd.DataFrame], pd.DataFrame]
INF = float("inf")
NAN = float("nan")


def table(**columns: object) -> pd.DataFrame:
    return pd.DataFrame(columns)


def scaled(column: str, factor: float) -> Change:
    return lambda t: t.assign(**{column: t[column] * factor})


def one(column: str, value: float, row: int = -1) -> Change:
    """One row changed: enough to refute a rule that says "every"."""

    def change(t: pd.DataFrame) -> pd.DataFrame:
        t = t.copy()
        t[column] = t[column].astype(float)
        t.loc[t.index[row], column] = value
        return t

    return change


def where(column: str, value: float, **cell: object) -> Change:
    """The column changed in all rows of a cell: all its seeds, so that the new number is no accident."""

    def change(t: pd.DataFrame) -> pd.DataFrame:
        chosen = pd.Series(True, index=t.index)
        for axis, coordinate in cell.items():
            chosen &= t[axis] == coordinate
        assert chosen.any(), f"no row has {cell}"
        return t.assign(**{column: t[column].astype(float).mask(chosen, value)})

    return change


def without(**cell: object) -> Change:
    """The table without the rows of a cell."""

    def change(t: pd.DataFrame) -> pd.DataFrame:
        chosen = pd.Series(True, index=t.index)
        for axis, coordinate in cell.items():
            chosen &= t[axis] == coordinate
        assert chosen.any(), f"no row has {cell}"
        return t[~chosen]

    return change


def found(id: str, tables: Mapping[str, pd.DataFrame], change: Change = lambda t: t, path: str = "") -> Finding:
    """What the claim's rule finds after a change of one table: the first that it reads, or `path`."""
    path = path or CLAIMS[id].reads[0]
    return CLAIMS[id].judged(Found({**tables, path: change(tables[path])}))
