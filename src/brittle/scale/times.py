"""How long each stage takes: as it did here last time, or as the table in Git says (pipelines/seconds.csv)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from brittle.core import store
from brittle.scale.estimate import expected

# The quick scale, in one run on 2 cores that other processes used for a part of the time.
REFERENCE = "pipelines/seconds.csv"
HERE = ".dvc/tmp/scale/times.json"  # ignored by both Git and DVC
UNENDED = ".dvc/tmp/scale/unended.json"  # seconds of stages that were stopped, so far
GUESS = 10.0  # seconds of a stage until any has been timed
ENOUGH = 60.0  # seconds of stages that tell how fast this machine is; until then it counts as Git's


def _read(file: Path) -> dict[str, float]:
    with suppress(OSError, ValueError):
        return json.loads(file.read_text(encoding="utf-8"))
    return {}


class Times:
    """Seconds by the name of the stage."""

    def __init__(self, root: Path) -> None:
        self.file, self.unended_file = root / HERE, root / UNENDED
        self.reference: dict[str, float] = {}
        if (root / REFERENCE).exists():
            table = store.load_table(root / REFERENCE, ["seconds"], text=["stage"])
            self.reference = dict(zip(table["stage"], table["seconds"].astype(float), strict=True))
        self.here, self.unended = _read(self.file), _read(self.unended_file)

    def note(self, stage: str, seconds: float) -> None:
        """A stage has ended; what earlier runs of it took that were stopped counts, too."""
        self.here[stage] = seconds + self.unended.pop(stage, 0.0)

    def keep(self, running: Mapping[str, float] | None = None) -> None:
        """Write down all of this, and how long each stage has been running now."""
        store.save_metrics(self.file, dict(sorted(self.here.items())))
        now = {name: self.unended.get(name, 0.0) + seconds for name, seconds in (running or {}).items()}
        if now or self.unended or self.unended_file.exists():
            store.save_metrics(self.unended_file, self.unended | now)

    def expected(self, stages: Sequence[str]) -> dict[str, float]:
        """What these stages will take: as here, or as in Git, on a machine as much faster or slower as this one is."""
        both = self.here.keys() & self.reference.keys()
        pace = (ENOUGH + sum(map(self.here.get, both))) / (ENOUGH + sum(map(self.reference.get, both)))
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
