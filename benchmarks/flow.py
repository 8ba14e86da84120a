"""How fast `flow` reaches the paper's network, against the paper's protocol (ours, and a textbook script), in one run.

    python benchmarks/flow.py           # some 4 minutes on 2 cores
    python benchmarks/flow.py --tiny    # a small network, to loss 0.04

Ratios are of wall time on this machine, with all its cores. At d = 500 the protocol's time is estimated: 300 iterations
are timed and scaled up to the number that d = 100 needed. That number does not depend on the size (about 72,000
everywhere), because the learning rate alone sets the pace.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take

# isort: split
import torch
from torch import Tensor

import textbook
from bars import bar
from brittle.core.device import keep_freed_memory, pick
from brittle.core.rng import rng
from brittle.margin import networks
from brittle.nets.two_layer import TwoLayer, initial
from brittle.probes.margin import probe
from brittle.train import flow, protocol
from brittle.train.state import NotReached
from brittle.worlds import sphere
from command import Command


@dataclass(frozen=True)
class Size:
    width: int
    target: float  # loss
    timed: int  # iterations to time where a whole run would take too long
    rounds: int  # the fastest counts: the shorter a run, the more other load disturbs it
    whole: int  # d = m where the protocol runs to its end
    estimated: int  # d = m where its time is estimated
    product: int  # rows of the matrices whose product measures the peak
    large: int  # d where the share of the peak has a bar, at m = d^1.5


# m · target < 1, so that no sample is wrong at the end
FULL = Size(width=1000, target=1e-30, timed=300, rounds=5, whole=100, estimated=500, product=2048, large=1000)
TINY = Size(width=50, target=0.04, timed=10, rounds=1, whole=16, estimated=20, product=64, large=20)


@dataclass
class Run:
    name: str
    steps: int
    seconds: float
    net: TwoLayer | None = None  # None if training did not run to its end
    note: str = ""

    def whole(self, steps: int) -> Run:
        """The same run, extrapolated to this many steps."""
        note = f"estimated: {self.steps} iterations timed"
        return Run(self.name, steps, self.seconds * steps / self.steps, note=note)


def timed(what: Callable[[], object]) -> float:
    started = time.perf_counter()
    what()
    return time.perf_counter() - started


def by_textbook(x: Tensor, y: Tensor, net: TwoLayer, size: Size, most: int | None) -> Run:
    script = textbook.Net(net.w[0], net.b[0], net.v[0])
    steps, seconds = textbook.train(x[0], y[0], script, most, size.target)
    layers = (script.hidden.weight[None], script.hidden.bias[None], script.out.weight)
    trained = None if most else TwoLayer(*(layer.detach() for layer in layers))
    return Run("textbook script (baseline)", steps, seconds, trained)


def by_protocol(x: Tensor, y: Tensor, net: TwoLayer, size: Size, most: int | None) -> Run:
    how = {"loss": "exponential", "batch": 5000, "lr": 1e-5, "growth": 1.1, "every": 100}
    how |= {"ln_target": math.log(size.target), "max_steps": most or 10**9}
    trained, steps, started = None, most or 0, time.perf_counter()
    try:
        trained, state = protocol.train(x, y, net, **how)
        steps = len(state.history)
    except NotReached:
        pass  # expected: only the first iterations are timed
    return Run("method: protocol", steps, time.perf_counter() - started, trained)


def by_flow(x: Tensor, y: Tensor, net: TwoLayer, size: Size, name: str, momentum: float, peak: float) -> Run:
    how = {"loss": "exponential", "ln_target": math.log(size.target), "momentum": momentum, "max_steps": 100_000}
    trained, state = flow.train(x, y, net, **how)
    seconds = min(timed(lambda: flow.train(x, y, net, **how)) for _ in range(size.rounds))
    m, d = x.shape[1:]
    steps = len(state.history)
    share = 100 * steps * operations(m, d, size.width) / seconds / peak
    return Run(name, steps, seconds, trained, f"{share:.0f} % of the matrix-multiply peak")


def operations(m: int, d: int, width: int) -> int:
    """Additions and multiplications in the products of a step of flow."""
    return width * (2 * m * m if m < 2 * d else 4 * m * d)


def matrix_multiply_peak(n: int) -> float:
    """Peak operations per second: the best of ten large products."""
    a, b = torch.randn(n, n), torch.randn(n, n)
    return 2 * n**3 / min(timed(lambda: a @ b) for _ in range(10))


def compare(size: Size, d: int, iterations: int | None, peak: float, at_least: float) -> int:
    """Print one table and return the protocol's iterations: those given (then its time is estimated), or as run."""
    x, y = (torch.from_numpy(a)[None].float() for a in sphere.sample(d, d, rng(0, "benchmark data")))
    net = initial(d, size.width, 1.0, [rng(0, "benchmark init")])
    print(f"\nd = m = {d}, width {size.width}, one seed, exponential loss to {size.target:g}")
    print(f"  {'':<28}{'steps':>7}{'time':>12}{'faster':>11}{'c':>8}{'margin':>10}")
    runs = [by(x, y, net, size, size.timed if iterations else None) for by in (by_textbook, by_protocol)]
    if iterations:
        runs = [run.whole(iterations) for run in runs]
    runs.append(by_flow(x, y, net, size, "method: flow, momentum 0", 0.0, peak))
    runs.append(by_flow(x, y, net, size, "method: flow (default, 0.7)", 0.7, peak))
    exact: list[float] = []
    for run in runs:
        c = share = "-"
        if run.net:
            found = probe(run.net.to(torch.float64), x[0].double(), y[0].double(), 1.1)
            exact.append(found.c)
            c, share = f"{found.c:.3f}", f"{100 * float(found.margin.double().mean()):.1f} %"
        ratio = runs[0].seconds / run.seconds
        print(f"  {run.name:<28}{run.steps:>7,}{run.seconds:>10.2f} s{ratio:>9.0f} ×{c:>8}{share:>10}  {run.note}")
    if not iterations:
        off = 100 * abs(exact[-1] / exact[0] - 1)
        bar(f"d = {d}: how far the default's c is off the baseline's", off, at_most=2, unit="%")
    bar(f"d = {d}: the default faster than the baseline", runs[0].seconds / runs[-1].seconds, at_least=at_least)
    return runs[0].steps


