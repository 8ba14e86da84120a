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

from brittle.nets.two_layer import TwoLayer
from brittle.train.graphs import captured
from brittle.train.losses import ln_loss, ln_loss_alone
from brittle.train.passes import Passes
from brittle.train.search import Armijo, Search
from brittle.train.spaces import Space, cheapest, dot
from brittle.train.state import NotReached, State

REFRESH = 100  # steps after which the preactivations are recomputed from θ, against accumulated rounding errors


@dataclass(frozen=True)
class Trial:
    """Where a step leads that a search tries."""

    t: Tensor  # (s,)
    v: Tensor  # (s, k)
    ln_loss: Tensor  # (s,)


@dataclass(kw_only=True)
class FlowState(State):
    """θ is the first layers in the coordinates of their Space; their preactivations follow from θ and are carried."""

    theta: Tensor  # (s, n, k) where the networks are
    a: Tensor  # (s, m, k)
    v: Tensor  # (s, k)
    theta_last: Tensor  # and where they were before the last step
    a_last: Tensor
    v_last: Tensor
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
    """What a step decides, read in one go together with whether its search has ended.

    A GPU is waited for here, once a trial; having glanced at several steps, a search nearly always needs but one.

    Where momentum made the loss rise, or no step was found, the network stays where it was and restarts momentum.
    """

    back: Tensor  # (s,) bool
    ln_loss: Tensor  # (s,) after the step
    some_back: bool
    lost: bool  # no step descends, even without momentum
    seen: list[bool]  # `standing` after the step

    def __init__(self, before: Tensor, active: Tensor, moves: Tensor, ln_target: float) -> None:
        self.before, self.active, self.moves, self.ln_target = before, active, moves, ln_target

    def __call__(self, enough: Tensor, t: Tensor, found: Trial) -> bool:
        stuck = self.active & (t == 0)
        self.back = stuck | ((found.ln_loss > self.before) & self.moves)
        self.ln_loss = torch.where(self.back, self.before, found.ln_loss)
        after = (self.ln_loss.isnan(), self.ln_loss > self.ln_target)
        ended, *decided = torch.stack([enough, self.back, stuck > self.moves, *after]).tolist()
        self.some_back, self.lost, *self.seen = (any(each) for each in decided)
        return all(ended)


BACKTRACKING: Search[Trial] = Armijo()
NARROW = 200  # neurons
CAREFUL: Search[Trial] = Armijo(bold=0.03, bolder=0.001, glances=0)  # so short a step is hardly ever too long


