"""How long a stage takes with other parameters: predicted from its seconds at the quick scale.

A stage's work is taken to grow with each of a few parameters: a number counts as it is, a list by its length. The
seconds at the quick scale were measured on 2 idle cores. These are predictions, good to a factor of two or so; every
table of evidence says beside it how long it really took.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]  # parameters by dotted name


@dataclass(frozen=True)
class Cost:
    """The seconds of a stage (of one cell, if it is a matrix) at the quick scale, and what they grow with."""

    seconds: float
    grows: tuple[str, ...] = ()  # dotted names of parameters; each may have an exponent: "sparse.d^2"


SLABS = ("slabs.samples", "slabs.training.epochs", "slabs.worlds")
CIFAR = ("cifar10.samples",)
HARDENED = ("adversarial.seeds", "adversarial.l2", "adversarial.momentum")
COSTS = {
    "theory": Cost(6, ("theory.robust_ds", "theory.robust_alphas^5", "theory.lemma.draws^0.8")),
    "kkt_train": Cost(40, ("kkt.seeds", "kkt.init_scales", "kkt.d", "kkt.m", "kkt.width^0.5")),
    "kkt_probe": Cost(10, ("kkt.seeds", "kkt.init_scales")),
    # Of the dimensions the largest costs most: Muon's steps grow like d³, as do exact crossings at depth 3.
    "optimisers_train": Cost(55, ("optimisers.seeds", "optimisers.init_scales", "optimisers.growth.ds^3")),
    "optimisers_attack": Cost(
        25, ("optimisers.seeds", "optimisers.certified^0.5", "optimisers.init_scales", "optimisers.growth.ds^5")
    ),
    "variants_train": Cost(35, ("variants.seeds", "variants.m", "variants.transfer.inits^0.3")),
    "regime_train": Cost(10, ("theory.regime.seeds", "theory.regime.widths", "theory.regime.init_scales^0.5")),
    "regime_attack": Cost(10, ("theory.regime.seeds", "theory.regime.widths", "theory.regime.init_scales^0.5")),
    "title_attack": Cost(3, ("title.samples",)),
    # A step is mostly overhead at the quick scale; one of 5000 and one of 196 samples take .07 s together at d = 300.
    "minibatch_train": Cost(4, ("minibatch.seeds", "minibatch.d^1.5", "minibatch.width", "minibatch.every")),
    "certify": Cost(12, ("certify.nets", "certify.samples^0.5")),
    "slabs_train": Cost(25, (*SLABS, "slabs.training.cnn.seeds^0.5")),
    "slabs_probe": Cost(20, ("slabs.models", "slabs.permutations")),
    "slabs_attack": Cost(20, ("slabs.models",)),
    "features_train": Cost(25, ("features.complex", "features.alone^0.3", "features.samples", "features.seeds")),
    "recipes_train": Cost(45, ("recipes.seeds", "recipes.regularised.epochs^0.5")),
    "noisy_train": Cost(60, ("noisy.epochs^0.7", "noisy.seeds")),
    "adversarial_train": Cost(30, ("adversarial.samples", "adversarial.epochs", "adversarial.steps", *HARDENED)),
    "adversarial_probe": Cost(15, ("adversarial.attacked", *HARDENED)),
    "lsn": Cost(10, ("lsn.ds^3", "lsn.seeds", "lsn.units", "lsn.margins")),
    "f_star": Cost(5, ("f_star.ds", "f_star.samples")),
    "sparse_train": Cost(
        35, ("sparse.d^1.5", "sparse.random.neurons^0.5", "sparse.random.clean.steps^0.5", "sparse.pure.seeds")
    ),
    "sparse_probe": Cost(25, ("sparse.d", "sparse.pure.certified", "sparse.pure.seeds")),
    "sparse_grid": Cost(30, ("sparse.grid.ds^2", "sparse.grid.random_ds^2")),
    "sparse_low": Cost(15, ("sparse.low.samples", "sparse.d")),
    "mnist_cifar_probe": Cost(25, ("mnist_cifar.test", "mnist_cifar.uap.epochs^0.5")),
    # With the samples grow the dimensions and the noise points that they ask for.
    "perturbed_noise": Cost(12, ("perturbed_noise.samples^5", "perturbed_noise.width")),
    "reconstruct": Cost(
        25, tuple(f"reconstruct.{key}" for key in ("seeds", "restarts", "steps", "log10_levels", "ms"))
    ),
    "xor": Cost(5, ("xor.seeds", "xor.widths^0.5")),
    "mid_training": Cost(6, ("mid_training.ds", "mid_training.samples", "mid_training.seeds")),
    "unseen": Cost(30, ("unseen.d", "unseen.seeds", "unseen.test^0.5")),
    "powers_train": Cost(30, ("powers.d^2.5", "powers.width", "powers.seeds")),  # more updates, too, where d is larger
    "powers_attack": Cost(20, ("powers.d", "powers.width", "powers.seeds", "powers.attacked")),
    "cifar10_train": Cost(
        140, (*CIFAR, "cifar10.clean.epochs^0.4", "cifar10.robust.epochs^0.3", "cifar10.attackers^0.6")
    ),
    "cifar10_layers": Cost(40, (*CIFAR, "cifar10.layers.numbers")),
    "cifar10_probe": Cost(30, ("cifar10.measure.pictures", "cifar10.attackers")),
    "cifar10_lasso": Cost(25, ("cifar10.lasso.pictures",)),
}
# Seconds of one core to train with a picture of MNIST-CIFAR once, by stem (by hand, batches of 32), and what is left of
# them with two.
PICTURE = {
    "mobilenet_v2": {"imagenet": 0.003, "cifar": 0.033},
    "googlenet": {"imagenet": 0.004, "cifar": 0.21},
    "resnet50": {"imagenet": 0.013, "cifar": 0.038},
    "densenet121": {"imagenet": 0.008, "cifar": 0.028},
}
BOTH = 0.6
OTHER = Cost(4)  # drawing data, tables: mostly the start of Python
GRID = 16_200.0  # seconds of the 110 cells of VYS Figures 1 and 2 (benchmarks/grid.py on 2 idle cores)


def seconds(stage: str, quick: Values, wanted: Values) -> float:
    """The predicted seconds of a stage, or of one cell of a matrix (`sweep_train@400`), with the wanted parameters."""
    name, _, cell = stage.partition("@")
    if name == "sweep_train":
        d = int(cell)
        pairs = zip(wanted["sweep.alphas"], wanted["sweep.momentum"], strict=True)
        return _grid(wanted, [(d, alpha, wanted["sweep.width"], beta) for alpha, beta in pairs])
    if name == "widths_train":
        return _grid(wanted, [(d, 1.0, int(cell), 0.0) for d in wanted["sweep.width_ds"]])
    if name == "mnist_cifar_train":
        return BOTH * _pictures(wanted, cell) * PICTURE[cell][wanted["mnist_cifar.stem"]]
    cost = COSTS.get(name, OTHER)
    growth = 1.0
    if name == "mnist_cifar_probe":
        growth = _each_once(wanted) / _each_once(quick)
    for key in cost.grows:
        key, _, power = key.partition("^")
        growth *= (_size(wanted[key]) / _size(quick[key])) ** float(power or 1)
    return cost.seconds * growth


def _size(value: Any) -> float:
    return float(len(value)) if isinstance(value, list) else float(value)


def _pictures(values: Values, model: str) -> float:
    """How many pictures train a network on MNIST-CIFAR, at most; one alone counts half, one attacked as its steps."""
    of = {key.removeprefix("mnist_cifar."): value for key, value in values.items() if key.startswith("mnist_cifar.")}
    worlds = [f"{model}@{world}" for world in of["worlds"] if f"{model}@{world}" not in of["skip"]]
    networks = sum(len(of["seeds"]) if world in of["more_seeds"] else 1 for world in worlds)
    found = networks * of["samples"] * of["training.epochs"]
    if model in of["alone.models"]:
        found += of["alone.samples"] * of["alone.epochs"] / 2
    if model in of["adversarial.models"]:
        found += of["adversarial.samples"] * of["adversarial.epochs"] * (1 + 0.7 * of["adversarial.steps"])
    return float(found)


def _each_once(values: Values) -> float:
    """Seconds to show every model a picture."""
    return sum(PICTURE[model][values["mnist_cifar.stem"]] for model in values["mnist_cifar.models"])


def _work(d: int, alpha: float, width: int, momentum: float) -> float:
    """Operations of one cell of VYS Figures 1 and 2: of a step, times the growth of the number of steps."""
    m = round(d**alpha)
    return width * (m * m if m < 2 * d else 2 * m * d) * m**0.3 * (1 - momentum) ** 0.5


def _grid(wanted: Values, cells: list[tuple[int, float, int, float]]) -> float:
    ds = range(100, 1001, 100)
    every = [(d, a, 1000, b) for d in ds for a, b in ((0.5, 0.0), (0.8, 0.0), (1.0, 0.0), (1.2, 0.7), (1.5, 0.9))]
    every += [(d, 1.0, width, 0.0) for d in ds for width in (100, 500, 1000, 2000, 4000, 8000)]
    share = sum(_work(*cell) for cell in cells) / sum(_work(*cell) for cell in every)
    return math.ceil(GRID * share * len(wanted["sweep.seeds"]) / 5)
