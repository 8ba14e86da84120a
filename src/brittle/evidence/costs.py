"""How long a stage takes with other parameters: predicted from its seconds at the quick scale.

A stage's work is taken to grow with each of a few parameters: a number counts as it is, a list by its length. The
seconds at the quick scale are those of one core. These are predictions, good to a factor of two or so; every table of
evidence says beside it how long it really took.
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
    "sparse_train": Cost(30, ("sparse.d^1.5", "sparse.random.neurons^0.5", "sparse.random.clean.steps^0.5")),
    "sparse_probe": Cost(30, ("sparse.d", "sparse.pure.certified", "sparse.taus")),
    # The largest dimension costs most, and is larger the larger the first is.
    "sparse_grid": Cost(40, ("sparse.d^2", "sparse.grid.ds^2", "sparse.grid.random_ds^2", "sparse.grid.seeds")),
    "sparse_low": Cost(20, ("sparse.low.samples", "sparse.d", "sparse.low.polynomial.degrees^0.2")),
    "mnist_cifar_probe": Cost(25, ("mnist_cifar.test", "mnist_cifar.uap.epochs^0.5")),
    # With the samples grow the dimensions and the noise points that they ask for.
    "perturbed_noise": Cost(12, ("perturbed_noise.samples^5", "perturbed_noise.width")),
    "reconstruct": Cost(
        25, tuple(f"reconstruct.{key}" for key in ("seeds", "restarts", "steps", "log10_levels", "ms"))
    ),
    "xor": Cost(5, ("xor.seeds", "xor.widths^0.5")),
    "mid_training": Cost(6, ("mid_training.ds", "mid_training.samples", "mid_training.seeds")),
    "unseen": Cost(35, ("unseen.d", "unseen.seeds", "unseen.test^0.5")),
    "powers_train": Cost(30, ("powers.d^2.5", "powers.width", "powers.seeds")),  # more updates, too, where d is larger
    "powers_attack": Cost(20, ("powers.d", "powers.width", "powers.seeds", "powers.attacked")),
    "geometry_margins": Cost(6, ("geometry.rules", "geometry.seeds", "geometry.log10_levels^4")),
    "geometry_reliance": Cost(
        15, ("geometry.reliance.samples", "geometry.reliance.epochs", "geometry.reliance.lr.muon^0.7", "geometry.seeds")
    ),
    "off_subspace": Cost(8, ("off_subspace.d", "off_subspace.width", "off_subspace.seeds")),
    # So many networks as attackers, twice, and a few more, each under every attacker.
    "cifar10_probe": Cost(
        35, ("cifar10.measure.pictures", "cifar10.attackers^1.7", "cifar10.visualise.neurons^0.2", "cifar10.seeds")
    ),
    "cifar10_lasso": Cost(35, ("cifar10.lasso.pictures", "cifar10.lasso.weights")),
}
# Seconds of one core to train with a picture of MNIST-CIFAR once, by stem. Measured on an AMD EPYC, in batches of 64
# (ImageNet's stems) or 32 (docs/pictures.md, Speed).
PICTURE = {
    "mobilenet_v2": {"imagenet": 0.0015, "cifar": 0.018},
    "googlenet": {"imagenet": 0.0034, "cifar": 0.16},
    "resnet50": {"imagenet": 0.0095, "cifar": 0.037},
    "densenet121": {"imagenet": 0.0076, "cifar": 0.03},
}
ALEXNET = 1 / 2300  # the same for AlexNet on CIFAR-10, batches of 128
RESIDUAL = 40.0  # a residual network takes about so many times as long
OTHER = Cost(4)  # drawing data, tables: mostly the start of Python
GRID = 16_200.0  # seconds of the 110 cells of VYS Figures 1 and 2 (benchmarks/grid.py)


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
        return _pictures(wanted, cell) * PICTURE[cell][wanted["mnist_cifar.stem"]]
    if name in ("cifar10_train", "cifar10_layers"):
        once = ALEXNET * (1 if cell in ("", "alexnet") else RESIDUAL)
        return once * (_cifar10(wanted) if name == "cifar10_train" else _layers(wanted))
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


def _attacked(values: Values, attacker: str) -> float:
    """How many times as long an epoch takes against an attacker: as in the progress bar of training."""
    steps = values["cifar10.perturb.l2_steps" if attacker.startswith("l2") else "cifar10.perturb.linf_steps"]
    return (1 + 0.7 * steps) * (values["cifar10.perturb.copies"] if attacker.count("-") > 1 else 1)


def _cifar10(values: Values) -> float:
    """How many pictures train the networks of cifar10_train; one attacked counts as its steps."""
    of = {key.removeprefix("cifar10."): value for key, value in values.items() if key.startswith("cifar10.")}
    clean = sum(of[f"{stretch}.epochs"] for stretch in ("clean", "robust", "again"))  # `robust`: the control
    hard = sum(_attacked(values, name) for name in of["attackers"]) * (of["robust.epochs"] + of["direct.epochs"])
    return float(len(of["seeds"]) * of["samples"] * (clean + hard))


def _layers(values: Values) -> float:
    """The same for cifar10_layers, at most, with the robust accuracy that is measured after each epoch of stage 3."""
    of = {key.removeprefix("cifar10."): value for key, value in values.items() if key.startswith("cifar10.")}
    deeper = sum(number > 1 for number in of["layers.numbers"])
    third = of["layers.robust.epochs"] * (1 + _attacked(values, of["attackers"][0]))
    trained = len(of["layers.numbers"]) * third + deeper * of["layers.clean.epochs"]
    attacked = 2 * of["measure.steps"] * of["measure.restarts"] * 0.3 * of["measure.pictures"]  # most are wrong soon
    looks = len(of["layers.numbers"]) * (of["layers.robust.epochs"] + 6)
    return float(len(of["seeds"]) * (of["samples"] * trained + looks * attacked))


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
