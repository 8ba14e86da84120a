"""Steps of clean and adversarial training on the sparse coding model, against autograd and torch.optim.

    python benchmarks/sparse.py
    python benchmarks/sparse.py --tiny    # a few steps of few neurons

Both sides take the same steps on the same batches from the same weights (the final weights are compared, too) and
alternate in one run; drawing the samples is not timed. What makes the difference: after the first product, nothing is
computed for inactive neurons, and no graph is built.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take

# isort: split
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from bars import bar
from brittle.attacks.fgm import Attack
from brittle.nets import symmetric
from brittle.train.purify import Rules, Stretch, Training, drawn, run, step
from brittle.worlds.sparse_coding import SparseCoding, labelling, orthogonal
from command import Command

TAU = 0.3
RULES = Rules(momentum=0.9, decay=0.1 / 256, rho=0.05)


@dataclass(frozen=True)
class Size:
    d: int
    batch: int
    steps: int  # timed
    rounds: int
    before: int  # steps of training before the comparison
    copies: tuple[int, ...]  # neurons per word


FULL = Size(d=256, batch=256, steps=40, rounds=3, before=160, copies=(1, 8))
TINY = Size(d=32, batch=32, steps=4, rounds=1, before=10, copies=(2,))


class Autograd(torch.nn.Module):
    """The network of FP §4 as one would write it first."""

    def __init__(self, w: Tensor, b: float) -> None:
        super().__init__()
        self.w, self.b, self.sigma = torch.nn.Parameter(w.clone()), b, RULES.rho * b

    def relu(self, u: Tensor) -> Tensor:
        t = u / self.sigma
        return u * 0.5 * (1 + torch.erf(t / math.sqrt(2))) + self.sigma * torch.exp(-t * t / 2) / math.sqrt(2 * math.pi)

    def forward(self, x: Tensor) -> Tensor:
        a = x @ self.w.T
        return (self.relu(a - self.b) - self.relu(-a - self.b)).sum(1)

    def fgm(self, x: Tensor, y: Tensor) -> Tensor:
        leaf = x.clone().requires_grad_()
        (g,) = torch.autograd.grad((y * self(leaf)).sum(), leaf)
        return -TAU * g / g.norm(dim=1, keepdim=True)


def by_autograd(w: Tensor, b: float, batches: list[tuple[Tensor, Tensor]], adversarial: bool) -> Tensor:
    net = Autograd(w, b)
    descent = torch.optim.SGD(net.parameters(), lr=0.1, momentum=RULES.momentum)
    for x, y in batches:
        if adversarial:
            x = x + net.fgm(x, y)
        norms = net.w.norm(dim=1)
        loss = softplus(-y * net(x)).mean() + RULES.decay * (norms**2 / 2 + norms**3 / 3).sum()
        descent.zero_grad()
        loss.backward()
        descent.step()
    return net.w.detach()


def by_hand(w: Tensor, b: float, batches: list[tuple[Tensor, Tensor]], adversarial: bool) -> Tensor:
    state = Training.begin(w, b)
    attack = Attack("l2", TAU) if adversarial else None
    stretch = Stretch(len(batches), len(batches[0][0]), 0.1, attack=attack, slow=0.0)
    for x, y in batches:
        step(state, x, y, stretch, RULES)
    return state.w


def compare(state: Training, batches: list[tuple[Tensor, Tensor]], adversarial: bool, rounds: int) -> None:
    """Compare steps per second (the best of several alternating rounds), and how far apart the final weights are."""
    best, ends = {by_autograd: math.inf, by_hand: math.inf}, {}
    for _ in range(rounds):
        for train in best:
            start = time.perf_counter()
            ends[train] = train(state.w, state.b, batches, adversarial)
            best[train] = min(best[train], (time.perf_counter() - start) / len(batches))
    slow, fast = best.values()
    apart = float((ends[by_autograd] - ends[by_hand]).abs().max())
    kind = f"{len(state.w)} neurons, {'adversarial' if adversarial else 'clean'}"
    print(f"{kind}: {1 / fast:.0f} steps/s; autograd {1 / slow:.0f} (ends {apart:.0e} apart)")
    bar(f"{kind}: faster than autograd", slow / fast)


def main(size: Size) -> None:
    rng = np.random.default_rng(0)
    d, batch = size.d, size.batch
    world = SparseCoding(orthogonal(d, d, rng), labelling(d, 0.0, rng), k=8, sigma_x=0.3, margin=1.0)
    x, y = drawn(world, size.steps * batch, rng)
    batches = list(zip(x.split(batch), y.split(batch), strict=True))
    for copies in size.copies:
        w = symmetric.pure(world.dictionary, world.w_star, copies * d, 0.5, 3e-3, rng)
        state = Training.begin(w, 0.07)
        run(state, world, Stretch(size.before, batch, 0.1), RULES, 0, "to somewhere typical")
        for adversarial in (False, True):
            compare(state, batches, adversarial, size.rounds)


if __name__ == "__main__":
    main(TINY if Command(__doc__).parse_args().tiny else FULL)
