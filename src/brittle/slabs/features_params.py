"""The section `features`: SB Fig 3(b), a growing number of complex features beside the simple one."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import MOST, Section, cross, distinct_integers, integer
from brittle.slabs.params import (
    FCN,
    POSITIVE,
    SIMPLE_WORLD,
    SlabsParams,
    name,
)


class Features(Section):
    world: Annotated[str, SIMPLE_WORLD]
    complex: Annotated[list[int], distinct_integers(1)]
    alone: Annotated[list[int], distinct_integers(1)]
    samples: Annotated[int, integer(10, 10**8)]
    model: Annotated[str, name(FCN, "fcn-WIDTH-DEPTH")]
    lr: Annotated[float, POSITIVE]
    seeds: Annotated[list[int], distinct_integers(0)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.samples * (1 + max(self.complex)) > MOST:
            raise cross("features.complex", self.complex, f"must give samples · (1 + complex) ≤ {MOST}")
        if not set(self.alone) <= set(self.complex):
            raise cross("features.alone", self.alone, f"must be among features.complex = {self.complex}")
        return self


class FeaturesParams(SlabsParams):
    features: Features
