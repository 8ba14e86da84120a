"""The section `noisy`: SB Table 2, a simple feature that is less predictive than the complex ones."""

from __future__ import annotations

from typing import Annotated

from brittle.core.params import Rule, Section, distinct_integers, distinct_numbers, integer
from brittle.slabs.params import (
    FCN,
    NOT_NEGATIVE,
    POSITIVE,
    SlabsParams,
    names,
)


class Grid(Section):
    lr: Annotated[list[float], distinct_numbers("> 0", lambda v: v > 0)]
    batch: Annotated[list[int], distinct_integers(1)]
    momentum: Annotated[list[float], distinct_numbers("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    weight_decay: Annotated[list[float], distinct_numbers("≥ 0", lambda v: v >= 0)]


class Alone(Section):
    worlds: Annotated[list[str], names(r"ms-[357]", "ms-3, ms-5, ms-7")]
    lr: Annotated[float, POSITIVE]
    weight_decay: Annotated[float, NOT_NEGATIVE]
    epochs: Annotated[int, integer(1)]


class Noisy(Section):
    k: Annotated[int, Rule("3, 5 or 7", lambda v: v in (3, 5, 7) and not isinstance(v, bool))]
    samples: Annotated[int, integer(10, 10**8)]
    models: Annotated[list[str], names(FCN, "fcn-WIDTH-DEPTH")]
    grid: Grid
    epochs: Annotated[int, integer(1)]
    alone: Alone
    seeds: Annotated[list[int], distinct_integers(0)]


class NoisyParams(SlabsParams):
    noisy: Noisy
