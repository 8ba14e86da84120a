"""The section `unseen`: clusters, of which training samples and fresh ones are drawn (Frei and others 2023)."""

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
)

SIGMAS = distinct_numbers("≥ 0 and ≤ 10", lambda v: 0 <= v <= 10)


class UnseenSection(Section):
    d: Annotated[int, integer(4, 10**6)]
    ks: Annotated[list[int], distinct_integers(2)]
    per_cluster: Annotated[list[int], distinct_integers(1)]
    sigmas: Annotated[list[float], SIGMAS]
    random_sigmas: Annotated[list[float], SIGMAS]
    width: Annotated[int, integer(2)]
    seeds: Annotated[list[int], distinct_integers(0)]
    init_scale: Annotated[float, number("≥ 1e-6 and ≤ 1e6", lambda v: 1e-6 <= v <= 1e6)]
    log10_target: Annotated[float, number("< 0 (the loss must end below 1)", lambda v: v < 0)]
    max_steps: Annotated[int, integer(1)]
    test: Annotated[int, integer(1)]
    attacked: Annotated[int, integer(1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if max(self.ks) > self.d:
            raise cross("unseen.ks", max(self.ks), f"must be ≤ d = {self.d}: that many centres are orthogonal")
        most = max(max(self.ks) * max(self.per_cluster), self.test) * max(self.d, self.width)
        if most > MOST:
            raise cross("unseen.d", self.d, f"must be smaller: samples times d or width may be at most {MOST}")
        if self.attacked > self.test:
            raise cross("unseen.attacked", self.attacked, f"must be ≤ unseen.test = {self.test}")
        return self


class UnseenParams(TopLevel):
    unseen: UnseenSection
