"""How fast `sgd` trains on slabs and how fast slabs are drawn, against the scripts one would write, in one run.

    python benchmarks/slabs.py            # some 2 minutes on 2 cores
    python benchmarks/slabs.py --quick    # fewer updates: the networks are not yet what they will be
    python benchmarks/slabs.py --tiny     # a few updates on few samples

The three trainings take turns, an epoch each, so that other load on the machine slows all of them; times are medians
over the turns. Each uses one thread or all, whichever is faster in a trial: on a busy machine threads wait for one
another, especially in small products, and a baseline slowed in this way would make the others look too good.
With them goes what bounds them: the products of matrices of an update, and nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from statistics import median

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take

# isort: split
import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from bars import bar
from brittle.core.device import pick
from brittle.core.rng import rng
from brittle.nets.fcn import Fcn
from brittle.probes.randomised import randomised
from brittle.train import sgd
from brittle.train.sgd import Member, SgdPlan
from brittle.worlds import slabs
from command import Command

D, WIDTH, DEPTH, BATCH, LR, WEIGHT_DECAY = 50, 100, 2, 256, 0.1, 5e-7
WORLD = slabs.world("lms-5", D)
TRIAL = 20 * BATCH

Scores = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Size:
    n: int  # training samples
    test: int
    seeds: int  # networks side by side
    epochs: int
    repetitions: int  # how often the data are drawn

    @property
    def epoch(self) -> int:
        """The number of updates in an epoch."""
        return self.n // BATCH


FULL = Size(n=100_000, test=20_000, seeds=8, epochs=13, repetitions=3)  # 5,070 updates
QUICK = replace(FULL, epochs=4, repetitions=1)
TINY = Size(n=1000, test=500, seeds=2, epochs=2, repetitions=1)


def textbook(x: Tensor, y: Tensor) -> Iterator[Scores]:
    """The baseline: nn.Sequential, DataLoader and optim.SGD. Yields the network's scores after each epoch."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(D, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2))
    loader = DataLoader(TensorDataset(x, (y > 0).long()), batch_size=BATCH, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)
    criterion = nn.CrossEntropyLoss()
    updates = 0
    while True:
        for inputs, labels in loader:
            optimizer.zero_grad()
            criterion(net(inputs), labels).backward()
            optimizer.step()
            updates += 1
            if updates % (len(x) // BATCH) == 0:
                yield lambda points: net(points).diff(dim=1).squeeze(1)


def side_by_side(x: Tensor, y: Tensor, seeds: int) -> Iterator[Scores]:
    """`sgd.train`. Yields the scores of the first network after each epoch."""
    net = Fcn(D, WIDTH, DEPTH)
    members = [Member(seed, lr=LR, weight_decay=WEIGHT_DECAY) for seed in range(seeds)]
    state = None
    for epochs in count(1):
        state = sgd.train(net, members, x[None], y[None], SgdPlan(epochs, BATCH), state=state)
        yield lambda points, theta=state.theta[:1]: net(theta, points[None])[0]


def products(x: Tensor, y: Tensor, seeds: int) -> Iterator[None]:
    """The products of matrices in the updates of so many networks, forwards and backwards, in memory that is kept."""
    w1, w2, v = (torch.randn(seeds, *shape) for shape in ((WIDTH, D), (WIDTH, WIDTH), (1, WIDTH)))
    h1, h2, back = (torch.randn(seeds, WIDTH, BATCH) for _ in range(3))
    f, g1, g2, g3 = (torch.empty_like(like) for like in (h1[:, :1], w1, w2, v))
    rows = torch.randn(seeds, BATCH, D)
    pairs = [(w1, rows.mT, h1), (w2, h1, h2), (v, h2, f), (f, h2.mT, g3), (back, h1.mT, g2), (w2.mT, back, h2)]
    while True:
        for _ in range(len(x) // BATCH):
            for a, b, out in [*pairs, (back, rows, g1)]:
                torch.bmm(a, b, out=out)
        yield


def one_coordinate_at_a_time(n: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The baseline: shuffle all rows, fill a coordinate slab by slab, shuffle again; LMS-5 by its definition."""
    gamma, b, k = 0.1, 1.0, 5
    width = 2 * b * (1 - (k - 1) * gamma) / k
    slab_lows = [-b + i * (width + 2 * gamma * b) for i in range(k)]
    x, y = np.zeros((n, D)), random.choice([-1, 1], n)
    for i in range(D):
        order = random.permutation(n)
        x, y = x[order], y[order]
        for label, outwards in ((1, [0, 1 / 2, 0, 1 / 2, 0]), (-1, [1 / 8, 0, 3 / 4, 0, 1 / 8])):
            rows = np.flatnonzero(y == label)
            if i == 0:
                x[rows, i] = label * random.uniform(gamma * b, b, len(rows))
                continue
            slab = random.choice(k, len(rows), p=outwards)
            for each, low in enumerate(slab_lows):
                here = rows[slab == each]
                x[here, i] = random.uniform(low, low + width, len(here))
    return x, y


def by_quantiles(n: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return WORLD.sample(n, random)


def seconds(what: Callable[[], object]) -> float:
    started = time.perf_counter()
    what()
    return time.perf_counter() - started


def suited(start: Callable[[Tensor, Tensor], Iterator[Scores | None]], x: Tensor, y: Tensor) -> int:
    """The faster number of threads, one or all, in a trial of a few short epochs each."""
    times = {}
    for threads in (1, os.cpu_count() or 1):
        torch.set_num_threads(threads)
        turns = start(x[:TRIAL], y[:TRIAL])
        next(turns)  # to warm up
        times[threads] = median(seconds(lambda turns=turns: next(turns)) for _ in range(3))
    return min(times, key=times.__getitem__)


@dataclass
class Run:
    name: str
    networks: int
    threads: int
    turns: Iterator[Scores | None]
    times: list[float] = field(default_factory=list)
    f: Scores | None = None

    def turn(self) -> None:
        torch.set_num_threads(self.threads)
        started = time.perf_counter()
        self.f = next(self.turns)
        self.times.append(time.perf_counter() - started)

    @property
    def each(self) -> float:
        """Seconds per epoch and network."""
        return median(self.times) / self.networks


def compare_training(size: Size) -> None:
    seeds, epochs = size.seeds, size.epochs
    q = slabs.rotation(D, rng(0, "benchmark rotation"))  # (d, d)
    drawn = (WORLD.sample(n, rng(0, f"benchmark {n}")) for n in (size.n, size.test))
    (x, y), (test, truth) = ((torch.from_numpy(a @ q), torch.from_numpy(b)) for a, b in drawn)
    starts = (
        ("textbook script (baseline)", 1, textbook),
        ("sgd, one network", 1, lambda x, y: side_by_side(x, y, 1)),
        (f"sgd, {seeds} side by side", seeds, lambda x, y: side_by_side(x, y, seeds)),
        ("products of one", 1, lambda x, y: products(x, y, 1)),
        (f"products of {seeds} side by side", seeds, lambda x, y: products(x, y, seeds)),
    )
    runs = [Run(name, networks, suited(start, x, y), start(x, y)) for name, networks, start in starts]
    for _ in range(epochs):
        for run in runs:
            run.turn()
    updates = f"{epochs * size.epoch:,} updates of {BATCH}"
    print(f"\nTraining: ({WIDTH}, {DEPTH})-FCN on LMS-5, d = {D}, n = {size.n:,}, {updates}")
    print(f"  {'a network':<28}{'time':>10}{'updates/s':>12}{'threads':>9}{'faster':>10}   AUC: all, S-, Sᶜ-randomised")
    for run in runs:
        auc = ""
        if run.f:
            found = randomised(run.f, test, truth, torch.from_numpy(q[:1]), rng(0, "donors"), 2, ("s", "rest"))
            auc = ", ".join(f"{found[version].mean.auc_roc:.3f}" for version in ("standard", "s", "rest"))
        pace, gain = size.epoch / run.each, runs[0].each / run.each
        print(f"  {run.name:<28}{epochs * run.each:>8.2f} s{pace:>12,.0f}{run.threads:>9}{gain:>8.1f} ×   {auc}")
    bar("one network, faster than the baseline", runs[0].each / runs[1].each, at_least=8)
    bar(f"each of {seeds} side by side, faster than the baseline", runs[0].each / runs[2].each, at_least=12)
    bar("the products of one network alone, faster than the baseline", runs[0].each / runs[3].each)
    bar(f"the products of each of {seeds} alone, faster than the baseline", runs[0].each / runs[4].each)


def compare_data(size: Size) -> None:
    """Time both ways of drawing and rotating; check the distributions by the means of |x|, label by label."""
    q = slabs.rotation(D, rng(0, "benchmark rotation"))
    times: dict[str, list[float]] = {"one coordinate at a time": [], "World.sample": []}
    hows = dict(zip(times, (one_coordinate_at_a_time, by_quantiles), strict=True))
    for repetition in range(size.repetitions):
        for name, how in hows.items():
            random = rng(repetition, name)
            times[name].append(seconds(lambda how=how, random=random: how(size.n, random)[0] @ q))
    slow, fast = (median(each) for each in times.values())
    print(f"\nData: {size.n:,} samples of LMS-5, d = {D}, and their rotation")
    print(f"  {'':<28}{'time':>10}{'faster':>31}   mean |x| in slabs: y = 1, y = -1")
    for (name, how), took in zip(hows.items(), (slow, fast), strict=True):
        x, y = how(size.n, rng(0, "check"))
        means = ", ".join(f"{np.abs(x[y == label, 1:]).mean():.3f}" for label in (1, -1))
        print(f"  {name:<28}{took:>8.2f} s{slow / took:>29.1f} ×   {means}")
    bar("World.sample, faster than the baseline", slow / fast, at_least=10)


if __name__ == "__main__":
    parser = Command(__doc__)
    parser.add_argument("--quick", action="store_true", help="1,560 updates instead of 5,070")
    chosen = parser.parse_args()
    size = TINY if chosen.tiny else QUICK if chosen.quick else FULL
    pick("cpu")
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, torch {torch.__version__}, load before the start {load:.1f}")
    print("Other load on the machine disturbs the ratios: run it on an idle one.")
    compare_training(size)
    compare_data(size)
