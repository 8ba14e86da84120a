"""Do other optimisers reach other networks (VYS §7)? One loop for every rule, full batch, on ln L.

A rule gives the direction of a step, a clock its length. `Fall` is the clock that suits every rule: a step is so long
that ln L falls by a given amount, to first order in the gradient that the rule uses. On the way to 1e-30 that gradient
grows severalfold and ln L becomes a sharp maximum over the samples; steps of constant size that are fine at first make
the samples' losses oscillate later. With falls below 1 no sample's share of the loss changes much in a step, at any
time and for any rule. Small initial weights have so small a gradient that such a step would leap over all of the early
path; so no step is longer than a tenth of ‖θ‖. As the steps shrink, a rule without memory follows one path, steepest
descent in its own norm, and the clock only sets the speed: halving the steps, or changing the clock, shows whether the
network reached depends on the rule alone.

On homogeneous networks such a path ends at a KKT point of VYS's Problem (2) with ‖θ‖ in the rule's norm; momentum leads
there too, at least where the network is smooth (Gronich & Vardi 2026, arXiv:2602.16340).

All rules see ∇ ln L = ∇L / L, never ∇L, which shrinks by 30 orders of magnitude on the way. To rules that use only the
direction it makes no difference; to those with a memory it does, because in ∇L the past would outweigh the present.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from brittle.nets.deep import split
from brittle.train.losses import ln_loss
from brittle.train.muon import steepest
from brittle.train.state import State


@dataclass(frozen=True)
class Here:
    """All that a rule may look at, for s networks with p parameters each."""

    n: int  # 1 at the first step
    theta: Tensor  # (s, p)
    g: Tensor  # (s, p) ∇ ln L at θ
    gradient: Callable[[Tensor], Tensor]  # ∇ ln L anywhere else
    shapes: Sequence[torch.Size]  # of the tensors that θ consists of
    memory: tuple[Tensor, Tensor]  # each (s, p), what the rule kept of the steps before; zero at first


@dataclass(frozen=True)
class Move:
    direction: Tensor  # (s, p) to go against
    seen: Tensor  # (s, p) the gradient that it comes from, perhaps an average
    memory: tuple[Tensor, Tensor]


class Homogeneous(Protocol):
    """Networks side by side as this loop sees them: Deep ones, or Members of a family."""

    def __call__(self, x: Tensor) -> Tensor: ...  # (s, m, d) -> (s, m)

    def flat(self) -> Tensor: ...  # (s, p)

    def like(self, theta: Tensor) -> Self: ...

    def shapes(self) -> list[torch.Size]: ...


N = TypeVar("N", bound=Homogeneous)


class Clock(Protocol):
    """Any rule for the length of a step: η for each network."""

    def __call__(self, theta: Tensor, move: Move) -> Tensor: ...  # (s, p) -> (s, 1)


@dataclass(frozen=True)
class Fall:
    """A step that makes ln L fall by `size`, to first order in the gradient that the rule uses, but not a long one."""

    size: float
    stride: float = 0.1  # of ‖θ‖, at most

    def __call__(self, theta: Tensor, move: Move) -> Tensor:
        falls = self.size / (move.seen * move.direction).sum(1, keepdim=True)
        return falls.minimum(Relative(self.stride)(theta, move))


@dataclass(frozen=True)
class Relative:
    """A step of length `size` · ‖θ‖: normalised descent, which a homogeneous network sees as a constant angle."""

    size: float

    def __call__(self, theta: Tensor, move: Move) -> Tensor:
        return self.size * _norm(theta) / _norm(move.direction)


@dataclass(frozen=True)
class Constant:
    """The same η at every step: plain descent."""

    size: float

    def __call__(self, theta: Tensor, move: Move) -> Tensor:
        return torch.full_like(theta[:, :1], self.size)


class Rule(Protocol):
    """Any map from gradients to directions that treats each network on its own."""

    def __call__(self, here: Here) -> Move: ...


@dataclass(frozen=True)
class GradientDescent:
    """θ ← θ - η g: steepest descent in ‖·‖₂. With η = fall / ‖g‖² it is gradient flow in the time of ln L."""

    def __call__(self, here: Here) -> Move:
        return Move(here.g, here.g, here.memory)


@dataclass(frozen=True)
class SignDescent:
    """θ ← θ - η sign(g): steepest descent in ‖·‖_∞."""

    def __call__(self, here: Here) -> Move:
        return Move(here.g.sign(), here.g, here.memory)


@dataclass(frozen=True)
class Momentum:
    """A rule without memory on the running average of gradients: momentum steepest descent (Gronich & Vardi 2026).

    On gradient descent it is the heavy ball, on sign descent Signum (Bernstein et al. 2018).
    """

    rule: Rule
    beta: float = 0.9

    def __call__(self, here: Here) -> Move:
        m = self.beta * here.memory[0] + (1 - self.beta) * here.g
        seen = m / (1 - self.beta**here.n)  # corrected for the memory's start at zero
        return replace(self.rule(replace(here, g=seen)), memory=(m, here.memory[1]))


@dataclass(frozen=True)
class Sam:
    """Sharpness-aware minimisation (Foret et al. 2021, Eq. 2-3): the gradient is that at θ + ρ g/‖g‖.

    ρ is relative to ‖θ‖: of a homogeneous network only the direction θ/‖θ‖ counts, and a fixed ρ would fade as θ grows.
    """

    rho: float = 0.05

    def __call__(self, here: Here) -> Move:
        ascent = self.rho * _norm(here.theta) * here.g / _norm(here.g)
        g = here.gradient(here.theta + ascent)
        return Move(g, g, here.memory)


@dataclass(frozen=True)
class Adam:
    """Kingma & Ba 2015, Algorithm 1, on ∇ ln L.

    On ∇L itself ε would soon outweigh √v and turn Adam into descent with momentum, whose bias is that of gradient flow
    (Wang et al. 2021); here √v stays far above ε, and what is left is Adam's own.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __call__(self, here: Here) -> Move:
        m, v = here.memory
        m = self.beta1 * m + (1 - self.beta1) * here.g
        v = self.beta2 * v + (1 - self.beta2) * here.g**2
        mean, square = m / (1 - self.beta1**here.n), v / (1 - self.beta2**here.n)
        return Move(mean / (square.sqrt() + self.epsilon), mean, (m, v))


