"""The section `perturbed_noise`: learning from noise that a network has perturbed (Kumano, Kera, Yamasaki 2024)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import MOST, Rule, Section, TopLevel, cross, distinct_integers, integer, number

EVEN = Rule("an even integer ≥ 2", lambda v: type(v) is int and v >= 2 and v % 2 == 0)


class PerturbedNoise(Section):
    ds: Annotated[list[int], distinct_integers(2)]
    samples: Annotated[int, integer(2)]
    noises: Annotated[list[int], distinct_integers(2)]
    width: Annotated[int, EVEN]
    radius: Annotated[float, number("> 0 and ≤ 1", lambda v: 0 < v <= 1)]
    fresh: Annotated[int, integer(10, 10**6)]
    seeds: Annotated[list[int], distinct_integers(0)]
    log10_target: Annotated[float, number("< 0 (the loss must end below 1)", lambda v: v < 0)]
    max_steps: Annotated[int, integer(1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if max(self.noises) * max(*self.ds, self.width) > MOST:
            raise cross("perturbed_noise.noises", self.noises, f"must give noises · max(d, width) ≤ {MOST}")
        return self


class PerturbedNoiseParams(TopLevel):
    perturbed_noise: PerturbedNoise
