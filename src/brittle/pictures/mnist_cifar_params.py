"""The section `mnist_cifar`: SB's images of a digit above a picture, and what is trained on them."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import Rule, Section, cross, distinct_integers, integer, list_of, number, one_of
from brittle.pictures.params import ImagesParams, epochs_in_order
from brittle.worlds.classes import CLASSES

MODELS = ("mobilenet_v2", "googlenet", "resnet50", "densenet121")
STEMS = ("imagenet", "cifar")
KIND = "|".join(CLASSES)
WORLD = rf"(\d)-(?!\1)\d-({KIND})-(?!\2)({KIND})"
MODEL = "|".join(MODELS)
POSITIVE = number("> 0", lambda v: v > 0)
NOT_NEGATIVE = number("≥ 0", lambda v: v >= 0)
SHARE = number("≥ 0 and < 1", lambda v: 0 <= v < 1)
SIZE = integer(1, 10**6)
PAIRS = integer(4, 10**6)


class Training(Section):
    batch: Annotated[int, integer(2, 10**5)]
    epochs: Annotated[int, SIZE]
    lr: Annotated[float, POSITIVE]
    momentum: Annotated[float, SHARE]
    weight_decay: Annotated[float, NOT_NEGATIVE]
    drops: Annotated[list[int], epochs_in_order()]
    factor: Annotated[float, POSITIVE]
    target: Annotated[float, NOT_NEGATIVE]


class Adversarial(Section):
    models: Annotated[list[str], list_of(MODEL, ", ".join(MODELS), least=0)]
    samples: Annotated[int, PAIRS]
    eps: Annotated[float, number("> 0 and ≤ 1", lambda v: 0 < v <= 1)]
    steps: Annotated[int, SIZE]
    warmup: Annotated[float, NOT_NEGATIVE]
    epochs: Annotated[int, SIZE]
    recalibrate: Annotated[bool, Rule("true or false", lambda v: isinstance(v, bool))]


class Alone(Section):
    models: Annotated[list[str], list_of(MODEL, ", ".join(MODELS), least=0)]
    samples: Annotated[int, PAIRS]
    epochs: Annotated[int, SIZE]
    lr: Annotated[float, POSITIVE]


class Uap(Section):
    eps: Annotated[float, POSITIVE]
    step: Annotated[float, POSITIVE]
    steps: Annotated[int, SIZE]
    epochs: Annotated[int, SIZE]
    samples: Annotated[int, PAIRS]


class MnistCifar(Section):
    worlds: Annotated[list[str], list_of(WORLD, "DIGIT-DIGIT-CLASS-CLASS, two digits and two classes of CIFAR-10")]
    models: Annotated[list[str], list_of(MODEL, ", ".join(MODELS))]
    skip: Annotated[list[str], list_of(f"({MODEL})@.+", "MODEL@WORLD", least=0)]
    stem: Annotated[str, one_of(*STEMS)]
    size: Annotated[int, integer(1, 8)]
    samples: Annotated[int, PAIRS]
    test: Annotated[int, PAIRS]
    seeds: Annotated[list[int], distinct_integers(0)]
    more_seeds: Annotated[list[str], list_of(f"({MODEL})@.+", "MODEL@WORLD", least=0)]
    training: Training
    adversarial: Adversarial
    alone: Alone
    permutations: Annotated[int, integer(1, 1000)]
    uap: Uap

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for key, names in (("skip", self.skip), ("more_seeds", self.more_seeds)):
            for name in names:
                if not re.fullmatch(WORLD, name.partition("@")[2]):
                    raise cross(f"mnist_cifar.{key}", name, "must be MODEL@WORLD, the world DIGIT-DIGIT-CLASS-CLASS")
        for model in self.models:
            if all(f"{model}@{world}" in self.skip for world in self.worlds):
                raise cross("mnist_cifar.skip", self.skip, f"must leave {model} a world; or take it out of models")
        for key, part in (("", self), ("adversarial.", self.adversarial), ("alone.", self.alone)):
            if part.samples < self.training.batch:
                words = f"must be at least training.batch = {self.training.batch}"
                raise cross(f"mnist_cifar.{key}samples", part.samples, words)
        if self.uap.samples >= self.test:
            words = f"must be < test = {self.test}: the other samples measure it"
            raise cross("mnist_cifar.uap.samples", self.uap.samples, words)
        return self


class MnistCifarParams(ImagesParams):
    mnist_cifar: MnistCifar
