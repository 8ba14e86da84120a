"""The section `f_star`: SB §4.3, the classifier that uses every feature."""

from __future__ import annotations

from typing import Annotated

from brittle.core.params import Section, distinct_integers, integer
from brittle.slabs.params import (
    SlabsParams,
    name,
)


class FStar(Section):
    world: Annotated[str, name(r"(noisy-)?lms-[357]", "lms-K or noisy-lms-K (K: 3, 5 or 7)")]
    ds: Annotated[list[int], distinct_integers(2)]
    samples: Annotated[int, integer(1, 10**6)]


class FStarParams(SlabsParams):
    f_star: FStar
