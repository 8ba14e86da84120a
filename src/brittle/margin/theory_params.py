"""The section `theory`: VYS's theorems on data within their assumptions."""

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
    too_large,
)

SCALE = number("≥ 1e-6 and ≤ 1e6", lambda v: 1e-6 <= v <= 1e6)
SCALES = distinct_numbers("≥ 1e-6 and ≤ 1e6", lambda v: 1e-6 <= v <= 1e6)


class Lemma(Section):
    ds: Annotated[list[int], distinct_integers(3)]
    alphas: Annotated[list[float], distinct_numbers("> 0", lambda v: v > 0)]
    draws: Annotated[int, integer(1)]
    large_ds: Annotated[list[int], distinct_integers(3)]


class Regime(Section):
    ds: Annotated[list[int], distinct_integers(8)]
    shares: Annotated[list[float], distinct_numbers("> 0 and ≤ 1", lambda v: 0 < v <= 1)]
    sphere_ds: Annotated[list[int], distinct_integers(8)]
    large_d: Annotated[int, integer(8)]
    large_m: Annotated[int, integer(2)]
    width: Annotated[int, integer(2)]
    init_scale: Annotated[float, SCALE]
    widths: Annotated[list[int], distinct_integers(2)]
    init_scales: Annotated[list[float], SCALES]
    seeds: Annotated[list[int], distinct_integers(0)]
    log10_target: Annotated[float, number("< 0 (the loss must end below 1)", lambda v: v < 0)]
    momentum: Annotated[float, number("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    max_steps: Annotated[int, integer(1)]


class Theory(Section):
    robust_ds: Annotated[list[int], distinct_integers(8)]
    robust_alphas: Annotated[list[float], distinct_numbers("> 0", lambda v: v > 0)]
    seeds: Annotated[list[int], distinct_integers(0)]
    example_ds: Annotated[list[int], distinct_integers(4)]
    lemma: Lemma
    regime: Regime

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for key, ds, alphas in (
            ("robust_alphas", self.robust_ds, self.robust_alphas),
            ("lemma.alphas", self.lemma.ds, self.lemma.alphas),
        ):
            if too_large(max(ds), max(alphas), 1):
                raise cross(f"theory.{key}", max(alphas), f"must give d · d**alpha ≤ {MOST} (d = {max(ds)})")
            if round(min(ds) ** min(alphas)) < 2:
                raise cross(f"theory.{key}", min(alphas), f"must give 2 samples or more (d = {min(ds)})")
        if too_large(max(self.lemma.large_ds), 0.5, 1):
            raise cross("theory.lemma.large_ds", max(self.lemma.large_ds), f"must give d · √d ≤ {MOST}")
        if self.regime.large_m * max(self.regime.large_d, *self.regime.widths) > MOST:
            raise cross("theory.regime.large_m", self.regime.large_m, f"must give m · max(d, width) ≤ {MOST}")
        if odd := [d for d in self.example_ds if d % 2]:
            raise cross("theory.example_ds", odd[0], "must be even (VYS §5.1: half of the labels are positive)")
        return self


class TheoryParams(TopLevel):
    theory: Theory
