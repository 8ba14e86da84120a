"""A copy of this repository, as it is now (committed or not), in which tests run the real commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings
from ruamel.yaml import YAML

settings.register_profile("brittle", deadline=None)  # a busy machine is no bug
settings.load_profile("brittle")

# Two processes test side by side: one thread each, or they wait for one another. (Before anything imports torch.)
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).parents[1]
ENV = os.environ | {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "GIT_AUTHOR_NAME": "test",
    "GIT_AUTHOR_EMAIL": "test@example.org",
    "GIT_COMMITTER_NAME": "test",
    "GIT_COMMITTER_EMAIL": "test@example.org",
    "DVC_NO_ANALYTICS": "1",
}
ENV.pop("PYTHONPATH", None)

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


def write_example(folder: Path) -> list[str]:
    """The files that docs/plugins.md shows, in this folder; their names."""
    found = re.findall(r"```python\n# plugins/(\w+\.py)\n(.*?)```", (ROOT / "docs/plugins.md").read_text(), re.DOTALL)
    folder.mkdir(exist_ok=True)
    for name, text in found:
        (folder / name).write_text(text)
    return [name for name, _ in found]


class Repo:
    """A working copy and the commands that are run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *command: str, fails: bool = False, timeout: float = 600) -> str:
        done = subprocess.run(command, cwd=self.path, env=ENV, capture_output=True, text=True, timeout=timeout)
        out = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"{' '.join(command)} exited with {done.returncode}:\n{out}"
        return out

    def stages_run(self, *command: str, **options: float) -> list[str]:
        """Run a command; the names of the stages that it ran."""
        out = self.run(*command, **options)
        return [line.split("'")[1] for line in out.splitlines() if line.startswith("Running stage")]

    def commit(self, message: str) -> None:
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message", message)

    def set(self, **changes: Any) -> None:
        """Change params.yaml; a section's key is written section__key."""
        set_params(self.path / "params.yaml", {key.replace("__", "."): value for key, value in changes.items()})

    def copy(self, path: Path) -> Repo:
        shutil.copytree(self.path, path, symlinks=True)
        return Repo(path)


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """This repository in its first commit, nothing run."""
    path = tmp_path_factory.mktemp("fresh") / "brittle"
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name)
    repo = Repo(path)
    repo.run("git", "init", "--quiet", "--initial-branch", "main")
    repo.commit("the repository")
    return repo


def made_once(name: str, begin: Repo, make: Callable[[Repo], None], factory: pytest.TempPathFactory) -> Repo:
    """A copy of a repository in which something has been done, by whichever process that tests is first to want it."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    path, done = shared / name / "brittle", shared / f"{name}.done"
    with FileLock(shared / f"{name}.lock"):
        if not done.exists():
            shutil.rmtree(path, ignore_errors=True)
            make(begin.copy(path))
            done.touch()
    return Repo(path)


@pytest.fixture(scope="session")
def reproduced(fresh: Repo, tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The same after `make scale`, the headline experiment at the scale of params.yaml, the rest of it tiny.

    `dvc repro` leaves the same (test_scale.py, with BRITTLE_WHOLE=1), later: it writes all of dvc.lock at every stage.
    """

    def make(repo: Repo) -> None:
        tiny(repo)
        repo.run("python", "-m", "brittle.scale", "--workers", "2", timeout=1800)
        repo.commit("all stages")

    return made_once("reproduced", fresh, make, tmp_path_factory)


def tiny(repo: Repo) -> None:
    """All parts but the headline experiment at a scale of seconds, nothing run."""
    set_params(repo.path / "params.yaml", TINY | {"cifar10.nets": ["alexnet"]})
    (repo.path / "dvc.lock").unlink()
    for folder in ("sweep", "widths", "slabs", "mnist_cifar", "cross"):  # the committed cells are of another grid
        shutil.rmtree(repo.path / "plots" / folder, ignore_errors=True)


# The headline experiment and the grids of VYS Fig 1 and 2: a pipeline with branches and matrices in which DVC is quick.
SMALL = [
    "params",
    "margin_data",
    "margin_train",
    "margin_attack",
    "margin_figures",
    "sweep_train",
    "sweep_attack",
    "widths_train",
    "widths_attack",
    "sweep_collect",
    "sweep_figures",
]


@pytest.fixture(scope="session")
def small(fresh: Repo, tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """This repository with the stages SMALL alone, tiny, nothing run and nothing of the results."""
    repo = fresh.copy(tmp_path_factory.mktemp("small") / "brittle")
    set_params(repo.path / "params.yaml", TINY | {"d": 20, "width": 50, "seeds": [0, 1]})
    yaml = YAML()
    yaml.width = 4096
    pipeline = yaml.load(repo.path / "dvc.yaml")
    pipeline["stages"] = {name: pipeline["stages"][name] for name in SMALL}
    yaml.dump(pipeline, repo.path / "dvc.yaml")
    (repo.path / "dvc.lock").unlink()
    for room in ("plots", "metrics"):
        shutil.rmtree(repo.path / room)
    repo.commit("a small pipeline")
    return repo


@pytest.fixture(scope="session")
def small_reproduced(small: Repo, tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The same after `dvc repro`, committed."""

    def make(repo: Repo) -> None:
        repo.run("dvc", "repro")
        repo.commit("dvc repro")

    return made_once("small_reproduced", small, make, tmp_path_factory)


@pytest.fixture
def repo(reproduced: Repo, tmp_path: Path) -> Repo:
    """A reproduced copy for one test to change."""
    return reproduced.copy(tmp_path / "brittle")
