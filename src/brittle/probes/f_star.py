"""How far samples are from the boundary of f* (SB §4.3): a certificate, and a bracket of the smallest perturbation.

In the features' own coordinates u the problem is separable, with h_i = y g_i the classifier of feature i:

    r² = min Σ_i (t_i - u_i)²  subject to  Σ_i h_i(t_i) ≤ 0.

The lower bound is by Lagrangian duality: r² ≥ Σ_i min_t (t - u_i)² + λ h_i(t) for every λ ≥ 0. The inner minimum is
exact: the best of staying at u_i and of moving to some point of some ramp. For the upper bound: at the best λ, one or
two features are about to jump from one piece of h to another. With every feature held to its piece, before the jump or
after it, the problem is convex and is solved. The bounds differ by the share of one feature among d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from brittle.nets.f_star import classifiers, lipschitz
from brittle.worlds.slabs import SlabWorld

HALVINGS = 60  # of the interval of λ
ROUNDING = 1e-9  # relative; the lower bound is lowered by this much


@dataclass(frozen=True)
class Bracket:
    """lower ≤ r ≤ upper = ‖δ‖₂, and u + δ is on the boundary of f*, or beyond."""

    lower: np.ndarray  # (n,)
    upper: np.ndarray  # (n,)
    delta: np.ndarray  # (n, d) in the features' coordinates; δ @ q in the samples'


def certified(world: SlabWorld, value: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The Lipschitz certificate y f*(x)·γB√d: nothing within this radius flips f*; 0 where f* is wrong already."""
    return np.maximum(y * value, 0.0) / lipschitz(world)  # (n,), (n,) -> (n,)


def smallest(world: SlabWorld, u: np.ndarray, y: np.ndarray) -> Bracket:
    """The smallest ℓ2 perturbation that brings f* to 0, between two bounds that are close if d is large."""
    u, y = np.asarray(u, dtype=np.float64), np.asarray(y, dtype=np.float64)  # (n, d), (n,)
    problem = _Problem(world, u, y)
    top = np.full(len(u), problem.enough())
    below, above = _crossing(lambda lam: problem.pieces(lam).at(u, lam)[1].sum(1), top)
    dual = np.maximum(problem.dual(below), problem.dual(above))
    best = Bracket(np.sqrt(np.maximum(dual, 0.0)), np.full(len(u), np.inf), np.zeros_like(u))
    for lam in (below, above):
        held = problem.pieces(lam)
        t, value = held.at(u, _crossing(lambda lam, held=held: held.at(u, lam)[1].sum(1), top)[1])
        size = np.where(value.sum(1) <= 0, np.linalg.norm(t - u, axis=1), np.inf)
        better = size < best.upper
        best.upper[better], best.delta[better] = size[better], (t - u)[better]
    return best


@dataclass(frozen=True)
class _Pieces:
    """One linear piece of h for every feature of every sample: `start` at `low`, then `slope`, until `high`."""

    low: np.ndarray  # (n, d), or what broadcasts to it
    high: np.ndarray
    start: np.ndarray
    slope: np.ndarray

    def at(self, u: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The t of the piece with the least (t - u)² + λ h(t), and h(t)."""  # (n, d), (n,) -> (n, d), (n, d)
        t = np.clip(u - lam[:, None] / 2 * self.slope, self.low, self.high)
        return t, self.start + self.slope * (t - self.low)

    def where(self, chosen: np.ndarray, other: _Pieces) -> _Pieces:
        """These pieces where chosen, those of `other` elsewhere."""  # (n, d)
        names = ("low", "high", "start", "slope")
        return _Pieces(*(np.where(chosen, getattr(self, name), getattr(other, name)) for name in names))


class _Problem:
    """The pieces that can matter: staying at u, and each ramp. (On any other flat piece, the end of a ramp is best.)"""

    def __init__(self, world: SlabWorld, u: np.ndarray, y: np.ndarray) -> None:
        features, sign = classifiers(world), y[:, None]
        level = np.stack([each(column) for each, column in zip(features, u.T, strict=True)], 1)
        self.u, self.stay = u, _Pieces(u, u, sign * level, np.zeros_like(u))
        most = max(len(each.lows) for each in features)
        lows, highs, slopes = (  # (ramps, d); a feature with fewer ramps has its last one again
            np.stack([np.pad(getattr(each, name), (0, most - len(each.lows)), "edge") for each in features], 1)
            for name in ("lows", "highs", "slopes")
        )
        self.ramps = [
            _Pieces(low, high, -sign * np.sign(slope), sign * slope)
            for low, high, slope in zip(lows, highs, slopes, strict=True)
        ]

    def enough(self) -> float:
        """A λ at which every feature has moved to where h = -1."""
        far = np.abs(self.u).max() + max(np.abs([ramp.low, ramp.high]).max() for ramp in self.ramps)
        return float(2 * far / min(np.abs(ramp.slope).min() for ramp in self.ramps) + far**2)

    def pieces(self, lam: np.ndarray) -> _Pieces:
        """Each feature's piece with the least (t - u)² + λ h(t)."""
        return self._best(lam)[0]

    def dual(self, lam: np.ndarray) -> np.ndarray:
        """Σ_i min_t (t - u_i)² + λ h_i(t), less an allowance for rounding: a minimum is between -λ and λ."""
        return self._best(lam)[1].sum(1) - ROUNDING * lam * self.u.shape[1]  # (n,) -> (n,)

    def _best(self, lam: np.ndarray) -> tuple[_Pieces, np.ndarray]:
        best, loss = self.stay, lam[:, None] * self.stay.start
        for ramp in self.ramps:
            t, value = ramp.at(self.u, lam)
            this = (t - self.u) ** 2 + lam[:, None] * value
            best, loss = ramp.where(this < loss, best), np.minimum(this, loss)
        return best, loss


def _crossing(total: Callable[[np.ndarray], np.ndarray], top: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two λ around the zero of a decreasing function; at the second the function is ≤ 0, if it is at `top`."""
    low, high = np.zeros_like(top), top  # (n,)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        there = total(middle) <= 0
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return low, high
