"""Steps of clean and adversarial training on the sparse coding model, against autograd and torch.optim.

    python benchmarks/sparse.py

Both sides take the same steps on the same batches from the same weights (their ends are compared, too) and alternate
in one run; drawing the samples is left out of both. What makes the difference: of the neurons that are off nothing is
computed after the first product, and no graph is built.
"""

from __future__ import annotations

import math
import time

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from brittle.attacks.fgm import Attack
from brittle.nets import symmetric
from brittle.train.purify import Rules, Stretch, Training, drawn, run, step
from brittle.worlds.sparse_coding import SparseCoding, labelling, orthogonal

STEPS, ROUNDS, BATCH, TAU = 40, 3, 256, 0.3
RULES = Rules(momentum=0.9, decay=0.1 / 256, rho=0.05)


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
    stretch = Stretch(len(batches), BATCH, 0.1, attack=Attack("l2", TAU) if adversarial else None, slow=0.0)
    for x, y in batches:
        step(state, x, y, stretch, RULES)
    return state.w


def compared(state: Training, batches: list[tuple[Tensor, Tensor]], adversarial: bool) -> str:
    """Steps a second of both, the best of some rounds in turn, and how far apart they end."""
    best, ends = {by_autograd: math.inf, by_hand: math.inf}, {}
    for _ in range(ROUNDS):
        for train in best:
            start = time.perf_counter()
            ends[train] = train(state.w, state.b, batches, adversarial)
            best[train] = min(best[train], (time.perf_counter() - start) / len(batches))
    slow, fast = best.values()
    apart = float((ends[by_autograd] - ends[by_hand]).abs().max())
    speeds = f"{1 / fast:6.0f} steps/s; autograd {1 / slow:6.0f}: {slow / fast:.1f} ×"
    kind = "adversarial" if adversarial else "clean"
    return f"{len(state.w):5d} neurons, {kind:11s} {speeds}   (ends {apart:.0e} apart)"


def main() -> None:
    rng = np.random.default_rng(0)
    d = 256
    world = SparseCoding(orthogonal(d, d, rng), labelling(d, 0.0, rng), k=8, sigma_x=0.3, margin=1.0)
    x, y = drawn(world, STEPS * BATCH, rng)
    batches = list(zip(x.split(BATCH), y.split(BATCH), strict=True))
    for copies in (1, 8):
        w = symmetric.pure(world.dictionary, world.w_star, copies * d, 0.5, 3e-3, rng)
        state = Training.begin(w, 0.07)
        run(state, world, Stretch(160, BATCH, 0.1), RULES, 0, "to somewhere typical")
        for adversarial in (False, True):
            print(compared(state, batches, adversarial))


if __name__ == "__main__":
    main()
