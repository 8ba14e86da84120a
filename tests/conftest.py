"""A copy of this repository, as it is now (committed or not), in which tests run the real commands."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings
from ruamel.yaml import YAML

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take
from brittle.tools.graph import stages
from tiny import TINY, make_tiny, set_params

settings.register_profile("brittle", deadline=None)  # a busy machine is no bug
settings.load_profile("brittle")

# Two processes test side by side: one thread each, or they wait for one another. (Before anything imports torch.)
os.environ |= {"OMP_NUM_THREADS": "1", "BRITTLE_THREADS": "1"}

ROOT = Path(__file__).parents[1]
LARGE = 10_000_000  # bytes
ENV = os.environ | {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "GIT_AUTHOR_NAME": "test",
    "GIT_AUTHOR_EMAIL": "test@example.org",
    "GIT_COMMITTER_NAME": "test",
    "GIT_COMMITTER_EMAIL": "test@example.org",
    "DVC_NO_ANALYTICS": "1",
}
ENV.pop("PYTHONPATH", None)
MODULES = {name: stage.module for name, stage in stages().items()}  # that each stage runs


def stages_ran(printed: str) -> list[str]:
    """The names of the stages that DVC says it ran, whichever dvc.yaml they stand in."""
    found = [line.split("'")[1] for line in printed.splitlines() if line.startswith("Running stage")]
    return [address.rpartition(":")[2] for address in found]


def _copied(source: str, target: str) -> None:
    """Copy a file; link a large one, as of pictures: DVC and `store` replace files, they do not write in them."""
    if os.path.getsize(source) > LARGE:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


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
        return stages_ran(out)

    def commit(self, message: str) -> None:
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message", message)

    def set(self, **changes: Any) -> None:
        """Change params.yaml; a section's key is written section__key."""
        set_params(self.path / "params.yaml", {key.replace("__", "."): value for key, value in changes.items()})

    def copy(self, path: Path) -> Repo:
        shutil.copytree(self.path, path, symlinks=True, copy_function=_copied)
        return Repo(path)


@pytest.fixture(scope="session")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Git has, whatever a run of the pipeline here has left in the workspace since."""
    folder = tmp_path_factory.mktemp("committed")
    command = ["git", "archive", "--format=zip", "HEAD"]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    zipfile.ZipFile(io.BytesIO(packed)).extractall(folder)
    return folder


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """This repository in its first commit, nothing run.

    New files of code are copied, too. What lies in the folders of results and is not in Git is a run's that was here.
    """
    path = tmp_path_factory.mktemp("fresh") / "brittle"

    def listed(*options: str) -> list[str]:
        command = ["git", "ls-files", "-z", *options]
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        return [name for name in found if name]

    new = listed("--others", "--exclude-standard")
    made = ("data/", "models/", "metrics/", "plots/")
    for name in [*listed("--cached"), *(name for name in new if not name.startswith(made))]:
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


def bring_pictures(repo: Repo) -> None:
    """MNIST and CIFAR-10 in this copy, from the user's own folder if there is one; skip where nobody has them."""
    if (ROOT / "data/raw").is_dir():
        (repo.path / "data/raw").symlink_to(ROOT / "data/raw")
    file = "pipelines/pictures/dvc.yaml"
    command = ["dvc", "repro", f"{file}:mnist", f"{file}:cifar10"]
    out = subprocess.run(command, cwd=repo.path, env=ENV, capture_output=True, text=True, timeout=600).stderr
    if "no source has it" in out:
        pytest.skip(next(line for line in out.splitlines() if "no source has it" in line))


@pytest.fixture(scope="session")
def reproduced(fresh: Repo, tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The same after `make repro`, the headline experiment at the scale of params.yaml, the rest of it tiny.

    `dvc repro` leaves the same (test_local.py, with BRITTLE_WHOLE=1), later.
    """

    def make(repo: Repo) -> None:
        make_tiny(repo.path)
        bring_pictures(repo)
        repo.run("python", "-m", "brittle.scale", "--workers", "2", timeout=1800)
        repo.commit("all stages")

    return made_once("reproduced", fresh, make, tmp_path_factory)


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
    """This repository with the stages SMALL alone, in one dvc.yaml, tiny, nothing run and nothing of the results."""
    repo = fresh.copy(tmp_path_factory.mktemp("small") / "brittle")
    set_params(repo.path / "params.yaml", TINY | {"d": 20, "width": 50, "seeds": [0, 1]})
    yaml = YAML()
    yaml.width = 4096
    every = stages(repo.path)
    chosen = {name: {k: v for k, v in every[name].definition.items() if k != "wdir"} for name in SMALL}
    yaml.dump({"stages": chosen}, repo.path / "dvc.yaml")
    (repo.path / "dvc.lock").unlink()
    shutil.rmtree(repo.path / "pipelines")
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
