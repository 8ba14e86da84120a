"""The section `cross`: every remedy and every probe in every world."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import Rule, Section, TopLevel, cross, distinct_integers, integer, list_of, number
from brittle.slabs.params import SIMPLE

POSITIVE = number("> 0", lambda v: v > 0)
NOT_NEGATIVE = number("≥ 0", lambda v: v >= 0)
SHARE = number("≥ 0 and < 1", lambda v: 0 <= v < 1)
SIZE = integer(1, 10**7)
WORLDS = f"sphere|{SIMPLE}|sparse|mnist-cifar"
REMEDIES = (
    "nothing",
    "adversarial",
    "ensemble",
    "weight_decay",
    "dropout",
    "sam",
    "muon",
    "power_relu",
    "spectral_decoupling",
    "diverse",
    "noised",
)


class Radius(Section):
    sphere: Annotated[float, POSITIVE]
    linear: Annotated[float, POSITIVE]
    slab: Annotated[float, POSITIVE]
    pictures: Annotated[float, POSITIVE]


class Samples(Section):
    sphere: Annotated[int, integer(4, 10**5)]
    slabs: Annotated[int, integer(10, 10**7)]
    sparse: Annotated[int, integer(10, 10**7)]
    pictures: Annotated[int, integer(10, 10**5)]
    test: Annotated[int, integer(10, 10**5)]


class Training(Section):
    updates: Annotated[int, SIZE]
    batch: Annotated[int, SIZE]
    lr: Annotated[float, POSITIVE]
    momentum: Annotated[float, SHARE]
    target: Annotated[float, NOT_NEGATIVE]
    pictures_updates: Annotated[int, SIZE]
    pictures_lr: Annotated[float, POSITIVE]
    pictures_batch: Annotated[int, SIZE]


class Strength(Section):
    adversarial: Annotated[int, SIZE]
    pictures_adversarial: Annotated[int, SIZE]
    steps: Annotated[int, integer(1, 1000)]
    ensemble: Annotated[int, integer(2, 100)]
    weight_decay: Annotated[float, NOT_NEGATIVE]
    dropout: Annotated[float, SHARE]
    sam: Annotated[float, NOT_NEGATIVE]
    muon: Annotated[float, POSITIVE]
    power_relu: Annotated[float, POSITIVE]
    spectral_decoupling: Annotated[float, NOT_NEGATIVE]
    diverse: Annotated[float, NOT_NEGATIVE]
    noised: Annotated[float, number("≥ 0 and ≤ 1", lambda v: 0 <= v <= 1)]


class Measure(Section):
    attacked: Annotated[int, SIZE]
    bracketed: Annotated[int, integer(0, 10**6)]
    permutations: Annotated[int, integer(1, 1000)]


class Cross(Section):
    plugins: Annotated[str, Rule("the path of a folder", lambda v: isinstance(v, str) and v != "")]
    worlds: Annotated[list[str], list_of(WORLDS, "sphere, lms-K, noisy-lms-K, ms-K-L with K < L, sparse, mnist-cifar")]
    remedies: Annotated[list[str], list_of("|".join(REMEDIES), ", ".join(REMEDIES))]
    seeds: Annotated[list[int], distinct_integers(0)]
    dimension: Annotated[int, integer(2, 10**5)]
    samples: Samples
    radius: Radius
    training: Training
    strength: Strength
    measure: Measure

    @model_validator(mode="after")
    def _compared(self) -> Self:
        if "nothing" not in self.remedies:
            raise cross(
                "cross.remedies", self.remedies, "must have nothing among them: the others are compared with it"
            )
        return self


class CrossParams(TopLevel):
    cross: Cross
