"""What a long stage shows and keeps while it runs: a bar with the time left, and a checkpoint to go on from."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import numpy as np
from tqdm import tqdm

from brittle import store

T = TypeVar("T")

# In the working copy; a run in a temporary one (`make paper`) is told a place that outlives it.
FOLDER = Path(os.environ.get("BRITTLE_CHECKPOINTS", ".checkpoints"))
SECONDS = 30.0  # between two checkpoints: what a kill can cost


LAYOUT = "{desc} {percentage:3.0f}% |{bar}| {elapsed} elapsed, {remaining} left"
STYLE = {"disable": None, "bar_format": LAYOUT, "file": sys.stderr}  # on a terminal; silence elsewhere


class Bar(tqdm):
    """A progress bar with the time left, which is told where it is rather than how far it went."""

    def reach(self, done: float) -> None:
        self.update(done - self.n)


def bar(total: float, what: str) -> Bar:
    return Bar(total=total, desc=what, **STYLE)


def tracked(items: Iterable[T], what: str) -> Iterable[T]:
    """The items, with a bar while they are worked through."""
    return tqdm(items, desc=what, **STYLE)


def fingerprint(*parts: object) -> str:
    """One name for these inputs and for the code that runs now: a checkpoint of anything else is not found."""
    digest = hashlib.sha256()
    for part in (*parts, np.__version__, version("torch")):
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in ("brittle", "__main__") and getattr(module, "__file__", None):
            digest.update(Path(module.__file__).read_bytes())
    return digest.hexdigest()[:16]


class Checkpoint:
    """The state of one long computation, saved every SECONDS, found again by its name."""

    def __init__(self, stage: str, name: str) -> None:
        self.path = FOLDER / f"{stage}-{name}.safetensors"
        self.saved = time.monotonic()

    def load(self, names: Iterable[str]) -> dict[str, np.ndarray] | None:
        if not self.path.exists():
            return None
        print(f"going on from {self.path}", file=sys.stderr)
        return store.load_tensors(self.path, dict.fromkeys(names, "..."))

    def due(self) -> bool:
        return time.monotonic() - self.saved >= SECONDS

    def save(self, arrays: dict[str, np.ndarray]) -> None:
        store.save_tensors(self.path, arrays)
        self.saved = time.monotonic()

    def forget(self) -> None:
        """The outputs are written."""
        self.path.unlink(missing_ok=True)
