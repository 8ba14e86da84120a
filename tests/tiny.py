"""The whole pipeline at a scale of seconds: its parameters, and pictures that need no download."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

# The parts beside the headline experiment at a scale of seconds: for tests of how stages fit together, not of numbers.
TINY: dict[str, Any] = {
    "sweep.ds": [16, 20],
    "sweep.alphas": [0.5, 1.0],
    "sweep.momentum": [0.0, 0.0],
    "sweep.width": 50,
    "sweep.widths": [40],
    "sweep.width_ds": [16, 20],
    "sweep.seeds": [0, 1],
    "theory.robust_ds": [40],
    "theory.robust_alphas": [0.5],
    "theory.seeds": [0],
    "theory.example_ds": [16],
    "theory.lemma.ds": [20, 100],
    "theory.lemma.draws": 2,
    "theory.regime.ds": [24],
    "theory.regime.shares": [0.5, 1.0],
    "theory.regime.sphere_ds": [100],
    "theory.regime.width": 40,
    "theory.regime.seeds": [0],
    "theory.regime.log10_target": -30,
    "variants.d": 20,
    "variants.m": 20,
    "variants.width": 100,
    "variants.seeds": [0, 1],
    "variants.cluster_size": 5,
    "variants.transfer.widths": [50],
    "variants.transfer.inits": [0, 1],
    "certify.nets": 1,
    "certify.samples": 5,
    "kkt.d": 16,
    "kkt.m": 16,
    "kkt.width": 50,
    "kkt.seeds": [0],
    "kkt.init_scales": [1.0, 0.1],
    "kkt.log10_levels": [-2, -30],
    "optimisers.d": 20,
    "optimisers.m": 20,
    "optimisers.width": 50,
    "optimisers.rules": ["gd", "muon"],
    "optimisers.deep_widths": [30, 30],
    "optimisers.deep_rules": ["gd"],
    "optimisers.seeds": [0],
    "optimisers.certified": 3,
    "slabs.d": 10,
    "slabs.samples": 600,
    "slabs.test": 200,
    "slabs.models": ["fcn-8-1", "cnn-2-3-1", "gru-3-5-1"],
    "slabs.skip": ["gru-3-5-1@ms-5-7"],
    "slabs.training.epochs": 2,
    "slabs.training.fcn.seeds": [0, 1],
    "slabs.permutations": 1,
    "slabs.ensembles": [2],
    "slabs.uap.steps": 2,
    "slabs.uap.samples": 50,
    "features.complex": [3, 5],
    "features.samples": 300,
    "features.model": "fcn-8-1",
    "recipes.model": "fcn-6-2",
    "recipes.activations": ["relu", "tanh"],
    "recipes.optimisers": ["sgd", "adam", "rmsprop"],
    "recipes.skip": ["relu-adam@lms-7"],
    "recipes.seeds": [0],
    "recipes.regularised.models": ["fcn-6-1"],
    "recipes.regularised.dropouts": [0.0, 0.1],
    "recipes.regularised.epochs": 1,
    "noisy.samples": 300,
    "noisy.models": ["fcn-6-1"],
    "noisy.epochs": 2,
    "noisy.alone.epochs": 2,
    "adversarial.model": "fcn-8-1",
    "adversarial.samples": 300,
    "adversarial.l2": [0.2],
    "adversarial.linf": [0.05],
    "adversarial.steps": 2,
    "adversarial.epochs": 1,
    "adversarial.attacked": 20,
    "f_star.ds": [4, 8],
    "f_star.samples": 10,
    "lsn.ds": [8, 16],
    "lsn.units": 4,
    "lsn.test": 100,
    "lsn.seeds": [0],
    "sparse.d": 16,
    "sparse.words": 16,
    "sparse.k": 3,
    "sparse.test": 40,
    "sparse.tau": 0.3,
    "sparse.taus": [0.2, 0.3],
    "sparse.spikes": 1.0,
    "sparse.starts": ["random", "pure"],
    "sparse.random.neurons": 300,
    "sparse.random.lottery.bias": 0.5,
    "sparse.random.lottery.until": 2,
    "sparse.random.clean.steps": 20,
    "sparse.random.adversarial.steps": 4,
    "sparse.random.also": ["pgd", "direct"],
    "sparse.random.certified": 1,
    "sparse.pure.seeds": [0],
    "sparse.pure.clean.steps": 20,
    "sparse.pure.adversarial.steps": 4,
    "sparse.pure.also": [],
    "sparse.pure.certified": 1,
    "sparse.low.samples": 300,
    "sparse.low.trainings": ["clean", "fgm", "pgd"],
    "sparse.low.linear.epochs": 1,
    "sparse.low.ntk.width": 8,
    "sparse.low.ntk.epochs": 1,
    "sparse.grid.ds": [16],
    "sparse.grid.ks": [2],
    "sparse.grid.random_ds": [12],
    "mnist_cifar.worlds": ["0-1-automobile-truck", "1-4-automobile-truck"],
    "mnist_cifar.models": ["mobilenet_v2"],
    "mnist_cifar.skip": [],
    "mnist_cifar.samples": 8,
    "mnist_cifar.test": 12,
    "mnist_cifar.training.batch": 4,
    "mnist_cifar.training.epochs": 1,
    "mnist_cifar.training.drops": [1],
    "mnist_cifar.adversarial.samples": 4,
    "mnist_cifar.adversarial.steps": 1,
    "mnist_cifar.adversarial.epochs": 1,
    "mnist_cifar.alone.samples": 8,
    "mnist_cifar.alone.epochs": 1,
    "mnist_cifar.permutations": 2,
    "mnist_cifar.uap.samples": 6,
    "mnist_cifar.uap.epochs": 1,
    "cifar10.nets": ["alexnet", "resnet-10"],
    "cifar10.samples": 16,
    "cifar10.test": 40,
    "cifar10.batch": 8,
    "cifar10.clean.epochs": 1,
    "cifar10.robust.epochs": 1,
    "cifar10.direct.epochs": 1,
    "cifar10.again.epochs": 1,
    "cifar10.attackers": ["l2-1-0.25", "linf-8"],
    "cifar10.perturb.l2_steps": 1,
    "cifar10.perturb.linf_steps": 1,
    "cifar10.layers.numbers": [1, 3],
    "cifar10.layers.clean.epochs": 1,
    "cifar10.layers.robust.epochs": 1,
    "cifar10.measure.pictures": 8,
    "cifar10.measure.steps": 2,
    "cifar10.measure.restarts": 1,
    "cifar10.visualise.layers": [1, 3],
    "cifar10.visualise.neurons": 2,
    "cifar10.visualise.steps": 2,
    "cifar10.lasso.pictures": 2,
    "cifar10.lasso.weights": [0.5, 0.3],
    "cross.worlds": ["sphere", "lms-5", "sparse", "mnist-cifar"],
    "cross.remedies": ["nothing", "adversarial", "ensemble"],
    "cross.dimension": 10,
    "cross.samples.sphere": 10,
    "cross.samples.slabs": 200,
    "cross.samples.sparse": 100,
    "cross.samples.pictures": 20,
    "cross.samples.test": 20,
    "cross.training.updates": 20,
    "cross.training.batch": 32,
    "cross.training.pictures_updates": 2,
    "cross.training.pictures_batch": 8,
    "cross.strength.adversarial": 2,
    "cross.strength.pictures_adversarial": 2,
    "cross.strength.ensemble": 2,
    "cross.measure.attacked": 6,
    "cross.measure.bracketed": 3,
    "cross.measure.permutations": 1,
}


def set_params(file: Path, changes: dict[str, Any]) -> None:
    """Change values of a parameter file by their dotted names; comments stay."""
    yaml = YAML()
    yaml.width = 4096
    content = yaml.load(file)
    for key, value in changes.items():
        *path, last = key.split(".")
        section = content
        for part in path:
            section = section[part]
        assert last in section, key
        section[last] = value
    yaml.dump(content, file)


def make_tiny(folder: Path) -> None:
    """All parts of a copy of this repository but the headline experiment at a scale of seconds, nothing run."""
    set_params(folder / "params.yaml", TINY | {"cifar10.nets": ["alexnet"]})
    (folder / "dvc.lock").unlink()
    for name in ("sweep", "widths", "slabs", "mnist_cifar", "cross"):  # the committed cells are of another grid
        shutil.rmtree(folder / "plots" / name, ignore_errors=True)


def few_pictures(name: str, root: str) -> dict[str, np.ndarray]:
    """Noise in the shape of MNIST or CIFAR-10, with every label."""
    shape, draws = {"mnist": (28, 28), "cifar10": (32, 32, 3)}[name], np.random.default_rng(0)
    x = {f"{split}_x": draws.integers(0, 256, (100, *shape), dtype=np.uint8) for split in ("train", "test")}
    return x | {f"{split}_y": np.arange(100, dtype=np.uint8) % 10 for split in ("train", "test")}


if __name__ == "__main__":
    make_tiny(Path(sys.argv[1]))
