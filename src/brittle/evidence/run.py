"""Run what is missing of a preset, and keep each table as it is complete.

The ordinary stages run through DVC, in a clone of their own below .evidence/, with the preset's parameters. The cache
and with it the run cache are the project's own. A run may be stopped or killed at any moment: DVC keeps the stages that
are done, long stages keep checkpoints, and what is complete has been kept.
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
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
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
from brittle.processes import guarded

FOLDER = Path(".evidence")
SAVED = 10.0  # seconds between two notes of the time spent
LINES = 5  # shown of a stage that failed
PATIENCE = 60.0  # seconds that a stage has to end by itself when the time is up
CODE = ("src", "dvc.yaml", "pipelines", "params.yaml", "presets", "requirements.lock")
PACKAGES = ("numpy", "scipy", "torch", "torchvision", "scikit-learn", "pandas")


def run(plan: Plan, hours: float, chapter: str = "") -> int:
    """Run the missing units in order until the time is up; the number of units that failed."""
    deadline = time.monotonic() + 3600 * hours
    commit = _commit()
    with _alone():
        clone = _clone(plan, commit)
        failed = 0
        for i, unit in enumerate(todo := plan.missing(chapter), 1):
            left = deadline - time.monotonic()
            if left <= 0:
                print(f"the time is up; {len(todo) - i + 1} tables are still missing", flush=True)
                break
            about = plan.seconds(unit.needs)
            print(f"[{i}/{len(todo)}] {unit.made} · {', '.join(unit.claims)} · about {lasts(about)}", flush=True)
            code = _repro(unit, clone, deadline)
            if code is None:
                print("the time is up; the same command resumes here", flush=True)
                break
            if code:
                failed += 1
                last = (clone.parent / "log").read_text(errors="replace").splitlines()[-LINES:]
                print("\n".join(f"    {line}" for line in last), flush=True)
                print(f"{unit.stage} failed; {clone.parent / 'log'} has all that it printed", flush=True)
                continue
            _keep(unit, clone, commit)
            print(f"kept {unit.kept}", flush=True)
    return failed


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


def _repro(unit: Unit, clone: Path, deadline: float) -> int | None:
    """Bring one table up to date; the exit code, or None if the time was up first."""
    own = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    environment = {key: value for key, value in (os.environ | own).items() if key != "BRITTLE_CHECKPOINTS"}
    with (clone.parent / "log").open("a") as log:
        command = [sys.executable, "-m", "dvc", "repro", unit.address]
        process = guarded(command, clone, environment, stdout=log)
        spent, since = _spent(clone, unit), time.monotonic()
        with _stopping(process):
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(min(SAVED, max(0.1, deadline - time.monotonic())))
                _spend(clone, unit, spent + time.monotonic() - since)
                if time.monotonic() > deadline and process.poll() is None:
                    _end(process)
                    return None
        return process.returncode


@contextlib.contextmanager
def _stopping(process: subprocess.Popen) -> Iterator[None]:
    """Whatever happens here, the stage ends, too."""
    try:
        yield
    except KeyboardInterrupt:
        _end(process)
        raise
    finally:
        process.stdin.close()


def _end(process: subprocess.Popen) -> None:
    """Ask the stage to stop, which it does with a checkpoint, and insist after a while."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _spent(clone: Path, unit: Unit) -> float:
    """Seconds that were spent on a unit so far, over all runs."""
    note = clone.parent / "seconds" / unit.stage
    return float(note.read_text()) if note.exists() else 0.0


def _spend(clone: Path, unit: Unit, seconds: float) -> None:
    store.save_bytes(clone.parent / "seconds" / unit.stage, f"{seconds:.1f}\n".encode())


def _keep(unit: Unit, clone: Path, commit: str) -> None:
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
        "hours": round(_spent(clone, unit) / 3600, 4),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    store.save_bytes(unit.kept, content)
    text = json.dumps(provenance, indent=2, ensure_ascii=False) + "\n"
    store.save_bytes(unit.kept.with_suffix(".json"), text.encode())


def cpu() -> str:
    """The processor's name and the number of cores that this process may use."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        return f"{name}, {len(os.sched_getaffinity(0))} cores"
    return platform.processor() or platform.machine()
