"""The sections of "The Pitfalls of Simplicity Bias" (SB): the worlds of §3.1, what is trained on them, and how."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import model_validator

from brittle.core.params import (
    MOST,
    Rule,
    Section,
    TopLevel,
    cross,
    distinct_integers,
    integer,
    number,
    one_of,
)

SIMPLE = r"(noisy-)?lms-[357]|ms-3-[57]|ms-5-7"  # the worlds that have one feature simpler than all others
MODEL = r"fcn-[1-9]\d{0,4}-[1-9]\d?|cnn-[1-9]\d{0,3}-[1-9]\d?-[1-9]\d?|gru-[1-9]\d{0,3}-[1-9]\d{0,3}-[1-9]\d?"
FCN = r"fcn-[1-9]\d{0,4}-[1-9]\d?"
WORLDS = "lms-K, noisy-lms-K or ms-K-L with K < L (among 3, 5 and 7)"
MODELS = "fcn-WIDTH-DEPTH, cnn-FILTERS-SIZE-DEPTH (an odd size) or gru-UNITS-READS-DEPTH"
OPTIMISERS = ("sgd", "adam", "rmsprop")  # SB's
ACTIVATIONS = ("relu", "leaky_relu", "prelu", "tanh")


def _name(pattern: str) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            return False
        return not value.startswith("cnn") or int(value.split("-")[2]) % 2 == 1

    return holds


def name(pattern: str, words: str) -> Rule:
    return Rule(words, _name(pattern))


def names(pattern: str, words: str) -> Rule:
    holds = _name(pattern)
    return Rule(
        f"a list of one or more different names: {words}",
        lambda v: isinstance(v, list) and 0 < len(v) == len(set(map(str, v))) and all(map(holds, v)),
    )


def some_of(*choices: str) -> Rule:
    return Rule(
        f"a list of different ones of {', '.join(choices)}",
        lambda v: isinstance(v, list) and 0 < len(v) == len(set(map(str, v))) and set(map(str, v)) <= set(choices),
    )


SIMPLE_WORLD, SIMPLE_WORLDS = name(SIMPLE, WORLDS), names(SIMPLE, WORLDS)
POSITIVE = number("> 0", lambda v: v > 0)
NOT_NEGATIVE = number("≥ 0", lambda v: v >= 0)
MOMENTUM = number("≥ 0 and < 1", lambda v: 0 <= v < 1)
SIZE = integer(1, 10**5)


class Optimiser(Section):
    """How networks of one architecture are trained, and with which seeds."""

    seeds: Annotated[list[int], distinct_integers(0)]
    optimiser: Annotated[str, one_of(*OPTIMISERS, "muon")]
    lr: Annotated[float, POSITIVE]
    momentum: Annotated[float, MOMENTUM]


class Training(Section):
    batch: Annotated[int, SIZE]
    epochs: Annotated[int, integer(1)]
    target: Annotated[float, NOT_NEGATIVE]
    weight_decay: Annotated[float, NOT_NEGATIVE]
    fcn: Optimiser
    cnn: Optimiser
    gru: Optimiser


class Uap(Section):
    eps_linear: Annotated[float, POSITIVE]
    eps_slab: Annotated[float, POSITIVE]
    step: Annotated[float, POSITIVE]
    steps: Annotated[int, SIZE]
    epochs: Annotated[int, SIZE]
    samples: Annotated[int, integer(2, 10**7)]


class Slabs(Section):
    d: Annotated[int, integer(2, 10**4)]
    gamma: Annotated[float, number("> 0 and < 1/6 (seven slabs must fit)", lambda v: 0 < v < 1 / 6)]
    b: Annotated[float, POSITIVE]
    noise: Annotated[float, number("> 0 and < 1", lambda v: 0 < v < 1)]
    rotate: Annotated[bool, Rule("true or false", lambda v: isinstance(v, bool))]
    samples: Annotated[int, integer(10, 10**8)]
    test: Annotated[int, integer(10, 10**7)]
    seed: Annotated[int, integer(0)]
    worlds: Annotated[list[str], SIMPLE_WORLDS]
    models: Annotated[list[str], names(MODEL, MODELS)]
    skip: Annotated[list[str], Rule("a list of MODEL@WORLD, or []", lambda v: _pairs(v))]
    training: Training
    permutations: Annotated[int, integer(1, 1000)]
    ensembles: Annotated[list[int], distinct_integers(2)]
    uap: Uap

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.samples * self.d > MOST:
            raise cross("slabs.samples", self.samples, f"must give samples · d ≤ {MOST} (d = {self.d})")
        for world in self.worlds:
            if all(f"{model}@{world}" in self.skip for model in self.models):
                raise cross("slabs.skip", self.skip, f"must leave {world} a model; or take it out of slabs.worlds")
        if max(self.ensembles) > len(self.training.fcn.seeds):
            words = f"must be ≤ the number of slabs.training.fcn.seeds, {len(self.training.fcn.seeds)}"
            raise cross("slabs.ensembles", self.ensembles, words)
        for model in self.models:
            if model.startswith("gru") and int(model.split("-")[2]) > self.d:
                raise cross(
                    "slabs.models", self.models, f"{model} must read no more numbers at a time than d = {self.d}"
                )
            if all(f"{model}@{world}" in self.skip for world in self.worlds):
                raise cross("slabs.skip", self.skip, f"must leave {model} a world; or take it out of slabs.models")
        return self


def _pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(v, str) and re.fullmatch(f"({MODEL})@({SIMPLE})", v) for v in value
    )


class SlabsParams(TopLevel):
    slabs: Slabs
