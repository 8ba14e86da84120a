"""How far the network of `flow` is from that of the paper's protocol, by width: the table in docs/flow.md.

    python benchmarks/path.py           # some 3 minutes on 2 cores
    python benchmarks/path.py --tiny    # one narrow network, to loss 1e-3

The protocol's learning rate grows every 20 steps here, not every 100: that moves c by at most 0.3 % (12 networks of
widths 50, 90 and 150), and takes a fifth of the steps.
"""

from __future__ import annotations

import math

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take

# isort: split
import numpy as np
import torch

from bars import bar
from brittle.core.device import pick
from brittle.core.rng import rng
from brittle.nets.two_layer import TwoLayer, initial
from brittle.probes.margin import probe
from brittle.train import flow, protocol
from brittle.worlds import sphere
from command import Command

SIZES = ((37, 52), (60, 40), (100, 100))  # d, m
WIDTHS = {50: 8, 90: 8, 150: 8, 200: 4, 300: 4, 500: 4, 1000: 4}  # and the number of seeds
FIRST_SEED = 10  # the constants of the step bound were chosen on seeds 0 to 3
PROTOCOL = {"batch": 5000, "lr": 1e-5, "growth": 1.1, "every": 20, "max_steps": 10**6}


def cs(net: TwoLayer, x: torch.Tensor, y: torch.Tensor) -> np.ndarray:
    """c of each of s networks."""
    nets = (TwoLayer(*(p[i : i + 1].double() for p in vars(net).values())) for i in range(len(x)))
    return np.array([probe(one, xi.double(), yi.double(), 1.1).c for one, xi, yi in zip(nets, x, y, strict=True)])


def compare(d: int, m: int, width: int, seeds: range, log10_target: float) -> None:
    data = [sphere.sample(d, m, rng(seed, "data")) for seed in seeds]
    x, y = (torch.from_numpy(np.stack(part)).float() for part in zip(*data, strict=True))
    net = initial(d, width, 1.0, [rng(seed, "init") for seed in seeds]).to(torch.float32)
    how = {"loss": "exponential", "ln_target": log10_target * math.log(10)}
    theirs = cs(protocol.train(x, y, net, **how, **PROTOCOL)[0], x, y)
    narrow = width < flow.NARROW
    ways = {f"momentum {momentum:g}": (momentum, flow.BACKTRACKING) for momentum in (0.0, 0.7, 0.9)}
    if narrow:
        ways = {"narrow": (0.7, None), "as wide": (0.7, flow.BACKTRACKING)}
    for name, (momentum, search) in ways.items():
        ours, state = flow.train(x, y, net, **how, momentum=momentum, max_steps=10**6, search=search)
        off = 100 * np.abs(cs(ours, x, y) / theirs - 1)
        what = f"d = {d}, m = {m}, width {width}, {name}: c off the protocol's, "
        bar(f"{what}median of {len(x)} seeds, {len(state.history)} steps", float(np.median(off)), unit="%")
        bar(f"{what}at most", float(off.max()), at_most=2 if narrow and search is None else None, unit="%")


if __name__ == "__main__":
    tiny = Command(__doc__).parse_args().tiny
    pick("cpu")
    for d, m in ((20, 10),) if tiny else SIZES:
        for width, seeds in ({50: 1} if tiny else WIDTHS).items():
            compare(d, m, width, range(FIRST_SEED, FIRST_SEED + seeds), -3 if tiny else -30)
