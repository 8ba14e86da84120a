"""The whole grid of VYS Figures 1 and 2 at the paper's scale (presets/paper.yaml) on this machine.

    python benchmarks/grid.py                  how long it would take, predicted from a few cells measured now
    python benchmarks/grid.py --run 90         run cells, cheapest first, for 90 minutes; go on where a run ended
    python benchmarks/grid.py --tiny           predict four small cells

The prediction times a few steps of each kind of cell and multiplies by the number of steps, which is measured on small
cells that are trained to the end and extrapolated as a power of m. Results go to docs/paper-scale/grid.csv, one row per
cell and seed, with the seconds that the cell took (all its seeds together).
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take

# isort: split
import numpy as np
import pandas as pd
import torch

from bars import bar
from brittle.core import device, machine, store
from brittle.core.progress import Checkpoints, resumable
from brittle.core.rng import rng
from brittle.margin import networks
from brittle.margin.cells import measured
from brittle.margin.draws import draws
from brittle.margin.params import MarginParams
from brittle.margin.sweep_params import SweepParams
from brittle.nets.two_layer import initial
from brittle.params import at_scale
from brittle.train import flow
from brittle.train.state import NotReached
from command import Command

ROOT = Path(__file__).parents[1]
PRESET = ROOT / "presets/paper.yaml"
TABLE = ROOT / "docs/paper-scale/grid.csv"
KEYS = ["figure", "d", "alpha", "width"]
WARM, TIMED = 2, 4  # numbers of steps
TINY = {"ds": [20, 24], "alphas": [1.0], "momentum": [0.7], "width": 50, "widths": [40], "width_ds": [20, 24]}
PROTOCOL_STEPS = 72_000  # of the paper's optimiser, whatever the size (docs/flow.md)


@dataclass(frozen=True)
class Small:
    """The small cells on which the number of steps is measured, by training to the end."""

    ds: tuple[int, ...]
    width: int


@dataclass(frozen=True)
class Cell:
    """One point of a figure: several seeds of one shape."""

    figure: str
    d: int
    alpha: float
    width: int
    momentum: float

    @property
    def m(self) -> int:
        return round(self.d**self.alpha)

    @property
    def cost(self) -> float:
        """Relative cost: operations per step, times the growth of the number of steps."""
        m, d = self.m, self.d
        return self.width * (m * m if m < 2 * d else 2 * m * d) * m**0.3 * (1 - self.momentum) ** 0.5


def cells(p: SweepParams) -> list[Cell]:
    s = p.sweep
    sweep = [
        Cell("1a", d, alpha, s.width, beta) for d in s.ds for alpha, beta in zip(s.alphas, s.momentum, strict=True)
    ]
    widths = [Cell("1b", d, 1.0, width, 0.0) for width in s.widths for d in s.width_ds]
    return sorted(sweep + widths, key=lambda cell: cell.cost)


def train(
    checkpoints: Checkpoints, cell: Cell, p: SweepParams, max_steps: int, seeds: list[int]
) -> networks.TrainedNets:
    s = p.sweep
    return networks.train(
        checkpoints,
        *draws(cell.d, cell.m, seeds),
        seeds,
        width=cell.width,
        init_scale=1.0,
        method=networks.flow_method(
            loss=s.loss, log10_target=s.log10_target, momentum=cell.momentum, max_steps=max_steps
        ),
        where=device.pick(p.device),
        advise="",
    )


def run(p: SweepParams, slack: float, minutes: float) -> None:
    """Run the cells that the table lacks, cheapest first, until the time is up."""
    table = pd.read_csv(TABLE) if TABLE.exists() else pd.DataFrame(columns=KEYS)
    done = set(table[KEYS].itertuples(index=False, name=None))
    deadline = time.monotonic() + 60 * minutes
    todo = [cell for cell in cells(p) if (cell.figure, cell.d, cell.alpha, cell.width) not in done]
    for cell in todo:
        if time.monotonic() > deadline:
            break
        start = time.monotonic()
        with resumable("grid") as checkpoints:
            trained = train(checkpoints, cell, p, p.sweep.max_steps, p.sweep.seeds)
            rows = measured(trained.net, cell.d, cell.m, p.sweep.seeds, slack)
            seconds = time.monotonic() - start
            rows = rows.assign(figure=cell.figure, alpha=cell.alpha, steps=len(trained.histories[0]), seconds=seconds)
            table = pd.concat([table, rows]) if len(table) else rows
            store.save_table(TABLE, table)
        print(f"{cell}: m = {cell.m}, c = {rows['c'].mean():.3f}, {seconds:.0f} s", flush=True)
    print(f"{len(cells(p)) - len(todo)} cells were there, {len(table.groupby(KEYS))} of {len(cells(p))} are now")


def steps_taken(cell: Cell, p: SweepParams) -> int:
    with resumable("grid") as checkpoints:
        return len(train(checkpoints, cell, p, p.sweep.max_steps, p.sweep.seeds[:1]).histories[0])


def seconds_a_step(cell: Cell, p: SweepParams) -> float:
    """Seconds per step of one network, without the first steps."""
    x, y = (torch.from_numpy(a) for a in draws(cell.d, cell.m, p.sweep.seeds[:1]))
    # Use as many threads as the stage would for seeds side by side, whatever the previous cell has set.
    together = min(len(p.sweep.seeds), max(1, networks.TOGETHER // (cell.m * cell.width)))
    machine.use_threads(2 if together * x[0].numel() * cell.width >= networks.SHARED else 1)
    if cell.m * cell.width >= networks.LARGE:
        device.keep_freed_memory()
    net = initial(cell.d, cell.width, 1.0, [rng(p.sweep.seeds[0], "margin init")])
    stamps: list[float] = []
    settings = {"loss": p.sweep.loss, "ln_target": -69.0, "momentum": cell.momentum, "max_steps": WARM + TIMED}
    with contextlib.suppress(NotReached):
        flow.train(x, y, net, watch=lambda state: stamps.append(time.perf_counter()), **settings)
    return float(np.median(np.diff(stamps)[WARM:]))


def predict(p: SweepParams, small: Small) -> None:
    device.pick("cpu")
    every, total = cells(p), 0.0
    a_step = 0.0  # seconds of one step of one network of every cell
    parts = sorted({(cell.figure, cell.alpha, cell.momentum) for cell in every})
    for figure, alpha, momentum in parts:
        ms, counts = [], []
        for d in small.ds:
            cell = Cell(figure, d, alpha, small.width, momentum)
            ms.append(cell.m)
            counts.append(steps_taken(cell, p))
        power = max(0.0, float(np.polyfit(np.log(ms), np.log(counts), 1)[0]))
        part = [cell for cell in every if (cell.figure, cell.alpha, cell.momentum) == (figure, alpha, momentum)]
        each = [seconds_a_step(cell, p) for cell in part]
        steps = [counts[-1] * (cell.m / ms[-1]) ** power for cell in part]
        seconds = len(p.sweep.seeds) * float(np.dot(steps, each))
        a_step += sum(each)
        total += seconds
        print(
            f"Fig {figure[0]}({figure[1]}), α = {alpha:g}: {len(part)} cells, "
            f"{counts[-1]} steps at d = {small.ds[-1]}, growing as m^{power:.2f}: {seconds / 60:.1f} minutes",
            flush=True,
        )
    bar(f"the whole grid, {len(every)} cells of {len(p.sweep.seeds)} seeds, here", total / 3600, unit="hours")
    days = PROTOCOL_STEPS * len(p.sweep.seeds) * a_step / 86400
    bar(f"the paper's protocol, {PROTOCOL_STEPS:,} iterations at the price of our steps", days, unit="days")


if __name__ == "__main__":
    parser = Command(__doc__)
    parser.add_argument("--run", type=float, metavar="MINUTES", help="run cells for this long instead of predicting")
    arguments = parser.parse_args()
    if arguments.run and arguments.tiny:
        parser.error("--run and --tiny do not go together: what --run finds is kept")
    paper = at_scale(SweepParams, PRESET, ROOT / "params.yaml")
    if arguments.tiny:
        predict(paper.model_copy(update={"sweep": paper.sweep.model_copy(update=TINY)}), Small((16, 20), 50))
    elif arguments.run:
        run(paper, at_scale(MarginParams, PRESET, ROOT / "params.yaml").margin.slack, arguments.run)
    else:
        predict(paper, Small((100, 200), 1000))
