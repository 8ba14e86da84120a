"""Stochastic gradient descent and its variants, on mini-batches: one loop for all networks not trained by flow.

Many networks of one shape train side by side, each with its own seed, dataset and hyper-parameters, independent of
the others: a product of matrices for one of them is too small to keep a core busy, let alone a GPU.
The data are on the device as a whole and a batch is cut from them by index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from brittle.core.rng import rng
from brittle.nets.family import Family, Loss, split
from brittle.train.graphs import captured
from brittle.train.muon import BETA, steepest


@dataclass(frozen=True)
class Member:
    """One of the networks that train side by side."""

    seed: int  # of its initial weights, of the order of its batches, of its dropout
    data: int = 0  # which dataset
    lr: float = 0.1
    momentum: float = 0.0  # for sgd
    weight_decay: float = 0.0  # λ: the gradient is that of the loss + ½ λ ‖θ‖²


@dataclass(frozen=True)
class SgdPlan:
    """The settings that all of these networks share."""

    epochs: int  # at most
    batch: int = 256
    optimiser: str = "sgd"
    loss: str = "logistic"
    target: float = 0.0  # a network whose loss, averaged over an epoch, is below this is done …
    enough: float = math.inf  # … and one whose accuracy on the validation set is at least this
    decay: float = 1.0  # the learning rate is multiplied by this …
    decay_every: int = 1  # … every so many epochs


def logistic(q: Tensor) -> tuple[Tensor, Tensor]:
    """ln(1 + e^-q), which is the cross-entropy of two classes, and its derivative."""
    return logsigmoid(q).neg_(), q.neg().sigmoid_().neg_()


def hinge(q: Tensor) -> tuple[Tensor, Tensor]:
    """max(0, 1 - q), and its derivative."""
    return (1 - q).clamp(min=0), -(q < 1).to(q.dtype)


def exponential(q: Tensor) -> tuple[Tensor, Tensor]:
    """e^-q, and its derivative."""
    value = q.neg().exp_()
    return value, -value


LOSSES: dict[str, Loss] = {"logistic": logistic, "hinge": hinge, "exponential": exponential}


@dataclass
class Step:
    """All that an update depends on, for the networks that still train."""

    theta: Tensor  # (s, p)
    g: Tensor  # (s, p)
    memory: tuple[Tensor, Tensor]  # each (s, p), zero at first
    n: int  # 1 at the first update
    lr: Tensor  # (s, 1)
    momentum: Tensor  # (s, 1)
    moves: bool  # whether any momentum is > 0
    shapes: Sequence[tuple[int, ...]]  # of the tensors that a network's θ consists of


def sgd(at: Step) -> None:
    if at.moves:
        at.memory[0].mul_(at.momentum).add_(at.g)
        at.theta.addcmul_(at.memory[0], at.lr, value=-1)
    else:
        at.theta.addcmul_(at.g, at.lr, value=-1)


def adam(at: Step, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> None:
    """Kingma & Ba 2015, Algorithm 1."""
    m, v = at.memory
    m.lerp_(at.g, 1 - beta1)
    v.mul_(beta2).addcmul_(at.g, at.g, value=1 - beta2)
    root = (v / (1 - beta2**at.n)).sqrt_().add_(epsilon)
    at.theta.addcmul_(m / root, at.lr, value=-1 / (1 - beta1**at.n))


def rmsprop(at: Step, alpha: float = 0.99, epsilon: float = 1e-8) -> None:
    """Tieleman & Hinton 2012, as in PyTorch."""
    v = at.memory[1]
    v.mul_(alpha).addcmul_(at.g, at.g, value=1 - alpha)
    at.theta.addcmul_(at.g / v.sqrt().add_(epsilon), at.lr, value=-1)


def muon(at: Step) -> None:
    """Jordan et al. 2024, as in `muon.py`."""
    m = at.memory[0].lerp_(at.g, 1 - BETA)
    ahead = split(at.g.lerp(m, BETA), at.shapes)  # Nesterov's
    at.theta.addcmul_(torch.cat([steepest(p).flatten(1) for p in ahead], dim=1), at.lr, value=-1)


OPTIMISERS: dict[str, Callable[[Step], None]] = {"sgd": sgd, "adam": adam, "rmsprop": rmsprop, "muon": muon}


@dataclass(kw_only=True)
class SgdState:
    """The state between two epochs, which can be saved and restored to resume exactly."""

    theta: Tensor  # (s, p)
    memory1: Tensor  # (s, p) of the optimiser
    memory2: Tensor
    best: Tensor  # (s, p) the weights that did best on the validation set
    best_accuracy: Tensor  # (s,) with these weights; -1 before the first validation
    losses: Tensor  # (epochs so far, s) averaged over each epoch; NaN once a network is done
    done: Tensor  # (s,) bool

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: tensor.cpu().numpy() for name, tensor in vars(self).items()}

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], device: torch.device) -> SgdState:
        return cls(
            **{name: torch.tensor(array, device=device) for name, array in arrays.items()}
        )  # copies, because training writes to them

    @classmethod
    def start(cls, theta: Tensor) -> SgdState:
        s = len(theta)
        return cls(
            theta=theta,
            memory1=torch.zeros_like(theta),
            memory2=torch.zeros_like(theta),
            best=theta.clone(),
            best_accuracy=theta.new_full((s,), -1.0),
            losses=theta.new_empty(0, s),
            done=torch.zeros(s, dtype=torch.bool, device=theta.device),
        )


# The scores of the networks, samples (s, n, d) and labels (s, n) -> the samples to train on instead
Perturb = Callable[[Callable[[Tensor], Tensor], Tensor, Tensor], Tensor]


def initial(family: Family, members: Sequence[Member]) -> Tensor:
    """Each network's weights before training."""  # (s, p)
    return family.initial([rng(member.seed, "sgd init") for member in members])


