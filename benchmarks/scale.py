"""The grids of VYS Figures 1 and 2 on a cluster: measured on this machine, and estimated at the paper's scale.

    python benchmarks/scale.py                 the grid with 1 and with 2 workers, against `dvc repro` in the same run;
                                               then the estimate
    python benchmarks/scale.py --estimate      the paper's grid on 8, 64 and 512 workers, from measured times
    python benchmarks/scale.py --tiny          the estimate alone: four runs of DVC take minutes on the least grid

Measured: roughly the quick grid, from an empty cache in a fresh copy each time, and whether the dvc.lock files agree.
Estimated: a schedule of the pipeline's own graph, with the seconds that benchmarks/grid.py predicts for the whole grid
on 2 cores, shared out by the operations of each cell, DVC's own seconds for each stage, and models transferred at
BANDWIDTH. It is an estimate: nobody has run it on 512 workers. The papers' other experiments were never timed at their
own scale and are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take

# isort: split
from ruamel.yaml import YAML

import settings
from bars import bar
from brittle.evidence.costs import GRID as WHOLE
from brittle.margin.sweep_params import SweepParams
from brittle.params import at_scale
from brittle.scale.estimate import critical_path, makespan
from command import Command
from grid import PRESET, Cell, cells

ROOT = Path(__file__).parents[1]
PIPELINE = "pipelines/margin/dvc.yaml"
TARGET = f"{PIPELINE}:sweep_collect"
# Roughly the quick grid, with stages of similar size: if one stage is most of the work, more workers do not help.
GRID = {"ds": [80, 90, 100, 110, 120], "widths": [100, 500, 1000, 2000]}
BANDWIDTH = 100e6  # bytes per second to and from shared storage: assumed
# Seconds of DVC per stage, as measured here: in the worker's sandbox, and for restoring it in the workspace, serially
SANDBOX, RESTORE = 2.0, 0.3


def fresh(folder: Path) -> None:
    """Make a clone in which nothing has run, with the grid to be measured."""
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    file = folder / "params.yaml"
    settings.write(file, file, {f"sweep.{key}": value for key, value in GRID.items()})
    shutil.rmtree(folder / "plots/sweep")
    shutil.rmtree(folder / "plots/widths")
    for lock in (folder / "dvc.lock", (folder / PIPELINE).with_name("dvc.lock")):
        lock.unlink()


def timed(name: str, command: list[str]) -> tuple[float, dict[str, Any]]:
    """The seconds the command takes without the first stage, and the entries of dvc.lock, whose order is arbitrary."""
    environment = dict(os.environ, DVC_NO_ANALYTICS="1")
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "brittle"
        fresh(there)
        run = {"cwd": there, "env": environment, "check": True, "stdout": subprocess.DEVNULL}
        subprocess.run(["dvc", "repro", "params"], **run)
        began = time.monotonic()
        subprocess.run([*command, TARGET], **run)
        seconds = time.monotonic() - began
        print(f"{name:42} {seconds:6.0f} s", flush=True)
        return seconds, YAML(typ="safe").load((there / PIPELINE).with_name("dvc.lock"))["stages"]


def measure() -> None:
    scale = [sys.executable, "-m", "brittle.scale", "--workers"]
    runs = {
        "1 worker": [*scale, "1"],
        "2 workers": [*scale, "2"],
        "dvc repro": ["dvc", "repro"],
    }
    found = {name: timed(name, run) for name, run in runs.items()}
    seconds = {name: taken for name, (taken, _) in found.items()}
    first, *others = (lock for _, lock in found.values())
    for name in runs:
        if name != "2 workers":
            bar(f"2 workers, faster than {name}", seconds[name] / seconds["2 workers"])
    bar("dvc.lock: stages that differ", sum(differences(first, lock) for lock in others), at_most=0, unit="")


def differences(some: dict[str, Any], others: dict[str, Any]) -> int:
    """The number of stages whose entries in the two dvc.lock files differ or are missing in one."""
    return sum(some.get(stage) != others.get(stage) for stage in some.keys() | others.keys())


def seconds_of(every: list[Cell]) -> dict[Cell, float]:
    """Predicted seconds of each cell (all seeds)."""
    total = sum(cell.cost for cell in every)
    return {cell: WHOLE * cell.cost / total for cell in every}


def schedule(what: str, parts: dict[str, list[Cell]], seconds: dict[Cell, float], networks: int) -> None:
    """Print the estimate for these parts: each trains in one stage, is attacked in the next; then all are collected."""
    upstream: dict[str, list[str]] = {}
    times: dict[str, float] = {}
    for name, group in parts.items():
        travel = 4 * networks * sum((cell.d + 2) * cell.width for cell in group) / BANDWIDTH
        upstream |= {f"train {name}": [], f"attack {name}": [f"train {name}"]}
        times |= {
            f"train {name}": SANDBOX + sum(seconds[cell] for cell in group) + travel,
            f"attack {name}": SANDBOX + travel,
        }
    upstream["collect"] = [f"attack {name}" for name in parts]
    times["collect"] = SANDBOX
    longest, chain = critical_path(upstream, times)
    hours = sum(times.values()) / 3600
    print(f"{what}: {len(upstream)} stages, {hours:.2f} hours of work; longest chain {longest / 60:.1f} min:")
    print(f"    {' → '.join(chain)}")
    for workers in (1, 8, 64, 512):
        # Results are restored while other stages run; only the last ones have to be waited for.
        taken = max(makespan(upstream, times, workers), RESTORE * len(upstream)) + RESTORE
        print(f"    {workers:4} workers: {taken / 60:8.1f} min, {sum(times.values()) / taken:6.1f} ×")
    bar(f"estimate, {what}: {workers} workers", taken / 60, unit="min")


def estimate() -> None:
    p = at_scale(SweepParams, PRESET, ROOT / "params.yaml")
    every = cells(p)
    seconds = seconds_of(every)
    networks = len(p.sweep.seeds)
    print(f"ESTIMATE of the paper's grid: {len(every)} cells of {networks} seeds.")
    stage = {cell: f"d {cell.d}" if cell.figure == "1a" else f"width {cell.width}" for cell in every}
    parts = {name: [cell for cell in every if stage[cell] == name] for name in stage.values()}
    schedule("a stage for each d and width, as the pipeline has it", parts, seconds, networks)
    names = {cell: f"{cell.figure} d={cell.d} α={cell.alpha:g} width={cell.width}" for cell in every}
    schedule("a stage for each cell", {names[cell]: [cell] for cell in every}, seconds, networks)
    each = {cell: seconds[cell] / networks for cell in every}
    parts = {f"{names[cell]} seed={seed}": [cell] for cell in every for seed in range(networks)}
    schedule("a stage for each network", parts, each, 1)


if __name__ == "__main__":
    parser = Command(__doc__)
    parser.add_argument("--estimate", action="store_true", help="the paper's grid instead of this machine's")
    chosen = parser.parse_args()
    if not (chosen.estimate or chosen.tiny):
        measure()
    estimate()
