"""What a run on this machine and a run on a cluster have in common: what is left to do, and the report at the end."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from brittle.scale.display import Display
from brittle.scale.graph import Node, Pipeline
from brittle.scale.times import Times
from brittle.scale.workspace import Workspace

SHOWN = 30  # number of last lines of a log to print


class Stopped(Exception):
    """The run was stopped cleanly by Ctrl-C or SIGTERM."""


class Run:
    def __init__(self, root: Path) -> None:
        self.workspace = Workspace(root)
        self.times = Times(root)
        self.begun = time.monotonic()
        self.pipeline = Pipeline(root)
        self.nodes: dict[str, Node] = {}  # out of date, in DVC's order
        self.done: set[str] = set()  # stages that are finished
        self.failed: dict[str, str] = {}  # stages that failed, with their logs

    def plan(self, nodes: Sequence[Node], places: int) -> None:
        """Take these stages as what is to be done, at most so many at once."""
        self.nodes = {node.name: node for node in nodes}
        self.display = Display(self.nodes, self.times, places)

    def waits(self, name: str) -> bool:
        """Whether the stage has neither ended nor become impossible."""
        return name not in self.done and not self.over(name)

    def over(self, name: str) -> bool:
        """Whether the stage has failed, or any that it waits for, directly or indirectly."""
        return name in self.failed or (bool(self.failed) and any(map(self.over, self.nodes[name].upstream)))

    def finish(self, name: str, seconds: float | None, otherwise: str = "from the cache") -> None:
        """Note that a stage is done, and how long its command took, or what there was instead of it."""
        self.done.add(name)
        if seconds is not None:
            self.times.note(name, seconds)
        self.display.ended(name, otherwise if seconds is None else f"{seconds:.0f} s", self.left())

    def fail(self, name: str, log: str) -> None:
        if name not in self.failed:
            self.failed[name] = log
            self.display.failed(name)

    def impossible(self) -> list[str]:
        """The stages that have failed, and those that wait for them."""
        return [name for name in self.nodes if self.over(name)]

    def left(self) -> list[str]:
        return [name for name in self.nodes if self.waits(name)]

    def report(self, finished: int) -> int:
        """Say what failed and what was not run for that reason; the exit code."""
        self.times.keep()
        for name, log in self.failed.items():
            file = self.workspace.keep_log(name, log)
            print(f"\nstage {name} failed (full log: {file}):", file=sys.stderr)
            print("\n".join(f"    {line}" for line in log.strip().splitlines()[-SHOWN:]), file=sys.stderr)
            print(f"to run it alone: dvc repro --single-item {self.nodes[name].address}", file=sys.stderr)
        if stopped := [name for name in self.nodes if name not in self.failed and self.over(name)]:
            print(f"\nnot run, because they depend on failed stages: {', '.join(stopped)}", file=sys.stderr)
        print(f"{finished} of {len(self.nodes)} stages in {time.monotonic() - self.begun:.0f} s")
        return 1 if self.failed else 0


@contextmanager
def interruptible(ended: Callable[[], Any] = lambda: None) -> Iterator[None]:
    """Treat SIGTERM, with which batch systems end a job, like Ctrl-C."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, signal.default_int_handler) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)
        ended()