def manner(width: int, momentum: float) -> tuple[Momentum, Search[Trial]]:
    """The direction and the search that keep a network of this width on the path of gradient flow.

    The first steps decide which neurons serve which samples. Where neurons are few, one that is led astray there is
    seen in the end. So narrow networks take short steps, and no momentum, which would save them none.
    """
    return (Momentum(0.0), CAREFUL) if width < NARROW else (Momentum(momentum), BACKTRACKING)


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
    search: Search[Trial] | None = None,
    space: Space | None = None,
) -> tuple[TwoLayer, FlowState]:
    """Train s networks side by side, each on its own data, until each has ln L ≤ ln_target.

    Narrow networks are trained without momentum, unless a search is given.
    """
    look_ahead, search = (Momentum(momentum), search) if search else manner(net.v.shape[1], momentum)
    space = space or cheapest(x, net)
    state = state or _start(space, net.v)
    passes = Passes(state.a)

    def ln_at(output: Tensor) -> Tensor:
        return ln_loss_alone(y * output, loss)

    def gradient(a_last: Tensor, a: Tensor, v_last: Tensor, v: Tensor, reach: Tensor) -> tuple[Tensor, ...]:
        """Look ahead, written over a_last: v, ln L, -∇ ln L (its part da is in `passes`) and its slope there."""
        v = torch.lerp(v_last, v, reach[:, None])
        output = passes.look_ahead(a_last, a, reach[:, None, None], v)
        ln, pull = ln_loss(y * output, loss)  # e_i = -∂ ln L/∂N(x_i) = y_i · pull_i
        dv = passes.pull(a_last, v, pull.mul_(y))
        dtheta, squared = space.direction(passes.g, passes.da)
        return v, ln, dtheta, dv, squared + dot(dv, dv)  # ‖∇ ln L‖²

    def trial(a: Tensor, there: Tensor, v: Tensor, dv: Tensor, t: Tensor) -> Trial:
        v = torch.addcmul(v, dv, t[:, None])
        return Trial(t, v, ln_at(passes.move(a, there, t[:, None, None], v)))

    def begin(a: Tensor, v: Tensor, dv: Tensor, ln: Tensor, slope: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """The first steps to try; on a GPU, having glanced at some."""

        def glance(t: Tensor) -> Tensor:
            return ln_at(passes.glance(a, t[..., None, None], torch.addcmul(v, dv, t[..., None])))

        return search.begin(ln, slope, t, glance if passes.glances else None)

    # Preactivations stay where they are: a few places of memory that take turns.
    gradient, trial = (captured(function, x.device, still=2) for function in (gradient, trial))
    begin = captured(begin, x.device, still=1)

    if not len(state.history):
        state.ln_loss = ln_at(passes.output(state.a, state.v))
    seen: list[bool] | None = None
    while True:
        watch(state)
        active = state.unfinished(ln_target, max_steps, seen)
        if active is None:
            return space.network(state.theta, state.v), state

        reach = 1 + look_ahead.weight(state.age) * active
        v, ln, dtheta, dv, slope = gradient(state.a_last, state.a, state.v_last, state.v, reach)
        judge = Judge(state.ln_loss, active, reach > 1, ln_target)
        first = begin(state.a_last, v, dv, ln, slope, state.t * active)
        _, next_t, found = search(partial(trial, state.a_last, passes.spare, v, dv), ln, slope, first, judge)
        if judge.lost:
            raise NotReached(f"ln loss {state.ln_loss.max():.4g}, where no step descends, target {ln_target:.4g}")

        state.history.append(state.ln_loss)
        _arrive(state, passes, dtheta, reach, found)
        state.ln_loss, state.age, seen = judge.ln_loss, state.age + 1, judge.seen
        if judge.some_back:
            _go_back(state, judge.back)
        state.t = torch.where(active, next_t, state.t)
        if len(state.history) % REFRESH == 0:
            fresh = space.preactivations(state.theta)
            state.a_last += fresh - state.a
            state.a.copy_(fresh)
            seen = None
            state.ln_loss = ln_at(passes.output(state.a, state.v))


def _arrive(state: FlowState, passes: Passes, dtheta: Tensor, reach: Tensor, found: Trial) -> None:
    """Move to where the search has led. The memory of where the networks looked ahead is for the next trial."""
    theta = state.theta_last.lerp_(state.theta, reach[:, None, None]).addcmul_(dtheta, found.t[:, None, None])
    state.theta, state.theta_last = theta, state.theta
    passes.spare, state.a, state.a_last = state.a_last, passes.spare, state.a
    state.v, state.v_last = found.v, state.v


def _go_back(state: FlowState, back: Tensor) -> None:
    """Return these networks to where they were before the step, without momentum."""  # (s,) bool
    state.theta = torch.where(back[:, None, None], state.theta_last, state.theta)
    state.a.copy_(torch.where(back[:, None, None], state.a_last, state.a))
    state.v = torch.where(back[:, None], state.v_last, state.v)
    state.age = state.age * ~back


def _start(space: Space, v: Tensor) -> FlowState:
    a = space.preactivations(space.origin)
    ln = torch.full_like(v[:, 0], torch.inf)
    return FlowState(
        theta=space.origin.clone(),
        a=a,
        v=v.clone(),
        theta_last=space.origin.clone(),
        a_last=a.clone(),
        v_last=v.clone(),
        t=torch.ones_like(ln),
        age=torch.zeros_like(ln),
        ln_loss=ln,
        history=[],
    )
