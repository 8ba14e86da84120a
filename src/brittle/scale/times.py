"""How long each stage takes: as it did here last time, or as the table in Git says (pipelines/seconds.csv)."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from brittle.core import store
from brittle.scale.estimate import expected

# The quick scale, in one run on 2 cores that other processes used for a part of the time.
REFERENCE = "pipelines/seconds.csv"
HERE = ".dvc/tmp/scale/times.json"  # ignored by both Git and DVC
GUESS = 10.0  # seconds of a stage until any has been timed


class Times:
    """Seconds by the name of the stage."""

    def __init__(self, root: Path) -> None:
        self.file = root / HERE
        self.reference: dict[str, float] = {}
        if (root / REFERENCE).exists():
            table = store.load_table(root / REFERENCE, ["seconds"], text=["stage"])
            self.reference = dict(zip(table["stage"], table["seconds"].astype(float), strict=True))
        self.here: dict[str, float] = {}
        with suppress(OSError, ValueError):
            self.here = json.loads(self.file.read_text(encoding="utf-8"))

    def note(self, stage: str, seconds: float) -> None:
        self.here[stage] = seconds

    def keep(self) -> None:
        store.save_metrics(self.file, dict(sorted(self.here.items())))

    def expected(self, stages: Sequence[str]) -> dict[str, float]:
        """What these stages will take: as here, or as in Git, on a machine as much faster or slower as this one is."""
        both = self.here.keys() & self.reference.keys()
        pace = statistics.median(self.here[name] / max(self.reference[name], 0.1) for name in both) if both else 1.0
        return expected(stages, {name: pace * s for name, s in self.reference.items()} | self.here, GUESS)

    def table(self) -> pd.DataFrame:
        """Both, the longest first."""
        names = sorted(self.reference.keys() | self.here.keys())
        table = pd.DataFrame(
            {
                "stage": names,
                "reference": [self.reference.get(name) for name in names],
                "here": [self.here.get(name) for name in names],
            }
        )
        return table.sort_values(["here", "reference"], ascending=False, ignore_index=True)
