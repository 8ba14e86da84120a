"""The section `powers`: two-layer networks with powers of ReLU on clusters (Min and Vidal 2024)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import (
    MOST,
    Section,
    TopLevel,
    cross,
    distinct_integers,
    distinct_numbers,
    integer,
    number,
)

POWERS = distinct_numbers("≥ 1 and ≤ 10", lambda v: 1 <= v <= 10)
NOISE = number("≥ 0 and ≤ 10", lambda v: 0 <= v <= 10)
POSITIVE = number("> 0", lambda v: v > 0)


class Varied(Section):
    ps: Annotated[list[float], POWERS]
    ks: Annotated[list[int], distinct_integers(2)]
    alphas: Annotated[list[float], distinct_numbers("≥ 0 and ≤ 10", lambda v: 0 <= v <= 10)]


class PowersSection(Section):
    d: Annotated[int, integer(2, 10**6)]
    k: Annotated[int, integer(2)]
    positive: Annotated[float, number("> 0 and < 1", lambda v: 0 < v < 1)]
    alpha: Annotated[float, NOISE]
    ps: Annotated[list[float], POWERS]
    varied: Varied
    n: Annotated[int, integer(2, 10**7)]
    width: Annotated[int, integer(2)]
    std: Annotated[float, number("> 0 and ≤ 1", lambda v: 0 < v <= 1)]
    lr: Annotated[float, POSITIVE]
    batch: Annotated[int, integer(1)]
    epochs: Annotated[int, integer(1)]
    target: Annotated[float, number("≥ 0", lambda v: v >= 0)]
    seeds: Annotated[list[int], distinct_integers(0)]
    test: Annotated[int, integer(1)]
    attacked: Annotated[int, integer(2)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for key, k in [("k", self.k), *(("varied.ks", k) for k in self.varied.ks)]:
            if k > self.d:
                raise cross(f"powers.{key}", k, f"must be ≤ d = {self.d}: that many centres are orthogonal")
            if not 0 < round(self.positive * k) < k:
                raise cross(f"powers.{key}", k, f"must leave clusters of both labels (positive = {self.positive})")
        if self.attacked > self.test:
            raise cross("powers.attacked", self.attacked, f"must be ≤ powers.test = {self.test}")
        if max(self.n, self.test, self.width) * self.d > MOST:
            raise cross("powers.d", self.d, f"must be smaller: samples or neurons times d may be at most {MOST}")
        return self


class PowersParams(TopLevel):
    powers: PowersSection
