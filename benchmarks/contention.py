"""How much a busy machine slows stages of the pipeline: alone, and beside two processes that are always busy.

    python benchmarks/contention.py           # some 10 minutes on 2 cores, with nothing else on them
    python benchmarks/contention.py --tiny    # one round of stages that have next to nothing to do

There are three computations, each a separate process in an empty folder, as DVC would run it: gradient flow on a
small cell, gradient flow on a large one, and SGD on many networks side by side. Each is timed from start to end

    (a) alone, as it is;
    (b) alone, with BRITTLE_PORTABLE=0: the libraries choose kernels, threads and how threads wait (machine.py);
    (c) beside the busy processes, as it is;
    (d) beside them with BRITTLE_PORTABLE=0, where two threads that wait for each other may take forever: the run is
        stopped after LIMIT times (a).

(a) and (b) alternate, and the best of three rounds counts; for (c), the best of two. The bars: on a busy machine a
stage slows down by little more than the cores that the others take, (c) ≤ 2.5 (a); and the settings that achieve this
cost little on an idle machine, (a) ≤ 1.1 (b). The tiny run does (a) to (d) with the first computation and only (a) with
the others.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import settings
from bars import bar
from brittle.core import machine
from brittle.tools.graph import stages
from command import Command, stoppable

ROOT = Path(__file__).resolve().parents[1]
BUSY = 2  # number of processes that are always busy
LIMIT = 20  # a run beside them is stopped after this many times (a)
SLOWER, PRICE = 2.5, 1.1  # the bars
# The busy process checks regularly that its parent still exists, so it never outlives this program.
NEVER_RESTS = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(10**6): pass"
# Variables that tell the libraries how to compute. They are removed: a stage has to set them itself.
TOLD = {*machine.KERNELS, *machine.ALONE, *machine.WAITING, "BRITTLE_THREADS", "BRITTLE_PORTABLE"}
PREFIXES = ("OMP_", "GOMP_", "KMP_", "MKL_")
MODULES = {name: stage.module for name, stage in stages().items()}  # the module of each stage


@dataclass(frozen=True)
class Computation:
    name: str
    stage: tuple[str, ...]  # its name and cell
    params: dict[str, Any]  # changes to params.yaml, so that it takes 5 to 10 seconds alone
    tiny: dict[str, Any]
    before: tuple[str, ...] = ()  # the stages that produce its inputs


COMPUTATIONS = (
    Computation(
        "flow, small cell",
        ("widths_train", "200"),
        {"sweep.width_ds": [50, 80], "sweep.log10_target": -400},
        {"sweep.width_ds": [16], "sweep.seeds": [0]},
    ),
    Computation(
        "flow, large cell",
        ("sweep_train", "100"),
        {"sweep.alphas": [1.0, 1.2], "sweep.momentum": [0.0, 0.7]},
        {"sweep.alphas": [0.5], "sweep.momentum": [0.0], "sweep.width": 50, "sweep.seeds": [0]},
    ),
    Computation(
        "SGD side by side",
        ("slabs_train", "fcn-100-2"),
        # No loss gets below this target, so all epochs are run.
        {"slabs.samples": 20_000, "slabs.training.epochs": 20, "slabs.training.target": 1e-9}
        | {f"{part}.samples": 1000 for part in ("features", "noisy", "adversarial")},
        {"slabs.d": 10, "slabs.test": 200, "slabs.training.epochs": 1}
        | {f"{part}.samples": 300 for part in ("slabs", "features", "noisy", "adversarial")},
        before=("slabs_data",),
    ),
)


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Run this many busy processes until the end of the block."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(processes):
            running.append(subprocess.Popen([sys.executable, "-c", NEVER_RESTS, str(os.getpid())]))
        yield
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()


def environment(portable: bool) -> dict[str, str]:
    """The environment of a stage, without any variable that tells the libraries how to compute."""
    kept = {key: value for key, value in os.environ.items() if key not in TOLD and not key.startswith(PREFIXES)}
    kept.pop("BRITTLE_CHECKPOINTS", None)
    return kept | {"PYTHONPATH": str(ROOT / "src")} | ({} if portable else {"BRITTLE_PORTABLE": "0"})


def run(stage: tuple[str, ...], folder: Path, *, portable: bool = True, limit: float | None = None) -> float:
    """Run a stage in this folder from scratch and return the seconds it took, or the limit if it was stopped."""
    shutil.rmtree(folder / ".checkpoints", ignore_errors=True)
    name, *cell = stage
    command = [sys.executable, "-m", MODULES[name], *cell]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment(portable), capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return float(limit or 0)
    if done.returncode:
        raise SystemExit(f"{' '.join(stage)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return time.perf_counter() - start


def compare(what: Computation, folder: Path, tiny: bool) -> None:
    settings.write(ROOT / "params.yaml", folder / "params.yaml", what.tiny if tiny else what.params)
    for stage in what.before:
        run((stage,), folder)
    print(f"\n{what.name}: {' '.join(what.stage)}")
    alone = run(what.stage, folder)  # (a)
    if not tiny or what is COMPUTATIONS[0]:
        limit = LIMIT * alone
        left = run(what.stage, folder, portable=False, limit=limit)  # (b)
        for _ in range(0 if tiny else 2):
            alone = min(alone, run(what.stage, folder))
            left = min(left, run(what.stage, folder, portable=False, limit=limit))
        bar(f"{what.name}: alone, against the libraries' own way", alone / left, at_most=PRICE)
        with busy(BUSY):
            limit = LIMIT * alone
            beside = min(run(what.stage, folder, limit=limit) for _ in range(1 if tiny else 2))  # (c)
            lost = run(what.stage, folder, portable=False, limit=limit)  # (d)
        bar(f"{what.name}: beside busy processes", beside / alone, at_most=SLOWER, or_more=beside == limit)
        bar(f"{what.name}: beside them, the libraries' own way", lost / alone, or_more=lost == limit)
    bar(f"{what.name}: alone", alone, unit="s")


def main(tiny: bool) -> None:
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, {BUSY} busy processes, load before the start {load:.1f}")
    print("Other load on the machine disturbs the ratios: run it on an idle one.")
    for what in COMPUTATIONS:
        with tempfile.TemporaryDirectory() as folder:
            compare(what, Path(folder), tiny)


if __name__ == "__main__":
    stoppable()
    try:
        main(Command(__doc__).parse_args().tiny)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
