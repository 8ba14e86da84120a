"""The top-level scalars of params.yaml: the headline experiment, so that `dvc exp run -S d=500` is natural."""

from __future__ import annotations

import math
from typing import Annotated, Self

from pydantic import ConfigDict, model_validator

from brittle.params.base import Section, cross, distinct_integers, integer, number, one_of

MOST = 10**10  # numbers in one tensor (40 GB): far more than the paper's largest


def too_large(d: float, alpha: float, width: float) -> bool:
    """Whether d**alpha samples times d or the width are more than MOST; in logarithms, as d**alpha may overflow."""
    return alpha * math.log(d) + math.log(max(d, width)) > math.log(MOST)


class Headline(Section):
    # A stage reads the top level and its own section; the other sections are not its business.
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    d: Annotated[int, integer(2)]
    alpha: Annotated[float, number("> 0", lambda v: v > 0)]
    width: Annotated[int, integer(1)]
    seeds: Annotated[list[int], distinct_integers(0)]
    device: Annotated[str, one_of("auto", "cpu", "cuda")]

    @property
    def m(self) -> int:
        """The number of training samples, m = d^α (VYS §6.1)."""
        return round(self.d**self.alpha)

    @model_validator(mode="after")
    def _fits_a_machine(self) -> Self:
        for key in ("d", "width"):
            if getattr(self, key) > MOST:
                raise cross(key, getattr(self, key), f"must be ≤ {MOST}")
        if too_large(self.d, self.alpha, self.width):
            raise cross("alpha", self.alpha, f"must give d**alpha · max(d, width) ≤ {MOST} (d = {self.d})")
        if self.m < 2:
            raise cross("alpha", self.alpha, f"must give m = round(d**alpha) ≥ 2 samples (d = {self.d})")
        return self
