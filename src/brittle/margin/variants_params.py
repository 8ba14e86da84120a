"""The section `variants`: the headline experiment with another loss, other data, and one z for many networks."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import MOST, Section, TopLevel, cross, distinct_integers, integer, number


class Transfer(Section):
    widths: Annotated[list[int], distinct_integers(1)]
    inits: Annotated[list[int], distinct_integers(0)]


class Variants(Section):
    d: Annotated[int, integer(2)]
    m: Annotated[int, integer(2)]
    width: Annotated[int, integer(1)]
    seeds: Annotated[list[int], distinct_integers(0)]
    cluster_size: Annotated[int, integer(1)]
    cluster_spread: Annotated[float, number("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    log10_target: Annotated[float, number("< 0 (the loss must end below 1)", lambda v: v < 0)]
    momentum: Annotated[float, number("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    max_steps: Annotated[int, integer(1)]
    transfer: Transfer

    @model_validator(mode="after")
    def _fits(self) -> Self:
        width = max(self.width, *self.transfer.widths)
        if self.m * max(self.d, width) > MOST:
            raise cross("variants.m", self.m, f"must give m · max(d, width) ≤ {MOST}")
        if self.m < 2 * self.cluster_size:
            words = f"must leave two clusters or more among m = {self.m} samples"
            raise cross("variants.cluster_size", self.cluster_size, words)
        if self.m > self.d * self.cluster_size:
            words = (
                f"must give d = {self.d} clusters or fewer of the m = {self.m} samples (their centres are orthogonal)"
            )
            raise cross("variants.cluster_size", self.cluster_size, words)
        return self


class VariantsParams(TopLevel):
    variants: Variants