def train(
    family: Family,
    members: Sequence[Member],
    x: Tensor,  # (datasets, n, d)
    y: Tensor,  # (datasets, n), ±1
    plan: SgdPlan,
    *,
    validation: tuple[Tensor, Tensor] | None = None,  # (datasets, n', d), (datasets, n')
    perturb: Callable[[Tensor], Perturb] | None = None,
    state: SgdState | None = None,
    watch: Callable[[SgdState], None] = lambda state: None,
) -> SgdState:
    """Train until every network has reached the target loss, or for `plan.epochs`.

    With a validation set, `best` in the state returned holds the weights that did best on it, at the end of some epoch.
    perturb: from the indices of the networks that still train to adversarial training's attack on their batches.
    """
    state = state or SgdState.start(initial(family, members).to(x.device))
    batch = min(plan.batch, x.shape[1])
    while len(state.losses) < plan.epochs:
        watch(state)
        left = [i for i, done in enumerate(state.done.tolist()) if not done]
        if not left:
            break
        active = torch.tensor(left, device=x.device)
        losses = _epoch(family, [members[i] for i in left], x, y, plan, batch, state, active, perturb)
        row = torch.full_like(state.best_accuracy, torch.nan)
        row[active] = losses
        state.losses = torch.cat([state.losses, row[None]])
        state.done[active] = (losses < plan.target) | losses.isinf()  # target reached, or diverged
        if validation is not None:
            _validate(family, members, validation, state, left, plan.enough)
    watch(state)
    if validation is None:
        state.best = state.theta
    return state