@dataclass(frozen=True)
class Muon:
    """Jordan et al. 2024: every matrix moves along its momentum, orthogonalised, times √max(1, rows/columns).

    Steepest descent in the spectral norm of each layer, apart from momentum. The gradient of the first layer has one
    large singular value, along z = Σ y_i x_i (VYS Thm 4.1); here it counts no more than the others.
    The biases and the last layer are vectors, matrices of one row; to orthogonalise those is to normalise them
    (Bernstein & Newhouse 2024).
    """

    beta: float = 0.95

    def __call__(self, here: Here) -> Move:
        m = self.beta * here.memory[0] + (1 - self.beta) * here.g
        ahead = self.beta * m + (1 - self.beta) * here.g  # Nesterov's
        direction = torch.cat([steepest(p).flatten(1) for p in split(ahead, here.shapes)], dim=1)
        seen = ahead / (1 - self.beta ** (here.n + 1))  # an average, corrected for the memory's start at zero
        return Move(direction, seen, (m, here.memory[1]))


@dataclass(frozen=True)
class Optimiser:
    rule: Rule
    clock: Clock


# Half of each step gives the same mean c within 3 %, all but SAM within 0.5 % (d = m = 100, width 1000, 5 seeds).
OPTIMISERS = {
    "gd": Optimiser(GradientDescent(), Fall(0.4)),
    "normalised_gd": Optimiser(GradientDescent(), Relative(0.004)),
    "sign": Optimiser(SignDescent(), Fall(0.4)),
    "adam": Optimiser(Adam(), Fall(0.4)),
    "sam": Optimiser(Sam(), Fall(1.0)),
    "muon": Optimiser(Muon(), Fall(0.4)),
    "momentum": Optimiser(Momentum(GradientDescent()), Fall(0.1)),
    "signum": Optimiser(Momentum(SignDescent()), Fall(0.1)),
}


@dataclass(kw_only=True)
class OptimiserState(State):
    theta: Tensor  # (s, p)
    g: Tensor  # (s, p) ∇ ln L there
    memory1: Tensor  # (s, p) of the rule
    memory2: Tensor


def train(
    x: Tensor,  # (s, m, d)
    y: Tensor,  # (s, m)
    net: N,
    *,
    optimiser: Optimiser,
    loss: str,
    ln_target: float,
    max_steps: int,
    state: OptimiserState | None = None,
    watch: Callable[[OptimiserState], None] = lambda state: None,
) -> tuple[N, OptimiserState]:
    """Train s networks side by side, each on its own data, until each has ln L ≤ ln_target."""
    shapes = net.shapes()

    def evaluate(theta: Tensor) -> tuple[Tensor, Tensor]:
        """ln L and ∇ ln L."""  # (s, p) -> (s,), (s, p)
        theta = theta.detach().requires_grad_()
        with torch.enable_grad():
            q = y * net.like(theta)(x)
            ln, pull = ln_loss(q.detach(), loss)
            (g,) = torch.autograd.grad(q, theta, -pull)
        return ln, g

    if state is None:
        theta = net.flat()
        ln, g = evaluate(theta)
        none = torch.zeros_like(theta)
        state = OptimiserState(theta=theta, g=g, memory1=none, memory2=none, ln_loss=ln, history=[])

    while True:
        watch(state)
        active = state.unfinished(ln_target, max_steps)
        if active is None:
            return net.like(state.theta), state
        here = Here(
            n=len(state.history) + 1,
            theta=state.theta,
            g=state.g,
            gradient=lambda theta: evaluate(theta)[1],
            shapes=shapes,
            memory=(state.memory1, state.memory2),
        )
        move = optimiser.rule(here)
        eta = optimiser.clock(state.theta, move)
        state.history.append(state.ln_loss)
        state.theta = torch.where(active[:, None], state.theta - eta * move.direction, state.theta)
        state.memory1, state.memory2 = move.memory
        state.ln_loss, state.g = evaluate(state.theta)


def _norm(rows: Tensor) -> Tensor:
    return rows.norm(dim=1, keepdim=True)
