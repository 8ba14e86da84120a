"""The section `adversarial`: SB's appendix on adversarial training."""

from __future__ import annotations

from typing import Annotated

from brittle.core.params import Section, distinct_integers, distinct_numbers, integer
from brittle.slabs.params import (
    FCN,
    POSITIVE,
    SIMPLE_WORLD,
    SIZE,
    SlabsParams,
    name,
)


class Adversarial(Section):
    world: Annotated[str, SIMPLE_WORLD]
    model: Annotated[str, name(FCN, "fcn-WIDTH-DEPTH")]
    samples: Annotated[int, integer(10, 10**8)]
    l2: Annotated[list[float], distinct_numbers("> 0", lambda v: v > 0)]
    linf: Annotated[list[float], distinct_numbers("> 0", lambda v: v > 0)]
    steps: Annotated[int, SIZE]
    step: Annotated[float, POSITIVE]
    lr: Annotated[float, POSITIVE]
    momentum: Annotated[list[float], distinct_numbers("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    epochs: Annotated[int, integer(1)]
    along: Annotated[list[int], distinct_integers(1)]
    seeds: Annotated[list[int], distinct_integers(0)]
    attacked: Annotated[int, integer(1, 10**6)]


class AdversarialParams(SlabsParams):
    adversarial: Adversarial