def _epoch(
    family: Family,
    members: Sequence[Member],
    x: Tensor,
    y: Tensor,
    plan: SgdPlan,
    batch: int,
    state: SgdState,
    active: Tensor,
    perturb: Callable[[Tensor], Perturb] | None,
) -> Tensor:
    """One pass over the data, for the networks that still train; return the mean loss of each."""  # (a,)
    epoch, n = len(state.losses), x.shape[1]
    updates = n // batch  # the samples left over differ from epoch to epoch
    lrs, momenta, decays = (
        torch.tensor([getattr(member, name) for member in members], dtype=x.dtype, device=x.device)[:, None]
        for name in ("lr", "momentum", "weight_decay")
    )
    at = Step(
        theta=state.theta[active],
        g=torch.empty_like(state.theta[active]),
        memory=(state.memory1[active], state.memory2[active]),
        n=epoch * updates,
        lr=lrs * plan.decay ** (epoch // plan.decay_every),
        momentum=momenta,
        moves=any(member.momentum for member in members),
        shapes=family.shapes,
    )
    update, gradient = OPTIMISERS[plan.optimiser], family.gradient(at.theta, at.g, LOSSES[plan.loss])
    attack = perturb(active) if perturb else None
    decayed = any(member.weight_decay for member in members)
    rngs = [rng(member.seed, f"sgd epoch {epoch}") for member in members]
    order = np.stack([g.permutation(n)[: updates * batch] + m.data * n for g, m in zip(rngs, members, strict=True)])
    order = torch.from_numpy(order).to(x.device).view(len(members), updates, batch).transpose(0, 1)
    order = order.reshape(updates, -1)  # (updates, a · batch)
    samples = x.flatten(0, 1)
    labels = y.flatten().index_select(0, order.flatten()).view(updates, len(members), batch)
    keeps = _Dropout(family, rngs, batch, x.device)
    total = torch.zeros_like(at.lr[:, 0])

    def once(rows: Tensor, ys: Tensor) -> None:
        xs = samples.index_select(0, rows).view(len(members), batch, -1)
        if attack:
            xs = attack(lambda points: family(at.theta, points), xs, ys)
        total.add_(gradient(xs, ys, keeps.draw()))
        if decayed:
            at.g.addcmul_(at.theta, decays)
        update(at)

    # A recording would repeat random numbers, or Adam's count of updates, for ever.
    if not (attack or family.dropout or plan.optimiser == "adam"):
        once = captured(once, x.device)
    for rows, ys in zip(order, labels, strict=True):
        at.n += 1
        once(rows, ys)
    lost = ~(total.isfinite() & at.theta.isfinite().all(1))  # these keep their last finite weights
    state.theta[active] = torch.where(lost[:, None], state.theta[active], at.theta)
    state.memory1[active], state.memory2[active] = at.memory
    return (total / updates).masked_fill(lost, torch.inf)


class _Dropout:
    """Masks of what is kept of each network's hidden layers, times 1/(1 - p), from its own random stream."""

    def __init__(self, family: Family, rngs: list[np.random.Generator], batch: int, device: torch.device) -> None:
        self.keep, self.hidden, self.batch, self.device = 1 - family.dropout, family.hidden, batch, device
        seeds = [int(g.integers(1 << 62)) for g in rngs]
        self.generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def draw(self) -> list[Tensor]:  # each (a, n, width)
        if self.keep == 1:
            return []
        masks = []
        for width in self.hidden:
            mask = torch.empty(len(self.generators), self.batch, width, device=self.device)
            for row, generator in zip(mask, self.generators, strict=True):
                row.bernoulli_(self.keep, generator=generator)
            masks.append(mask.mul_(1 / self.keep))
        return masks


@torch.no_grad()
def _validate(
    family: Family,
    members: Sequence[Member],
    validation: tuple[Tensor, Tensor],
    state: SgdState,
    active: list[int],
    enough: float,
) -> None:
    x, y = validation
    for i in active:
        data = members[i].data
        right = (family(state.theta[i : i + 1], x[data : data + 1]) * y[data] > 0).float().mean()
        better = right > state.best_accuracy[i]
        state.best_accuracy[i] = torch.where(better, right, state.best_accuracy[i])
        state.best[i] = torch.where(better, state.theta[i], state.best[i])
        state.done[i] |= right >= enough
