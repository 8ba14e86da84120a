"""What a long stage shows and keeps while it runs: a bar with the time left, and a checkpoint to go on from."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tqdm import tqdm

from brittle import store

FOLDER = Path(".checkpoints")
SECONDS = 30.0  # between two checkpoints: what a kill can cost


def bar(total: float, what: str) -> tqdm:
    """A progress bar on a terminal, silence elsewhere."""
    layout = "{desc} {percentage:3.0f}% |{bar}| {elapsed} elapsed, {remaining} left{postfix}"
    return tqdm(total=total, desc=what, disable=None, bar_format=layout, file=sys.stderr)


def fingerprint(*parts: object) -> str:
    """One name for these inputs and for the code that is loaded now: a checkpoint of anything else is not found."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    for name, module in sorted(sys.modules.items()):
        if name.startswith("brittle.") and getattr(module, "__file__", None):
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
        return store.load_tensors(self.path, names)

    def due(self) -> bool:
        return time.monotonic() - self.saved >= SECONDS

    def save(self, arrays: dict[str, np.ndarray]) -> None:
        store.save_tensors(self.path, arrays)
        self.saved = time.monotonic()


def forget(stage: str) -> None:
    """Remove the stage's checkpoints: its outputs are written."""
    for path in FOLDER.glob(f"{stage}-*.safetensors"):
        path.unlink()
