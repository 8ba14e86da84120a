"""What a long stage shows and keeps while it runs: a bar with the time left, and a checkpoint to resume from."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import numpy as np
from tqdm import tqdm

from brittle.core import store

T = TypeVar("T")

# In the working copy; a run in a temporary copy (`make paper`) is given a folder that outlives it.
FOLDER = Path(os.environ.get("BRITTLE_CHECKPOINTS", ".checkpoints"))
SECONDS = 30.0  # between two checkpoints: the most that a killed run loses


LAYOUT = "{desc} {percentage:3.0f}% |{bar}| {elapsed} elapsed, {remaining} left"
STYLE = {"disable": None, "bar_format": LAYOUT, "file": sys.stderr}  # shown on a terminal only


class Bar(tqdm):
    """A progress bar with the time left, which is set to a position rather than advanced by an amount."""

    def reach(self, done: float) -> None:
        self.update(done - self.n)


class Pace:
    """Whether it is time to show something again. What is shown has to be read from a GPU, which makes it wait."""

    def __init__(self, seconds: float = 0.1) -> None:
        self.seconds, self.shown = seconds, -seconds

    def due(self) -> bool:
        if (now := time.monotonic()) - self.shown < self.seconds:
            return False
        self.shown = now
        return True


def bar(total: float, what: str) -> Bar:
    return Bar(total=total, desc=what, **STYLE)


def tracked(items: Iterable[T], what: str) -> Iterable[T]:
    """The items, with a progress bar while they are processed."""
    return tqdm(items, desc=what, **STYLE)


def fingerprint(*parts: object) -> str:
    """A name for these inputs and the code that is running: checkpoints of other inputs or code are not found."""
    digest = hashlib.sha256()
    for part in (*parts, np.__version__, version("torch")):
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in ("brittle", "__main__") and getattr(module, "__file__", None):
            digest.update(Path(module.__file__).read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def resumable(stage: str) -> Iterator[Checkpoints]:
    """The checkpoints of a stage. They are deleted when the block succeeds: by then it has written its outputs."""
    checkpoints = Checkpoints(stage)
    yield checkpoints
    for checkpoint in checkpoints.made:
        checkpoint.path.unlink(missing_ok=True)


class Checkpoints:
    """The checkpoints of a stage, one per long computation."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.made: list[Checkpoint] = []

    def of(self, *parts: object) -> Checkpoint:
        """The checkpoint of the computation that depends on these inputs and on the code that is running."""
        self.made.append(Checkpoint(self.stage, fingerprint(*parts)))
        return self.made[-1]


class Checkpoint:
    """The state of one long computation, saved every SECONDS and found again by its name."""

    def __init__(self, stage: str, name: str) -> None:
        self.path = FOLDER / f"{stage}-{name}.safetensors"
        self.saved = time.monotonic()

    def load(self, names: Iterable[str]) -> dict[str, np.ndarray] | None:
        if not self.path.exists():
            return None
        print(f"resuming from {self.path}", file=sys.stderr)
        return store.load_tensors(self.path, dict.fromkeys(names, "..."))

    def due(self) -> bool:
        return time.monotonic() - self.saved >= SECONDS

    def save(self, arrays: dict[str, np.ndarray]) -> None:
        store.save_tensors(self.path, arrays)
        self.saved = time.monotonic()
