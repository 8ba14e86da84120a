"""The whole grid of VYS Figures 1 and 2 at the paper's scale (presets/paper.yaml) on this machine.

    python benchmarks/grid.py                  how long it would take, predicted from a few cells measured now
    python benchmarks/grid.py --tiny           predict four small cells

The prediction times a few steps of each kind of cell and multiplies by the number of steps, which is measured on small
cells that are trained to the end and extrapolated as a power of m. `make evidence CHAPTER=margin` runs the grid.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take

# isort: split
import numpy as np
import torch

from bars import bar
from brittle.core import device, machine
from brittle.core.progress import Checkpoints, resumable
from brittle.core.rng import rng
from brittle.margin import networks
from brittle.margin.draws import draws
from brittle.margin.sweep_params import SweepParams
from brittle.nets.two_layer import initial
from brittle.params import at_scale
from brittle.train import flow
from brittle.train.state import NotReached
from command import Command

ROOT = Path(__file__).parents[1]
PRESET = ROOT / "presets/paper.yaml"
WARM, TIMED = 2, 4  # numbers of steps
CORES = 2  # on which stages of one thread run side by side
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


def steps_taken(cell: Cell, p: SweepParams) -> int:
    with resumable("grid") as checkpoints:
        return len(train(checkpoints, cell, p, p.sweep.max_steps, p.sweep.seeds[:1]).histories[0])


def seconds_a_step(cell: Cell, p: SweepParams) -> float:
    """Seconds per step of one network, without the first steps."""
    x, y = (torch.from_numpy(a) for a in draws(cell.d, cell.m, p.sweep.seeds[:1]))
    machine.use_threads()  # as a stage does
    if cell.m * cell.width >= networks.LARGE:
        device.keep_freed_memory()
    net = initial(cell.d, cell.width, 1.0, [rng(p.sweep.seeds[0], "margin init")])
    stamps: list[float] = []
    settings = {"loss": p.sweep.loss, "ln_target": -69.0, "momentum": cell.momentum, "max_steps": WARM + TIMED}
    with contextlib.suppress(NotReached):
        flow.train(x, y, net, watch=lambda state: stamps.append(time.perf_counter()), **settings)
    return float(np.median(np.diff(stamps)[WARM:]))


def steps_of(every: list[Cell], p: SweepParams, small: Small) -> dict[Cell, float]:
    """How many steps each cell takes: measured on small cells of its kind, and extrapolated as a power of m."""
    kinds: dict[tuple[str, float, float], list[Cell]] = {}
    for cell in every:
        kinds.setdefault((cell.figure, cell.alpha, cell.momentum), []).append(cell)
    found = {}
    for (figure, alpha, momentum), part in sorted(kinds.items()):
        tried = [Cell(figure, d, alpha, small.width, momentum) for d in small.ds]
        counts = [steps_taken(cell, p) for cell in tried]
        power = max(0.0, float(np.polyfit(np.log([cell.m for cell in tried]), np.log(counts), 1)[0]))
        found |= {cell: counts[-1] * (cell.m / tried[-1].m) ** power for cell in part}
        print(
            f"Fig {figure}, α = {alpha:g}, momentum {momentum:g}: {len(part)} cells, "
            f"{counts[-1]} steps at d = {small.ds[-1]}, growing as m^{power:.2f}",
            flush=True,
        )
    return found


def predict(p: SweepParams, small: Small) -> None:
    device.pick("cpu")
    steps = steps_of(cells(p), p, small)
    a_step = {cell: seconds_a_step(cell, p) for cell in steps}  # of one network
    total = len(p.sweep.seeds) * sum(steps[cell] * a_step[cell] for cell in steps)
    what = f"the whole grid, {len(steps)} cells of {len(p.sweep.seeds)} seeds"
    bar(f"{what}, on one core here", total / 3600, unit="hours")
    bar(f"{what}, as stages side by side on two", total / CORES / 3600, at_most=3.5, unit="hours")
    days = PROTOCOL_STEPS * len(p.sweep.seeds) * sum(a_step.values()) / 86400
    bar(f"the paper's protocol, {PROTOCOL_STEPS:,} iterations at the price of our steps", days, unit="days")


if __name__ == "__main__":
    arguments = Command(__doc__).parse_args()
    paper = at_scale(SweepParams, PRESET, ROOT / "params.yaml")
    if arguments.tiny:
        predict(paper.model_copy(update={"sweep": paper.sweep.model_copy(update=TINY)}), Small((16, 20), 50))
    else:
        predict(paper, Small((100, 200), 1000))
