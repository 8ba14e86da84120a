"""The section `cifar10`: FP §8's networks on CIFAR-10, what they are trained against, and what is measured."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import Section, cross, distinct_integers, distinct_numbers, integer, list_of, number, one_of
from brittle.pictures.params import ImagesParams, epochs_in_order

NET = r"alexnet|resnet-(10|16|22|28|34|40)(-([2-9]|10))?"
NETS = "alexnet, resnet-DEPTH or resnet-DEPTH-WIDEN (depth 10, 16, 22, 28, 34 or 40)"
ATTACKER = r"linf-([1-9]\d?|1\d\d|2[0-4]\d|25[0-5])|l2-(0\.\d*[1-9]|[1-9]\d*(\.\d+)?)(-0\.\d*[1-9])?"
ATTACKERS = "linf-K (radius K/255), l2-EPS or l2-EPS-SIGMA (with noise)"
POSITIVE = number("> 0", lambda v: v > 0)
NOT_NEGATIVE = number("≥ 0", lambda v: v >= 0)
SHARE = number("≥ 0 and < 1", lambda v: 0 <= v < 1)
SIZE = integer(1, 10**6)


class Rate(Section):
    lr: Annotated[float, POSITIVE]
    weight_decay: Annotated[float, NOT_NEGATIVE]


class AlexNetRate(Rate):
    initial: Annotated[str, one_of("he", "torch")]


class Stretch(Section):
    """Some epochs of training; `rate` is a factor of the network's learning rate."""

    epochs: Annotated[int, SIZE]
    rate: Annotated[float, POSITIVE]
    drops: Annotated[list[int], epochs_in_order()]


class Perturb(Section):
    """How training perturbs pictures; the same for every attacker."""

    l2_steps: Annotated[int, SIZE]
    linf_steps: Annotated[int, SIZE]
    copies: Annotated[int, SIZE]
    warmup: Annotated[float, SHARE]


class Layers(Section):
    numbers: Annotated[list[int], distinct_integers(1)]
    clean: Stretch
    robust: Stretch


class Measure(Section):
    """How robust accuracy is measured."""

    pictures: Annotated[int, SIZE]
    steps: Annotated[int, SIZE]
    restarts: Annotated[int, SIZE]


class Visualise(Section):
    layers: Annotated[list[int], distinct_integers(1)]
    neurons: Annotated[int, SIZE]
    steps: Annotated[int, SIZE]
    lr: Annotated[float, POSITIVE]
    decay: Annotated[float, SHARE]


class Lasso(Section):
    pictures: Annotated[int, SIZE]
    weights: Annotated[list[float], distinct_numbers("> 0 and < 1", lambda v: 0 < v < 1)]
    tolerance: Annotated[float, POSITIVE]


class Cifar10(Section):
    nets: Annotated[list[str], list_of(NET, NETS)]
    samples: Annotated[int, integer(2, 50_000)]
    test: Annotated[int, integer(2, 10_000)]
    seeds: Annotated[list[int], distinct_integers(0)]
    first: Annotated[float, POSITIVE]
    batch: Annotated[int, integer(2, 50_000)]
    momentum: Annotated[float, SHARE]
    alexnet: AlexNetRate
    resnet: Rate
    factor: Annotated[float, POSITIVE]
    clean: Stretch
    robust: Stretch
    direct: Stretch
    again: Stretch
    attackers: Annotated[list[str], list_of(ATTACKER, ATTACKERS)]
    perturb: Perturb
    layers: Layers
    measure: Measure
    visualise: Visualise
    lasso: Lasso

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.batch > self.samples:
            raise cross("cifar10.batch", self.batch, f"must be ≤ samples = {self.samples}")
        for key, value in (("measure.pictures", self.measure.pictures), ("lasso.pictures", self.lasso.pictures)):
            if value > self.test:
                raise cross(f"cifar10.{key}", value, f"must be ≤ test = {self.test}")
        for net in self.nets:
            deepest = deepest_layer(net)
            for key, numbers in (("layers.numbers", self.layers.numbers), ("visualise.layers", self.visualise.layers)):
                if min(numbers) > deepest:
                    raise cross(f"cifar10.{key}", numbers, f"must have one ≤ {deepest}, the convolutions of {net}")
        return self


def deepest_layer(net: str) -> int:
    """The number of the network's last convolution."""
    return 5 if net == "alexnet" else int(net.split("-")[1]) - 3


class Cifar10Params(ImagesParams):
    cifar10: Cifar10
