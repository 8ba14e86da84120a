"""Which samples no perturbation of a given size flips, for a symmetric network of FP: bounds one neuron at a time.

f is odd, so that a sample of label -1 counts as its negative, and f(x + δ) = Σ_i g(a_i + w_i·δ), a_i = w_i·x, is to
stay above 0 for all ‖δ‖ ≤ τ. Pure features are nearly orthogonal but for the direction v that they share, the dense
one. So s = v·δ is fixed to a cell, and what is left of w_i without v is u_i. Where Σ_i c_i u_i u_iᵀ ≼ I, t_i = u_i·δ
satisfies Σ_i c_i t_i² ≤ τ² - s². Relaxed with a multiplier μ ≥ 0, each neuron may then choose its t_i for itself:

    f(x + δ) ≥ Σ_i min_t [h(a_i + s w_i·v + t) + μ c_i t²] - μ (τ² - s²)      for all δ, every μ ≥ 0 and every h ≤ g.

h is made of straight pieces, so that the minimum is one of a few candidates. As h grows, that end of the cell at which
s w_i·v is smaller stands for the whole cell. The bound is sound for every v, c and μ like this, so that none of them
need be optimal. It is concave in μ. Unlike the certificates in `certify.py` it knows that a neuron which is off costs
nothing until it is on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from brittle.nets.symmetric import Symmetric, smoothed_relu

KNOTS = (-5.0, -2.0, 0.0, 2.0, 5.0)  # of the chords over R, in σ_ρ
CELLS = 32  # of s
STEPS = 12  # golden sections of ln μ …
RANGE = 6.0  # … which is looked for so far below the largest one that could do
GOLD = (math.sqrt(5) - 1) / 2
CHUNK = 1 << 20  # numbers per (rows, neurons) array
ROUNDING = 1e-9  # relative; every bound is lowered by this much


class Below:
    """h(z) = ReLU(z - b) - (chords over R)(-z - b) ≤ g(z), for R is convex and at least the ReLU."""

    def __init__(self, b: float, sigma: float) -> None:
        at = torch.tensor(KNOTS if sigma > 0 else (-1.0, 0.0, 1.0), dtype=torch.float64)
        at = at * (sigma if sigma > 0 else 1.0)
        over = smoothed_relu(at, sigma)[0]
        inner = over.diff() / at.diff()
        self.b = b
        # Each line is over R within its piece and below the others outside, but for the last, R(u) ≤ u + R(-5σ).
        self.slope = [0.0, *inner.tolist(), 1.0]
        self.height = [float(over[0]), *(over[:-1] - inner * at[:-1]).tolist(), float(over[-1] - at[-1])]
        both = [1 + slope for slope in self.slope] if -2 * b > float(at[0]) else []  # both parts rise at once
        self.slopes = sorted({*self.slope, *both} - {0.0})

    def __call__(self, z: Tensor) -> Tensor:
        u = -z - self.b
        over = torch.full_like(z, self.height[0])
        for slope, height in zip(self.slope[1:], self.height[1:], strict=True):
            over = torch.maximum(over, slope * u + height)
        return (z - self.b).clamp_(min=0).sub_(over)

    def least(self, z: Tensor, q: Tensor) -> Tensor:
        """min over t of h(z + t) + q t²: where h is straight, or at z + t = b, its only bend upwards."""
        bend = (self.b - z).clamp_(max=0)
        best = torch.minimum(self(z), self(z + bend) + q * bend**2)
        for slope in self.slopes:
            best = torch.minimum(best, self(z - slope / (2 * q)) + slope**2 / (4 * q))
        return best


@dataclass(frozen=True)
class Split:
    """The neurons' parts along the direction v that they share, and the shares c of δ that the rest may use up."""

    w: Tensor  # (m, d)
    along: Tensor  # (m,) w_i·v
    c: Tensor  # (m,)

    @classmethod
    def of(cls, w: Tensor) -> Split:
        w = w.double()
        v = torch.linalg.eigh(w.T @ w)[1][:, -1]  # any unit vector would do
        along = w @ v
        rest = w - along[:, None] * v
        products, norms = rest @ rest.T, rest.norm(dim=1).clamp(min=1e-30)
        # Copies of a word share what one of them may use up: the more alike two neurons are, the more.
        c = 1 / (products.square() / norms / norms[:, None]).sum(1).clamp(min=1e-30)
        return cls(w, along, c * (1 - ROUNDING) / torch.linalg.eigvalsh(rest.T @ (c[:, None] * rest))[-1])


def certain(net: Symmetric, x: Tensor, y: Tensor, taus: list[float]) -> Tensor:
    """Whether y f(x + δ) > 0 is proved for all ‖δ‖₂ ≤ τ. float64, CPU."""  # (n, d), (n,) -> (n, len(taus)) bool
    split, below = Split.of(net.w), Below(net.b, net.sigma)
    a = (y[:, None] * x).double() @ split.w.T  # (n, m)
    found = torch.zeros(len(x), len(taus), dtype=torch.bool)
    left = torch.arange(len(x))
    for tau, k in sorted((tau, k) for k, tau in enumerate(taus)):
        left = left[_holds(a[left], split, below, tau)]  # what a smaller τ flips, a larger one flips
        found[left, k] = True
    return found


def _holds(a: Tensor, split: Split, below: Below, tau: float) -> Tensor:
    """Whether the bound is positive in every cell of s."""  # (n, m) -> (n,)
    ends = torch.linspace(-tau, tau, CELLS + 1, dtype=torch.float64)
    holds = torch.ones(len(a), dtype=torch.bool)
    for low, high in pairwise(ends):
        left = holds.nonzero().flatten()
        near = 0.0 if low * high <= 0 else float(torch.minimum(low.abs(), high.abs()))
        worst = torch.minimum(low * split.along, high * split.along)
        for some in left.split(max(1, CHUNK // a.shape[1])):
            holds[some] = _positive(a[some] + worst, split.c, below, tau**2 - near**2)
    return holds


def _positive(z: Tensor, c: Tensor, below: Below, rest: float) -> Tensor:
    """Whether max over μ of Σ_i min_t [h(z_i + t) + μ c_i t²] - μ rest is positive, by golden sections of ln μ."""

    def bound(rows: Tensor, mu: Tensor) -> Tensor:
        terms = below.least(z[rows], mu[:, None] * c)
        return terms.sum(1) - mu * rest - ROUNDING * (terms.abs().sum(1) + mu * rest)

    still = below(z).sum(1)
    rows = (still > 0).nonzero().flatten()  # with μ rest ≥ still the bound is not positive
    high = (still[rows] / rest).log()
    low = high - RANGE
    found = torch.zeros(len(z), dtype=torch.bool)
    for _ in range(STEPS):
        left, right = high - GOLD * (high - low), low + GOLD * (high - low)
        at = bound(rows, left.exp()), bound(rows, right.exp())
        done = torch.maximum(*at) > 0
        found[rows[done]] = True
        up = at[0] < at[1]
        low, high = torch.where(up, left, low)[~done], torch.where(up, high, right)[~done]
        rows = rows[~done]
        if not len(rows):
            break
    return found
