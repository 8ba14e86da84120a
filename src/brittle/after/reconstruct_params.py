"""The section `reconstruct`: the training data from the weights (Haim and others 2022)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import Section, TopLevel, cross, distinct_integers, distinct_numbers, integer, number


class Reconstruct(Section):
    d: Annotated[int, integer(2, 10**4)]
    ms: Annotated[list[int], distinct_integers(2)]
    width: Annotated[int, integer(2, 10**4)]
    seeds: Annotated[list[int], distinct_integers(0)]
    init_scale: Annotated[float, number("≥ 1e-6 and ≤ 1e6", lambda v: 1e-6 <= v <= 1e6)]
    log10_levels: Annotated[list[float], distinct_numbers("< 0", lambda v: v < 0)]
    log10_level: Annotated[float, number("< 0", lambda v: v < 0)]
    momentum: Annotated[float, number("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    max_steps: Annotated[int, integer(1)]
    candidates: Annotated[float, number("≥ 1 and ≤ 100", lambda v: 1 <= v <= 100)]
    restarts: Annotated[int, integer(1, 1000)]
    steps: Annotated[int, integer(1)]
    lr: Annotated[float, number("> 0 and ≤ 1", lambda v: 0 < v <= 1)]
    sharpness_first: Annotated[float, number("> 0", lambda v: v > 0)]
    sharpness_last: Annotated[float, number("> 0", lambda v: v > 0)]

    @model_validator(mode="after")
    def _has_the_level(self) -> Self:
        if self.log10_level not in self.log10_levels:
            raise cross("reconstruct.log10_level", self.log10_level, "must be one of reconstruct.log10_levels")
        return self


class ReconstructParams(TopLevel):
    reconstruct: Reconstruct
