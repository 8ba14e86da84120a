"""Gradient flow to a KKT point (VYS Thm 2.1), fast: descent on ln L.

Gradient flow on ln L runs along the same path as on L, at another speed (∇ ln L = ∇L / L). On L the gradient vanishes
with the loss and 1e-30 takes some 72,000 steps of an ever-growing learning rate; on ln L a few hundred steps suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from brittle.core.graphs import captured
from brittle.nets.two_layer import TwoLayer
from brittle.train.losses import ln_loss, relu_backward
from brittle.train.search import Armijo, Search
from brittle.train.spaces import Space, cheapest
from brittle.train.state import NotReached, State, standing

REFRESH = 100  # steps after which the preactivations are recomputed from θ, against accumulated rounding errors


@dataclass(frozen=True)
class Place:
    """The position of s networks in parameter space, or a displacement there. Linear in all three fields."""

    theta: Tensor  # (s, n, k) the first layers, in the coordinates of their Space
    a: Tensor  # (s, m, k) their preactivations, which follow from θ and are carried along
    v: Tensor  # (s, k)

    def plus(self, step: Place, t: Tensor) -> Place:
        """The place after each network has moved by t times its step."""  # t: (s,)
        t3 = t[:, None, None]
        return Place(
            torch.addcmul(self.theta, step.theta, t3),
            torch.addcmul(self.a, step.a, t3),
            torch.addcmul(self.v, step.v, t[:, None]),
        )

    def minus(self, other: Place) -> Place:
        return Place(self.theta - other.theta, self.a - other.a, self.v - other.v)

    def where(self, chosen: Tensor, other: Place) -> Place:
        """The chosen networks here, the rest at `other`."""  # chosen: (s,) bool
        c3 = chosen[:, None, None]
        return Place(
            torch.where(c3, self.theta, other.theta),
            torch.where(c3, self.a, other.a),
            torch.where(chosen[:, None], self.v, other.v),
        )


@dataclass(frozen=True)
class Trial:
    """A place that a step search tries."""

    place: Place
    ln_loss: Tensor  # (s,)


@dataclass(kw_only=True)
class FlowState(State):
    theta: Tensor  # where the networks are
    a: Tensor
    v: Tensor
    theta_step: Tensor  # and the step that led there
    a_step: Tensor
    v_step: Tensor
    t: Tensor  # (s,) step size to try next
    age: Tensor  # (s,) steps since momentum was restarted


@dataclass(frozen=True)
class Momentum:
    """Nesterov's look-ahead with a cap. Cap 0 is plain descent.

    The cap keeps descent on the path: at 0.7 it reaches nearly the network of plain descent, in 40 % of the steps
    (docs/flow.md has the numbers); at 0.9 it overshoots and ends elsewhere.
    """

    cap: float

    def weight(self, age: Tensor) -> Tensor:
        """β_n = min(n / (n + 3), cap), n steps after a restart."""  # (s,) -> (s,)
        return (age / (age + 3)).clamp(max=self.cap)


class Judge:
    """What a step decides, read in one go together with whether its search has ended: a GPU is waited for once a trial.

    Where momentum made the loss rise, or no step was found, the network stays where it was and restarts momentum.
    """

    back: Tensor  # (s,) bool
    ln_loss: Tensor  # (s,) after the step
    some_back: bool
    lost: bool  # no step descends, even without momentum
    seen: list[bool]  # `standing` after the step

    def __init__(self, before: Tensor, active: Tensor, beta: Tensor, ln_target: float) -> None:
        self.before, self.active, self.beta, self.ln_target = before, active, beta, ln_target

    def __call__(self, enough: Tensor, t: Tensor, found: Trial) -> bool:
        stuck = self.active & (t == 0)
        self.back = stuck | ((found.ln_loss > self.before) & (self.beta > 0))
        self.ln_loss = torch.where(self.back, self.before, found.ln_loss)
        decided = torch.stack([enough.all(), self.back.any(), (stuck & (self.beta == 0)).any()])
        ended, self.some_back, self.lost, *self.seen = torch.cat(
            [decided, standing(self.ln_loss, self.ln_target)]
        ).tolist()
        return ended


BACKTRACKING: Search[Trial] = Armijo()


def train(
    x: Tensor,  # (s, m, d)
    y: Tensor,  # (s, m)
    net: TwoLayer,
    *,
    loss: str,
    ln_target: float,
    momentum: float,
    max_steps: int,
    state: FlowState | None = None,
    watch: Callable[[FlowState], None] = lambda state: None,
    search: Search[Trial] = BACKTRACKING,
    space: Space | None = None,
) -> tuple[TwoLayer, FlowState]:
    """Train s networks side by side, each on its own data, until each has ln L ≤ ln_target."""
    look_ahead = Momentum(momentum)
    space = space or cheapest(x, net)

    def evaluate(place: Place) -> tuple[Tensor, Tensor, Tensor]:
        """ln L; e_i = -∂ ln L/∂N(x_i); the hidden activations."""  # (s,), (s, m), (s, m, k)
        h = place.a.relu()
        ln, pull = ln_loss(y * (h @ place.v.unsqueeze(2)).squeeze(2), loss)
        return ln, y * pull, h

    def steepest(place: Place) -> tuple[Tensor, Place, Tensor]:
        """ln L; the direction -∇ ln L; its slope ‖∇ ln L‖²."""
        ln, e, h = evaluate(place)
        g = relu_backward(e.unsqueeze(2) * place.v.unsqueeze(1), place.a)  # e_i v_j σ'(a_ij)
        dtheta, da = space.direction(g)
        dv = (e.unsqueeze(1) @ h).squeeze(1)
        return ln, Place(dtheta, da, dv), (g * da).sum((1, 2)) + (dv * dv).sum(1)  # ‖dθ‖² = ⟨g, da⟩ in either space

    def gradient(here: Place, step: Place, beta: Tensor) -> tuple[Place, Tensor, Place, Tensor]:
        """The place ahead, and what `steepest` says of it."""
        ahead = here.plus(step, beta)
        return ahead, *steepest(ahead)

    def trial(start: Place, direction: Place, t: Tensor) -> Trial:
        place = start.plus(direction, t)
        return Trial(place, evaluate(place)[0])

    gradient = captured(gradient, x.device, lends=True)
    trial = captured(trial, x.device, still=2)  # a place and a direction that the gradient lends

    if state is None:
        state = _start(Place(space.origin, space.preactivations(space.origin), net.v), evaluate)

    seen: list[bool] | None = None
    while True:
        watch(state)
        active = state.unfinished(ln_target, max_steps, seen)
        if active is None:
            return space.network(state.theta, state.v), state

        here = Place(state.theta, state.a, state.v)
        beta = torch.where(active, look_ahead.weight(state.age), 0.0)
        last = Place(state.theta_step, state.a_step, state.v_step)
        ahead, ln, direction, slope = gradient(here, last, beta)
        judge = Judge(state.ln_loss, active, beta, ln_target)
        first = torch.where(active, state.t, 0.0)
        _, next_t, found = search(partial(trial, ahead, direction), ln, slope, first, judge)
        if judge.lost:
            raise NotReached(f"ln loss {state.ln_loss.max():.4g}, where no step descends, target {ln_target:.4g}")
        back, ln, seen = judge.back, judge.ln_loss, judge.seen
        there = found.place.where(~back, here) if judge.some_back else found.place

        step = there.minus(here)
        state.history.append(state.ln_loss)
        state.theta, state.a, state.v, state.ln_loss = there.theta, there.a, there.v, ln
        state.theta_step, state.a_step, state.v_step = step.theta, step.a, step.v
        state.age = torch.where(back, 0.0, state.age + 1)
        state.t = torch.where(active, next_t, state.t)
        if len(state.history) % REFRESH == 0:
            state.a = space.preactivations(state.theta)
            state.ln_loss, seen = evaluate(Place(state.theta, state.a, state.v))[0], None


def _start(place: Place, evaluate: Callable[[Place], tuple[Tensor, ...]]) -> FlowState:
    ln = evaluate(place)[0]
    rest = place.minus(place)
    return FlowState(
        **vars(place),
        **{f"{name}_step": zero for name, zero in vars(rest).items()},
        t=torch.ones_like(ln),
        age=torch.zeros_like(ln),
        ln_loss=ln,
        history=[],
    )
