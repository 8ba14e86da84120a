"""The section `sweep`: the grids of VYS Figures 1 and 2."""

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
    numbers,
    one_of,
    too_large,
)


class Sweep(Section):
    ds: Annotated[list[int], distinct_integers(2)]
    alphas: Annotated[list[float], distinct_numbers("> 0", lambda v: v > 0)]
    momentum: Annotated[list[float], numbers("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    width: Annotated[int, integer(1)]
    widths: Annotated[list[int], distinct_integers(1)]
    width_ds: Annotated[list[int], distinct_integers(2)]
    seeds: Annotated[list[int], distinct_integers(0)]
    loss: Annotated[str, one_of("exponential", "logistic")]
    log10_target: Annotated[float, number("< 0 (the loss must end below 1)", lambda v: v < 0)]
    max_steps: Annotated[int, integer(1)]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(self.momentum) != len(self.alphas):
            raise cross("sweep.momentum", self.momentum, f"must have one value per alpha ({len(self.alphas)})")
        d, alpha, width = max(self.ds), max(self.alphas), max(self.width, *self.widths)
        if too_large(d, alpha, width):
            raise cross("sweep.alphas", alpha, f"must give d**alpha · max(d, width) ≤ {MOST} (d = {d})")
        if too_large(max(self.width_ds), 1.0, width):
            raise cross("sweep.width_ds", max(self.width_ds), f"must give d · max(d, width) ≤ {MOST}")
        if round(min(self.ds) ** min(self.alphas)) < 2:
            raise cross("sweep.alphas", min(self.alphas), f"must give 2 samples or more (d = {min(self.ds)})")
        return self


class SweepParams(TopLevel):
    sweep: Sweep
