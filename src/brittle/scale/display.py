"""What a run shows: on a terminal one bar for the whole graph, elsewhere a line for each stage that ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping

from tqdm import tqdm

from brittle.core.progress import bar
from brittle.scale.estimate import makespan
from brittle.scale.graph import Node
from brittle.scale.times import Times

# Figures to look at while the rest runs: the stage that draws one, and what to say when it is there.
FIGURES = {"margin_figures": "plots/margin_flipped.png is there: one vector flips every sample on the margin"}
WIDTH = 60  # of the names of running stages on the bar
SPARED = 0.3  # seconds that a stage takes which turns out to be up to date


class Display:
    """The bar and the lines. `places` is how many stages run at once."""

    def __init__(self, nodes: Mapping[str, Node], times: Times, places: int) -> None:
        self.nodes, self.times, self.places = nodes, times, max(1, places)
        self.begun = time.monotonic()
        self.bar = bar(1.0, "")
        self.running: dict[str, float] = {}  # since when
        self.spared = {name for name, node in nodes.items() if not node.runs}  # stages that will not have to run

    def close(self) -> None:
        self.bar.close()

    def started(self, name: str) -> None:
        self.running[name] = time.monotonic()

    def ended(self, name: str, took: str, left: Iterable[str]) -> None:
        """Say that a stage has ended, how long it took and how much is left."""
        self.running.pop(name, None)
        left = list(left)
        if self.bar.disable:
            rest = f"about {lasts(self.seconds_left(left))} left" if left else "the last one"
            print(f"[{len(self.nodes) - len(left)}/{len(self.nodes)}] {name} · {took} · {rest}", flush=True)
        if name in FIGURES:
            self.say(FIGURES[name])

    def differs(self, name: str) -> None:
        """Expect all stages to run that depend on this one, whose outputs are not what the lock file says."""
        for other in [other for other in self.spared if name in self.nodes[other].upstream]:
            self.spared.discard(other)
            self.differs(other)

    def failed(self, name: str) -> None:
        self.running.pop(name, None)
        self.say(f"{name} failed")

    def say(self, words: str) -> None:
        """Print a line without spoiling the bar."""
        if self.bar.disable:
            print(words, flush=True)
        else:
            tqdm.write(words, file=sys.stderr)

    def update(self, left: Iterable[str]) -> None:
        """Move the bar to where the run is."""
        if self.bar.disable:
            return
        left = list(left)
        elapsed = time.monotonic() - self.begun
        self.bar.total = elapsed + self.seconds_left(left) + 1e-9
        names = ", ".join(self.running)
        shown = names if len(names) <= WIDTH else f"{names[: WIDTH - 1]}…"
        self.bar.set_description_str(f"{len(self.nodes) - len(left)} of {len(self.nodes)} stages: {shown}", False)
        self.bar.reach(elapsed)

    def expected(self) -> dict[str, float]:
        """The seconds that each stage will take."""
        return self.times.expected(list(self.nodes)) | dict.fromkeys(self.spared, SPARED)

    def seconds_left(self, left: Iterable[str]) -> float:
        """Predict how long the remaining stages take, by scheduling them."""
        upstream, seconds = {name: self.nodes[name].upstream for name in left}, self.expected()
        now = time.monotonic()
        # A stage that takes longer than expected is taken to need a tenth of its time again.
        running = {
            name: max(seconds[name] - (now - since), seconds[name] / 10)
            for name, since in self.running.items()
            if name in upstream
        }
        return makespan(upstream, seconds, self.places, running)


def lasts(seconds: float) -> str:
    """A duration in words."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{round(seconds / 60)} min"
