"""The section `minibatch`: a cell of VYS Figures 1 and 2 whose samples are more than a batch of the paper's SGD."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import MOST, Section, TopLevel, cross, distinct_integers, integer, number, too_large

METHODS = ("protocol", "flow")  # the paper's SGD in its mini-batches; plain descent on all samples, flow's own path


class Minibatch(Section):
    d: Annotated[int, integer(2)]
    alpha: Annotated[float, number("> 0", lambda v: v > 0)]
    width: Annotated[int, integer(1)]
    seeds: Annotated[list[int], distinct_integers(0)]
    batch: Annotated[int, integer(1)]
    every: Annotated[int, integer(1)]
    log10_target: Annotated[float, number("< 0 (the loss must end below 1)", lambda v: v < 0)]

    @property
    def m(self) -> int:
        return round(self.d**self.alpha)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if too_large(self.d, self.alpha, self.width):
            raise cross("minibatch.alpha", self.alpha, f"must give d**alpha · max(d, width) ≤ {MOST} (d = {self.d})")
        if self.batch >= self.m:
            words = f"must be less than the samples, m = round(d**alpha) = {self.m}"
            raise cross("minibatch.batch", self.batch, words)
        return self


class MinibatchParams(TopLevel):
    minibatch: Minibatch
