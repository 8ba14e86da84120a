"""The headline experiment of VYS §6: its top-level scalars, and the section `margin` on data and training."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import MOST, Section, TopLevel, cross, distinct_integers, integer, number, one_of, too_large


class Headline(TopLevel):
    """The scalars of the headline experiment, at the top level so that `dvc exp run -S d=500` sets one."""

    d: Annotated[int, integer(2)]
    alpha: Annotated[float, number("> 0", lambda v: v > 0)]
    width: Annotated[int, integer(1)]
    seeds: Annotated[list[int], distinct_integers(0)]

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


class Clusters(Section):
    size: Annotated[int, integer(1)]
    spread: Annotated[float, number("≥ 0 and < 1", lambda v: 0 <= v < 1)]


class Flow(Section):
    momentum: Annotated[float, number("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    max_steps: Annotated[int, integer(1)]


class Protocol(Section):
    batch: Annotated[int, integer(1)]
    lr: Annotated[float, number("> 0 and ≤ 1", lambda v: 0 < v <= 1)]
    growth: Annotated[float, number("≥ 1", lambda v: v >= 1)]
    every: Annotated[int, integer(1)]
    max_steps: Annotated[int, integer(1)]


class Margin(Section):
    world: Annotated[str, one_of("sphere", "gaussian", "orthogonal", "clusters")]
    clusters: Clusters
    loss: Annotated[str, one_of("exponential", "logistic")]
    log10_target: Annotated[float, number("< 0 (the loss must end below 1)", lambda v: v < 0)]
    init_scale: Annotated[float, number("≥ 1e-6 and ≤ 1e6", lambda v: 1e-6 <= v <= 1e6)]
    method: Annotated[str, one_of("flow", "protocol")]
    flow: Flow
    protocol: Protocol
    slack: Annotated[float, number("≥ 1", lambda v: v >= 1)]


class MarginParams(Headline):
    margin: Margin

    @model_validator(mode="after")
    def _fits_the_world(self) -> Self:
        world, size = self.margin.world, self.margin.clusters.size
        if world == "orthogonal" and self.m > self.d:
            raise cross("alpha", self.alpha, "must be ≤ 1 where margin.world is orthogonal (d axes hold d samples)")
        if world == "clusters" and self.m < 2 * size:
            raise cross("margin.clusters.size", size, f"must leave two clusters or more among m = {self.m} samples")
        return self
