"""What a busy machine costs: stages of the pipeline alone and beside two processes that never rest.

    python benchmarks/contention.py           # some 10 minutes on 2 cores, with nothing else on them
    python benchmarks/contention.py --tiny    # one round of stages that have next to nothing to do

Three computations, each a process of its own in an empty folder, as DVC runs it: gradient flow on a small cell, on a
large one, and SGD on many networks side by side. Each is timed from its start to its end

    (a) alone, as it is;
    (b) alone, with BRITTLE_PORTABLE=0: kernels, threads and how these wait are left to the libraries (machine.py);
    (c) beside the busy processes, as it is;
    (d) beside them with BRITTLE_PORTABLE=0, where two threads that wait for each other may take for ever: it is stopped
        after LIMIT times (a).

(a) and (b) take turns, and the best of their three rounds counts; of (c) it is the best of two. The bars: being busy
costs no more than the cores that the others have taken, with something to spare, (c) ≤ 2.5 (a); and what makes it so
costs little on an idle machine, (a) ≤ 1.1 (b). The tiny run goes all four ways with the first computation, and only way
(a) with the rest.
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
from brittle import machine
from command import Command, stoppable

ROOT = Path(__file__).resolve().parents[1]
BUSY = 2  # processes that never rest
LIMIT = 20  # times (a): where a run beside them is stopped
SLOWER, PRICE = 2.5, 1.1  # the bars
# It looks now and then whether its parent is still there: nothing that may happen to this program leaves it running.
NEVER_RESTS = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(10**6): pass"
# What tells the libraries how to compute: a stage has to set it itself, and the old way was without.
TOLD = {*machine.KERNELS, *machine.ALONE, *machine.WAITING, "BRITTLE_THREADS", "BRITTLE_PORTABLE"}
PREFIXES = ("OMP_", "GOMP_", "KMP_", "MKL_")


@dataclass(frozen=True)
class Computation:
    name: str
    stage: tuple[str, ...]  # with its cell
    params: dict[str, Any]  # changes to params.yaml, for some 5 to 10 seconds alone
    tiny: dict[str, Any]
    before: tuple[str, ...] = ()  # the stages that make its inputs


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
        # No loss is below this target: all epochs are run.
        {"slabs.samples": 20_000, "slabs.training.epochs": 20, "slabs.training.target": 1e-9}
        | {f"{part}.samples": 1000 for part in ("features", "noisy", "adversarial")},
        {"slabs.d": 10, "slabs.test": 200, "slabs.training.epochs": 1}
        | {f"{part}.samples": 300 for part in ("slabs", "features", "noisy", "adversarial")},
        before=("slabs_data",),
    ),
)


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes that never rest, until the end of the block."""
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
    """That of a stage, to which nobody has said how to compute."""
    kept = {key: value for key, value in os.environ.items() if key not in TOLD and not key.startswith(PREFIXES)}
    kept.pop("BRITTLE_CHECKPOINTS", None)
    return kept | {"PYTHONPATH": str(ROOT / "src")} | ({} if portable else {"BRITTLE_PORTABLE": "0"})


def run(stage: tuple[str, ...], folder: Path, *, portable: bool = True, limit: float | None = None) -> float:
    """Run a stage in this folder from scratch. The seconds it took; the limit if it was stopped there."""
    shutil.rmtree(folder / ".checkpoints", ignore_errors=True)
    name, *cell = stage
    command = [sys.executable, "-m", f"brittle.stages.{name}", *cell]
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
