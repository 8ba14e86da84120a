"""The nearest flip of a depth-2 ReLU network with few neurons to decide, by branch and bound: exact, given the time.

With z_j = a_j + w_j·δ, and p and q ≥ 0 the positive and negative parts of y v_j, the flips are all δ with

    y N(x + δ) = Σ_j p_j σ(z_j) - Σ_j q_j σ(z_j) ≤ 0.

The first sum is convex. So once the signs of the z_j with q_j > 0 are decided, the flips are a convex set, and cutting
planes find its nearest point: Σ p_j σ(z_j) ≥ Σ p_j α_j z_j for all α_j ∈ [0, 1], so every α gives a half-space that
contains the set. A q neuron that is not decided gets its chord over ‖δ‖ ≤ reach, where reach is the size of the nearest
flip known. That makes the set larger, so its nearest point bounds the size of a flip from below. The neuron whose chord
is farthest from σ there is decided next, in both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from brittle.attacks.line import first_zero
from brittle.attacks.pieces import l2_normalise

FEW = 16  # where more of the q neurons may switch, they are too many to decide one by one
SOLVES = 500  # least-squares problems for one sample, about
CUTS = 100  # of them for one convex set, at most
TIGHT = 1e-4  # relative width of a bracket that is narrow enough
FAR = 10.0  # where no flip is known, look this many times as far as the last neuron switches
WITHIN = 1e-7  # of the distance: the nearest flip may only touch 0, so go so much farther, lest rounding undo it
ROUNDING = 1e-9  # relative; every bound is lowered by this much


@dataclass(frozen=True)
class Bracket:
    """For each of m samples, the direction of the nearest flip found, and a radius within which there is none."""

    u: Tensor  # (m, d)
    lower: Tensor  # (m,) nan where too many neurons may switch


def bracket(
    a: Tensor, yv: Tensor, w: Tensor, wrong: Tensor | None = None, tried: Sequence[Tensor] = (), solves: int = SOLVES
) -> Bracket:
    """Bracket the nearest flip of each sample that is right. float64, CPU.

    wrong: the rounding error of a; tried: directions in which a flip may be near.
    """  # (n, k), (n, k), (k, d), (n, k), each (n, d)
    norms = w.norm(dim=1)
    wrong = torch.zeros_like(a) if wrong is None else wrong
    starts = [l2_normalise(u) for u in (-(yv * (a > 0)) @ w, -yv.clamp(max=0) @ w, -yv @ w, *tried)]
    reach, which = torch.stack([first_zero(a, u @ w.T, yv) for u in starts]).min(0)
    directions = torch.stack(starts)[which, torch.arange(len(a))]
    far = FAR * (a.abs() / norms).nan_to_num(0.0, 0.0).amax(1)
    switch = a.abs() - wrong <= reach[:, None] * norms
    few = ((switch & (yv < 0)).sum(1) <= FEW) & ((yv * a.relu()).sum(1) > 0)
    lower = torch.full_like(reach, torch.nan)
    for i in few.nonzero().flatten().tolist():
        start = float(reach[i] if reach[i].isfinite() else far[i])
        search = _Search(*(t.numpy() for t in (a[i], yv[i], w, wrong[i])), start, directions[i].numpy())
        lower[i] = search.run(solves)
        directions[i] = torch.from_numpy(search.within())
    return Bracket(directions, lower)


class _HalfSpaces:
    """All δ with rows · δ ≥ least, where `wrong` of `least` may be rounding."""

    def __init__(self, rows: np.ndarray, least: np.ndarray, wrong: np.ndarray) -> None:  # (n, d), (n,), (n,)
        size = np.linalg.norm(rows, axis=1)
        size = np.where(size > 0, size, 1.0)
        self.rows, self.least, self.wrong = rows / size[:, None], least / size, wrong / size

    def add(self, other: _HalfSpaces) -> None:
        self.rows = np.concatenate([self.rows, other.rows])
        self.least, self.wrong = np.append(self.least, other.least), np.append(self.wrong, other.wrong)

    def nearest(self) -> tuple[np.ndarray, float]:
        """The δ of least norm, and a proved lower bound on that norm.

        By Lawson and Hanson's reduction to non-negative least squares (Solving Least Squares Problems, §23.4). The
        proof is by its multipliers u ≥ 0, whether or not they are the best: Σ u_i least_i ≤ (Σ u_i rows_i)·δ.
        """
        unit = float(np.abs(self.least).max()) or 1.0
        system = np.vstack([self.rows.T, self.least / unit])
        try:
            u, _ = nnls(system, np.append(np.zeros(len(system) - 1), 1.0))
        except RuntimeError:  # not converged: nothing is proved
            u = np.zeros(len(self.least))
        to, reached = self.rows.T @ u, float(self.least @ u) / unit
        delta = unit * to / (1 - reached) if reached < 1 - 1e-9 else 0 * to  # 0 where they have nothing in common
        size = float(np.linalg.norm(to)) + 1e-13 * float(u.sum()) + 1e-300
        return delta, float((self.least - self.wrong) @ u) / size


class _Search:
    """The branches of one sample, the most promising first."""

    def __init__(
        self, a: np.ndarray, yv: np.ndarray, w: np.ndarray, wrong: np.ndarray, reach: float, u: np.ndarray
    ) -> None:  # (k,), (k,), (k, d), (k,), distance and direction of the nearest flip known
        self.everything, self.reach, self.u, self.solves = (a, yv, w), reach, u, 0
        bends = np.abs(a) - wrong <= reach * np.linalg.norm(w, axis=1)
        on = ~bends & (a > 0)
        self.fixed_row, self.fixed = (yv * on) @ w, float((yv * on) @ a)  # the neurons that cannot switch
        self.slack = float(np.abs(yv) @ wrong) + ROUNDING * float(np.abs(yv * on) @ np.abs(a))
        self.a, self.w, self.wrong = a[bends], w[bends], wrong[bends]
        self.p, self.q = yv[bends].clip(0), (-yv[bends]).clip(0)
        self.norms = np.linalg.norm(self.w, axis=1)
        self.scale = self.fixed + float((self.p - self.q) @ self.a.clip(0))  # y N(x)

    def run(self, solves: int) -> float:
        """The proved radius; `reach` and `u` move on to the nearest flip found."""
        number = count()  # breaks ties
        waiting: list[tuple[float, int, np.ndarray]] = [(0.0, next(number), np.zeros(len(self.a)))]
        done = np.inf
        while waiting and waiting[0][0] < (1 - TIGHT) * self.reach and self.solves < solves:
            below, _, signs = heappop(waiting)
            delta, lower, gap = self._relaxed(signs, self.a)
            self._try(delta)
            lower = max(lower, below)
            if not gap.any():
                done = min(done, lower)
                continue
            for sign in (-1.0, 1.0):
                child = signs.copy()
                child[gap.argmax()] = sign
                heappush(waiting, (lower, next(number), child))
        least = min([done, self.reach, *(lower for lower, _, _ in waiting)])
        return max(0.0, least * (1 - ROUNDING))

    def within(self) -> np.ndarray:
        """The direction of the nearest flip found, or of one beside it that rounding does not undo.

        At that one every p neuron would have room to be larger, and every q neuron to be smaller.
        """
        signs = np.where(self.q > 0, np.where(self.a + self.reach * (self.w @ self.u) > 0, 1.0, -1.0), 0.0)
        delta, _, _ = self._relaxed(signs, self.a + WITHIN * self.reach * self.norms * np.sign(self.p - self.q))
        size = float(np.linalg.norm(delta))
        return delta / size if 0 < size <= (1 + TIGHT) * self.reach else self.u

    def _relaxed(self, signs: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """The nearest flip where z_j has these signs (0: any), how near it can be, and the gap of each chord there."""
        ends = self.reach * (1 + ROUNDING) * self.norms + self.wrong
        low = np.where(signs > 0, 0.0, a - ends)
        high = np.where(signs < 0, 0.0, a + ends)
        chord = (self.q > 0) & (low < 0) & (high > 0)
        slope = np.where(chord, high / np.where(chord, high - low, 1.0), high > 0)
        # y N ≥ constant + fixed_row·δ + Σ p_j σ(z_j) - Σ q_j slope_j z_j
        constant = self.fixed + float((self.q * slope * low)[chord].sum())
        decided = signs != 0
        space = _HalfSpaces((signs[:, None] * self.w)[decided], -(signs * a)[decided], self.wrong[decided])
        alpha, best = a > 0, 0.0
        for _ in range(CUTS):
            line = self.p * alpha - self.q * slope
            value = constant + float(line @ a)
            wrong = self.slack + ROUNDING * (abs(constant) + float(np.abs(line) @ np.abs(a)))
            space.add(_HalfSpaces(-(self.fixed_row + line @ self.w)[None], np.array([value]), np.array([wrong])))
            delta, lower = space.nearest()
            self.solves += 1
            best = max(best, lower)
            z = a + self.w @ delta
            value = constant + float(self.fixed_row @ delta + self.p @ z.clip(0) - (self.q * slope) @ z)
            if best > (1 + TIGHT) * self.reach or value <= 1e-7 * self.scale or bool((alpha == (z > 0)).all()):
                break
            alpha = z > 0
        return delta, min(best, self.reach), np.where(chord, self.q * (slope * (z - low) - z.clip(0)), 0.0)

    def _try(self, delta: np.ndarray) -> None:
        """Look for a flip in this direction."""
        u = l2_normalise(torch.from_numpy(delta)[None])
        a, yv, w = (torch.from_numpy(array) for array in self.everything)
        c = float(first_zero(a[None], u @ w.T, yv[None]))
        if c < self.reach:
            self.reach, self.u = c, u[0].numpy()
