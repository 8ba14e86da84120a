"""The progress of a stage across the papers, kept in checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

import numpy as np
from torch import Tensor

from brittle.core.progress import Checkpoint, Checkpoints, fingerprint
from brittle.worlds.common import World

T = TypeVar("T")


class Kept:
    """The progress of a stage in one world, in checkpoints that are deleted once the stage has written its outputs.

    Each training has its own checkpoint; all measurements (JSON values) share one.
    """

    def __init__(self, checkpoints: Checkpoints, there: World, *parts: object) -> None:
        whole = (getattr(there, f.name) for f in fields(there))
        arrays = (part.cpu().numpy() if isinstance(part, Tensor) else part for part in whole)
        self.checkpoints, self.name = checkpoints, fingerprint(*arrays, str(there.x.device), *parts)
        self.measured = checkpoints.of(self.name)
        saved = self.measured.load(["found"])
        self.found = json.loads(saved["found"].tobytes()) if saved else {}

    def training(self, *parts: object) -> Checkpoint:
        return self.checkpoints.of(self.name, *parts)

    def once(self, what: str, find: Callable[[], T]) -> T:
        """Return what was found under this name before the stage was stopped; otherwise compute it now."""
        if what not in self.found:
            self.found[what] = find()
            if self.measured.due():
                self.save()
        return self.found[what]

    def save(self) -> None:
        self.measured.save({"found": np.frombuffer(json.dumps(self.found).encode(), dtype=np.uint8)})