def share_of_peak(size: Size) -> None:
    """Time steps at m = d^1.5 in turns with the product that measures the peak: other load slows both."""
    d, m = size.large, round(size.large**1.5)
    if m * size.width >= networks.LARGE:
        keep_freed_memory()
    x, y = (torch.from_numpy(a)[None].float() for a in sphere.sample(d, m, rng(0, "benchmark data")))
    net = initial(d, size.width, 1.0, [rng(0, "benchmark init")])
    shares: list[float] = []
    began = time.perf_counter()

    def watch(state: flow.FlowState) -> None:
        nonlocal began
        took = time.perf_counter() - began
        if len(state.history) > 2:  # the first steps find their memory
            shares.append(operations(m, d, size.width) / took / matrix_multiply_peak(size.product))
        began = time.perf_counter()

    with contextlib.suppress(NotReached):  # expected: only the first steps are timed
        flow.train(x, y, net, loss="exponential", ln_target=-1e9, momentum=0.7, max_steps=12, watch=watch)
    print(f"\nd = {d}, m = d^1.5 = {m:,}, width {size.width:,}: a step of flow (default)")
    bar(f"d = {d}, m = d^1.5: share of the matrix-multiply peak", 100 * median(shares), at_least=60, unit="%")


if __name__ == "__main__":
    size = TINY if Command(__doc__).parse_args().tiny else FULL
    pick("cpu")
    peak = matrix_multiply_peak(size.product)
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}, peak {peak / 1e9:.0f} GFlop/s")
    needed = compare(size, size.whole, None, peak, at_least=1000)
    compare(size, size.estimated, needed, peak, at_least=100)
    share_of_peak(size)
