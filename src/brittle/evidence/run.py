"""Run what is missing of a preset, and keep each table as it is complete.

The ordinary stages run through DVC, side by side as in `make repro`, in a clone of their own below .evidence/, with the
preset's parameters. The cache and with it the run cache are the project's own. A run may be stopped or killed at any
moment: DVC keeps the stages that are done, long stages keep checkpoints, and what is complete has been kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.core.params import read
from brittle.evidence.plan import Plan, Unit
from brittle.params import overlaid
from brittle.scale.local import LocalRun, cores
from brittle.scale.run import Stopped

FOLDER = Path(".evidence")
CODE = ("src", "dvc.yaml", "pipelines", "params.yaml", "presets", "requirements.lock")
PACKAGES = ("numpy", "scipy", "torch", "torchvision", "scikit-learn", "pandas")


def run(plan: Plan, hours: float, chapter: str = "") -> int:
    """Run the missing units, in order and as many stages at once as there are cores, until the time is up.

    Return the number of units that failed.
    """
    until = time.monotonic() + 3600 * hours
    commit = _commit()
    with _alone():
        home, clone, todo = Path.cwd(), _clone(plan, commit).absolute(), plan.missing(chapter)
        if not todo:
            print("nothing is missing")
            return 0
        names = ", ".join(unit.made.removeprefix("plots/") for unit in todo)
        print(f"{len(todo)} tables are missing, about {lasts(plan.seconds_of(todo))}: {names}", flush=True)
        kept: set[str] = set()

        def keep(name: str) -> None:
            for unit in todo:
                if unit.stage == name and unit.made not in kept:
                    kept.add(unit.made)
                    _keep(unit, clone, home / unit.kept, commit, started.times.here)
                    print(f"kept {unit.kept}", flush=True)

        # The environment that `make evidence` gives, also without it; checkpoints lie in the clone.
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        os.environ.pop("BRITTLE_CHECKPOINTS", None)
        with contextlib.chdir(clone):  # DVC works where it is
            started = LocalRun(clone, cores(), {}, until=until, ended=keep)
            started.times.reference = plan.predicted(todo)
            try:
                started.go([unit.stage for unit in todo], in_order=True)
            except Stopped:
                if time.monotonic() <= until:
                    raise KeyboardInterrupt from None
                print("the time is up; the same command resumes here", flush=True)
        for unit in todo:
            if unit.stage not in started.left() and unit.stage not in started.impossible():
                keep(unit.stage)  # also what an earlier run had made, but not kept
        return sum(unit.stage in started.impossible() for unit in todo)


def lasts(seconds: float) -> str:
    """A duration in words."""
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{max(1, round(seconds / 60))} min"


def _git(*words: str, folder: Path = Path()) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise BadInput(f"git {words[0]}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'failed'}")
    return done.stdout.strip()


def _commit() -> str:
    """The commit that evidence will name; what it is made with must be in it."""
    dirty = _git("status", "--porcelain", "--", *CODE)
    if dirty:
        changed = dirty.splitlines()[0].split()[-1]
        raise BadInput(f"{changed}: is not committed; evidence names the commit that it was made with, so commit first")
    return _git("rev-parse", "HEAD")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Only one such run at a time."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(f"{FOLDER}: another `make evidence` is running here") from None
        yield


def _clone(plan: Plan, commit: str) -> Path:
    """A clone of the project at this commit, with the preset's parameters and the project's own cache."""
    clone = FOLDER / plan.preset.stem / "brittle"
    if not (clone / ".git").exists():
        shutil.rmtree(clone, ignore_errors=True)
        clone.parent.mkdir(parents=True, exist_ok=True)
        _git("clone", "--quiet", "--no-checkout", str(Path().absolute()), str(clone))
    _repair(clone)
    marker = clone.parent / "commit"
    if not marker.exists() or marker.read_text() != commit:  # what is done with unchanged code is in the run cache
        _git("fetch", "--quiet", "origin", folder=clone)
        _git("checkout", "--quiet", "--force", "--detach", commit, folder=clone)
        marker.write_text(commit)
    (clone / ".dvc/config.local").write_text(f"[cache]\n    dir = {Path('.dvc/cache').absolute()}\n")
    own = Path("data/raw")
    if own.is_dir() and not (clone / own).exists():
        (clone / own).symlink_to(own.absolute())
    with store.replacing(clone / "params.yaml") as temporary, temporary.open("w", encoding="utf-8") as stream:
        YAML(typ="safe", pure=True).dump(overlaid(read(Path("params.yaml")), read(plan.preset)), stream)
    return clone


def _repair(clone: Path) -> None:
    """Remove what a kill of DVC or Git may have left half-written: nobody else works in this clone."""
    for name in (".dvc/tmp/rwlock", ".dvc/tmp/rwlock.lock", ".git/index.lock"):
        (clone / name).unlink(missing_ok=True)
    for lock in clone.glob("**/dvc.lock"):
        try:
            YAML(typ="safe", pure=True).load(lock)
        except (YAMLError, ValueError):
            _git("checkout", "--quiet", "--", str(lock.relative_to(clone)), folder=clone)


def _keep(unit: Unit, clone: Path, to: Path, commit: str, seconds: Mapping[str, float]) -> None:
    """Copy a complete table to evidence/, and then write beside it where it comes from."""
    content = (clone / unit.made).read_bytes()
    provenance = {
        "stage": unit.stage,
        "command": f"dvc repro {unit.address}",
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
        "params": unit.params,
        "packages": {name: re.sub(r"\+.*", "", version(name)) for name in PACKAGES},
        "cpu": cpu(),
        "hours": round(sum(seconds.get(name, 0.0) for name in unit.needs) / 3600, 4),  # of one core
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    store.save_bytes(to, content)
    text = json.dumps(provenance, indent=2, ensure_ascii=False) + "\n"
    store.save_bytes(to.with_suffix(".json"), text.encode())


def cpu() -> str:
    """The processor's name and the number of cores that this process may use."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        return f"{name}, {len(os.sched_getaffinity(0))} cores"
    return platform.processor() or platform.machine()
