"""Run every benchmark of this folder in turn and print one table of the results.

    python benchmarks/run.py           # some 40 minutes on 2 cores, with nothing else on them
    python benchmarks/run.py --tiny    # some 2 minutes: whether they run, not how fast anything is

A script that fails does not stop the others. The exit code is 1 if one has failed, has recorded nothing, or has missed
a bar.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bars import FILE, Result, recorded
from command import Command, stoppable

HERE = Path(__file__).resolve().parent
HEADS = ("script", "what", "value", "bar", "")


@dataclass(frozen=True)
class Row:
    script: str
    what: str
    value: str = ""
    bar: str = ""
    state: str = ""  # held, missed or failed; empty for a result without a bar

    @classmethod
    def of(cls, script: str, result: Result) -> Row:
        state = {True: "held", False: "missed", None: ""}[result.held]
        return cls(script, result.what, result.shown, result.bar, state)

    @property
    def cells(self) -> tuple[str, ...]:
        return self.script, self.what, self.value, self.bar, self.state


def scripts(folder: Path) -> list[Path]:
    """The folder's modules that are programs, without this one."""
    found = (path for path in sorted(folder.glob("*.py")) if '\nif __name__ == "__main__":' in path.read_text())
    return [path for path in found if path.name != Path(__file__).name]


def run(script: Path, options: Sequence[str]) -> list[Row]:
    """Run one script, showing its output as it comes, and return its rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bars.jsonl"
        environment = os.environ | {FILE: str(file), "PYTHONUNBUFFERED": "1"}
        child = subprocess.Popen([sys.executable, script, *options], env=environment)
        try:
            code = child.wait()
        except BaseException:  # give the script a moment to end its own processes
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=10)
            child.kill()
            raise
        rows = [Row.of(script.name, result) for result in recorded(file)]
    if code:
        rows.append(Row(script.name, f"exit code {code}", state="failed"))
    elif not rows:
        rows.append(Row(script.name, "recorded nothing", state="failed"))
    return rows


def table(rows: Sequence[Row]) -> str:
    lines = [HEADS, *(row.cells for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def run_all(folder: Path, options: Sequence[str] = ()) -> int:
    """Run every script of the folder, print the table and return the exit code."""
    rows: list[Row] = []
    for script in scripts(folder):
        print(f"\n── {' '.join([script.name, *options])} ──", flush=True)
        rows += run(script, options)
    print(f"\n{table(rows)}", flush=True)
    return int(any(row.state in ("missed", "failed") for row in rows))


if __name__ == "__main__":
    chosen = Command(__doc__).parse_args()
    stoppable()
    try:
        sys.exit(run_all(HERE, ["--tiny"] if chosen.tiny else []))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
