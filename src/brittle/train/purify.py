"""FP's Algorithms 1 and 2: a symmetric network trained by descent on fresh samples, cleanly or on perturbed ones.

Clean training from random weights has two parts: the bias grows while neurons win their lottery tickets (§6.1), then it
is constant and the mixtures form (§6.2). Adversarial training continues from there. All are stretches of the same loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from brittle.core.rng import rng
from brittle.nets.symmetric import REACH, Symmetric
from brittle.train.graphs import captured
from brittle.worlds.sparse_coding import SparseCoding

T = TypeVar("T")

BLOCK = 16  # batches drawn at a time
LOOKED = 4096  # samples; a neuron that is off on all of them is taken to be dead


# The network, samples (n, d), labels (n,), a share of the full radius -> δ (n, d)
Perturb = Callable[[Symmetric, Tensor, Tensor, float], Tensor]


@dataclass(frozen=True)
class Stretch:
    """Consecutive steps under the same rules."""

    steps: int
    batch: int
    lr: float
    growth: float = 0.0  # c_b: in η of training time the bias grows by η c_b/d
    most: float = float("inf")  # the bias stops here
    attack: Perturb | None = None
    warm: float = 0.0  # the radius grows from 0 over this share of the steps
    slow: float = 0.2  # this share of the steps, at the end, has a fifth of the learning rate
    prune: int = 0  # blocks of steps after which neurons that are off on all of many samples are dropped; 0: never


@dataclass(frozen=True)
class Rules:
    """What all stretches have in common."""

    momentum: float
    decay: float  # λ of λ Σ_i Reg(w_i)
    rho: float  # σ_ρ as a share of b


@dataclass
class Training:
    """The state of training, which can be saved and restored to resume exactly."""

    w: Tensor  # (m, d)
    start: Tensor  # (m, d) the initial weights of these neurons
    velocity: Tensor  # (m, d)
    b: float
    step: int = 0  # within the stretch

    @classmethod
    def begin(cls, w: Tensor, b: float) -> Training:
        return cls(w.clone(), w.clone(), torch.zeros_like(w), b)

    def then(self) -> Training:
        """The state in which the next stretch begins."""
        return Training(self.w.clone(), self.start, torch.zeros_like(self.w), self.b)

    def net(self, rules: Rules) -> Symmetric:
        return Symmetric(self.w, self.b, rules.rho * self.b)

    def keep(self, neurons: Tensor) -> None:
        """Keep only these neurons from here on."""  # (m,) bool
        neurons = neurons.nonzero()[:, 0]
        self.w, self.start, self.velocity = self.w[neurons], self.start[neurons], self.velocity[neurons]


def run(
    state: Training,
    world: SparseCoding,
    stretch: Stretch,
    rules: Rules,
    seed: int,
    stream: str,
    watch: Callable[[Training], None] = lambda state: None,
) -> None:
    """Train from the given state to the end of the stretch, on samples from the stream of this seed and name.

    `watch` sees the state between blocks of steps.
    """
    where = state.w.device
    sizes = [min(BLOCK, stretch.steps - first) * stretch.batch for first in range(state.step, stretch.steps, BLOCK)]
    streams = [rng(seed, f"{stream} {first}") for first in range(state.step, stretch.steps, BLOCK)]
    blocks = map(world.draw, sizes, streams)
    descent = captured(descend, where, still=2)
    for (x, y), draws in zip(blocks if where.type == "cpu" else ahead(blocks), streams, strict=True):
        watch(state)
        for batch in zip(*(torch.from_numpy(part).to(where).split(stretch.batch) for part in (x, y)), strict=True):
            step(state, *batch, stretch, rules, descent)
        if stretch.prune and (state.step % (BLOCK * stretch.prune) == 0 or state.step == stretch.steps):
            state.keep(alive(state.net(rules), drawn(world, LOOKED, draws, where)[0]))
    watch(state)


def ahead(blocks: Iterator[T]) -> Iterator[T]:
    """The same blocks, each made by another thread while the one before is used: the host draws, the GPU trains."""
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = other.submit(next, blocks, None)
            yield block


def drawn(
    world: SparseCoding, n: int, draws: np.random.Generator, device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """Samples and labels as tensors."""  # (n, d), (n,)
    x, y = world.draw(n, draws)
    return torch.from_numpy(x).to(device), torch.from_numpy(y).to(device)


def alive(net: Symmetric, x: Tensor) -> Tensor:
    """Which neurons are on, even slightly, on any of these samples; the others only decay from here on."""  # (m,)
    return (net.w @ x.T).abs().amax(1) > net.b - REACH * net.sigma


def descend(
    w: Tensor,  # (m, d), which is changed
    velocity: Tensor,  # (m, d), which is changed
    x: Tensor,  # (n, d)
    y: Tensor,  # (n,)
    b: float,
    lr: float,
    grown: float,  # the share of the attack's radius
    attack: Perturb | None,
    rules: Rules,
) -> None:
    """One step of descent on Loss + λ Σ_i Reg(w_i)."""
    net = Symmetric(w, b, rules.rho * b)
    if attack:
        x = x + attack(net, x, y, grown)
    look = net.look(x)
    gradient = look.weight_gradient(-y * torch.sigmoid(-y * look.scores) / len(y), x)
    # ∇Reg(w) = (‖w‖ + 1) w (Fact A.1), which is that of ‖w‖₂²/2 + ‖w‖₂³/3: the ‖w‖₃³ of §4 is a slip.
    gradient.addcmul_(w, rules.decay * (w.norm(dim=1, keepdim=True) + 1))
    velocity.mul_(rules.momentum).add_(gradient)
    w.sub_(velocity, alpha=lr)


def step(
    state: Training,
    x: Tensor,  # (n, d)
    y: Tensor,  # (n,)
    stretch: Stretch,
    rules: Rules,
    descent: Callable[..., None] = descend,
) -> None:
    """One step of descent; the bias grows with it."""
    lr = stretch.lr * (0.2 if state.step >= (1 - stretch.slow) * stretch.steps else 1.0)
    grown = min(1.0, state.step / (stretch.warm * stretch.steps)) if stretch.warm else 1.0
    descent(state.w, state.velocity, x, y, state.b, lr, grown, stretch.attack, rules)
    time = lr / (1 - rules.momentum)  # η of plain descent
    state.b = max(state.b, min(state.b + time * stretch.growth / x.shape[1], stretch.most))
    state.step += 1
