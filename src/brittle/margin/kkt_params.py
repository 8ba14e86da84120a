"""The section `kkt`: how near to a KKT point training comes."""

from __future__ import annotations

from typing import Annotated

from brittle.core.params import MOST, Section, TopLevel, distinct_integers, distinct_numbers, integer, number

LARGE = round(MOST**0.5)  # m · max(d, width) ≤ MOST


class KKT(Section):
    d: Annotated[int, integer(2, LARGE)]
    m: Annotated[int, integer(2, LARGE)]
    width: Annotated[int, integer(1, LARGE)]
    seeds: Annotated[list[int], distinct_integers(0)]
    init_scales: Annotated[list[float], distinct_numbers("≥ 1e-6 and ≤ 1e6", lambda v: 1e-6 <= v <= 1e6)]
    log10_levels: Annotated[list[float], distinct_numbers("< 0", lambda v: v < 0)]
    momentum: Annotated[float, number("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    max_steps: Annotated[int, integer(1)]
    kink: Annotated[float, number("> 0 and ≤ 0.1", lambda v: 0 < v <= 0.1)]


class KKTParams(TopLevel):
    kkt: KKT
