"""The section `lsn`: SB Theorem 1, on linear, slab and noise coordinates."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import (
    MOST,
    Rule,
    Section,
    TopLevel,
    cross,
    distinct_integers,
    distinct_numbers,
    integer,
    number,
)


class Lsn(Section):
    ds: Annotated[list[int], distinct_integers(3)]
    wide_ds: Annotated[list[int], distinct_integers(3)]
    margins: Annotated[list[float], distinct_numbers("> 0 and ≤ 1", lambda v: 0 < v <= 1)]
    units: Annotated[int, Rule("an even integer ≥ 2", lambda v: type(v) is int and v >= 2 and v % 2 == 0)]
    eta: Annotated[float, number("> 0 and ≤ 4", lambda v: 0 < v <= 4)]
    c: Annotated[float, number("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    samples: Annotated[float, number("> 0", lambda v: v > 0)]
    test: Annotated[int, integer(10, 10**7)]
    seeds: Annotated[list[int], distinct_integers(0)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.samples * max(self.ds) ** 3 > MOST:
            raise cross("lsn.ds", self.ds, f"must give samples · d³ ≤ {MOST}")
        if self.samples * max(self.wide_ds) ** 4 > MOST:
            raise cross("lsn.wide_ds", self.wide_ds, f"must give samples · d⁴ ≤ {MOST}")
        return self


class LsnParams(TopLevel):
    lsn: Lsn
