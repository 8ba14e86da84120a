"""Radii within which no perturbation flips a depth-2 ReLU network: lower bounds, to set beside attacks.

The label times the network is y N(x + δ) = Σ_j p_j σ(z_j) - Σ_j q_j σ(z_j), with z_j = a_j + w_j·δ, a_j = w_j·x + b_j
and p, q ≥ 0 the positive and negative parts of y v_j. It has three lower bounds, each a function whose minimum over a
ball is known. They are sound for every choice of their free parameters, so the optimiser need not be trusted, only the
last evaluation, which is in float64 and subtracts an allowance for rounding.

- local: the network is linear until the first neuron switches.
- crown: two lines, σ(z) ≥ αz under p and the chord over q (Zhang et al. 2018), the slopes α optimised (Xu et al. 2021).
- quadratic: σ(z) ≥ αz under p, and over q the parabola σ(z) ≤ (z + t)²/4t, valid for all z and every t > 0. Then
  y N(x + δ) ≥ c + g·δ - δᵀQδ with Q = Σ_j q_j w_j w_jᵀ/4t_j, and by duality, for every λ ≥ 0 with I - λQ ≻ 0,

      r² ≥ min_δ ‖δ‖² + λ (c + g·δ - δᵀQδ) = λc - λ²/4 gᵀ(I - λQ)⁻¹g.

  Unlike the chord, Q takes into account that one δ must move all neurons at once. Since σ(z) = (z + |z|)/2, the best
  t_j is the root mean square of z_j, and the bound loses what |z_j| ≤ (E z_j²)^½ loses: nothing if there is a single
  worst δ.

Where few neurons may switch, `attacks/branch_and_bound.py` decides them one by one, which is a fourth bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from brittle.attacks.branch_and_bound import bracket
from brittle.core.device import sqrt
from brittle.nets.two_layer import TwoLayer

CHUNK = 1 << 22  # numbers per (samples, k) or (samples, d, d) array
STORED = 1 << 27  # all w_j w_jᵀ are stored if they have at most this many numbers
ROUNDING = 1e-9  # relative; every bound is lowered by this much


@dataclass(frozen=True)
class Certificate:
    """For each of m samples: y_i N(x_i + δ) > 0 for all ‖δ‖₂ < radius_i."""

    local: Tensor  # (m,) by each bound alone
    crown: Tensor  # (m,) nan, not computed, where `exact`
    quadratic: Tensor  # (m,) likewise
    branched: Tensor  # (m,) likewise, and where too many neurons may switch
    exact: Tensor  # (m,) bool: the local radius is the distance to the boundary itself, up to rounding

    @property
    def radius(self) -> Tensor:
        """The largest of the four."""  # (m,)
        return torch.stack([self.local, self.crown, self.quadratic, self.branched]).nan_to_num(0.0, torch.inf).amax(0)


def certified(net: TwoLayer, x: Tensor, y: Tensor, steps: int = 40) -> Certificate:
    """Sound radii of a single network around its samples; 0 where a sample is wrong already. float64, CPU."""
    w, k, d = net.w[0], net.w.shape[1], net.w.shape[2]  # (m, d), (m,)
    a, yv = net.preactivations(x[None])[0], y[:, None] * net.v[0]  # (m, k)
    pairs = Pairs(w)
    rows = max(1, CHUNK // max(k, d * d))
    # a_j is a rounded sum; every bound subtracts the largest change of N that this can cause anywhere.
    wrong = (d + 2) * torch.finfo(a.dtype).eps * (x.abs() @ w.abs().T + net.b[0].abs())  # (m, k)
    give = (yv.abs() * wrong).sum(1)
    near, exact = local(a, yv, w, wrong)
    lines, parabolas, branches = (torch.full_like(near, torch.nan) for _ in range(3))
    for some in (~exact).nonzero().squeeze(1).split(rows):  # the samples that have something left to gain
        lines[some] = crown(a[some], yv[some], w, give=give[some])
        parabolas[some] = quadratic(a[some], yv[some], w, steps, pairs, give[some])
        branches[some] = bracket(a[some], yv[some], w, wrong[some]).lower
    right = (yv * a.relu()).sum(1) > ROUNDING * (yv * a).abs().sum(1)
    return Certificate(*(torch.where(right, r, 0.0) for r in (near, lines, parabolas, branches)), exact & right)


def local(a: Tensor, yv: Tensor, w: Tensor, wrong: Tensor | float = 0.0) -> tuple[Tensor, Tensor]:
    """The distance to the zero of the sample's linear piece or to its end, whichever is nearer; is it the zero?"""
    norms = w.norm(dim=1)  # (n, k), (n, k), (k, d), (n, k) -> (n,), (n,)
    switch = ((a.abs() - wrong).clamp(min=0) / norms).nan_to_num(torch.inf, torch.inf).amin(1)
    zero = (yv * a.relu() - (yv * wrong).abs()).sum(1).clamp(min=0) / ((yv * (a > 0)) @ w).norm(dim=1)
    return zero.minimum(switch) * (1 - ROUNDING), zero <= switch * (1 + ROUNDING)


def crown(a: Tensor, yv: Tensor, w: Tensor, steps: int = 20, halvings: int = 12, give: Tensor | float = 0.0) -> Tensor:
    """The largest r found at which the lines prove the sign, by bisection."""  # (n, k), (n, k), (k, d), (n,) -> (n,)
    low = lipschitz(a, yv, w, give)
    high = low.clone()
    for _ in range(30):
        holds = crown_bound(a, yv, w, high, steps) > give
        low, high = torch.where(holds, high, low), torch.where(holds, 2 * high, high)
        if not bool(holds.any()):
            break
    high = high.maximum(low)
    for _ in range(halvings):
        middle = (low + high) / 2
        holds = crown_bound(a, yv, w, middle, steps) > give
        low, high = torch.where(holds, middle, low), torch.where(holds, high, middle)
    return low


def crown_bound(a: Tensor, yv: Tensor, w: Tensor, r: Tensor, steps: int = 0) -> Tensor:
    """A lower bound on y N(x + δ) over ‖δ‖ ≤ r. The minimum of the lines is at δ = -r g/‖g‖ (Cauchy-Schwarz).

    CROWN's own slopes are α = [a > 0]; `steps` of mirror ascent improve on them (the bound is concave in α).
    """  # (n, k), (n, k), (k, d), (n,) -> (n,)
    p, q = yv.clamp(min=0), (-yv).clamp(min=0)
    reach = r[:, None] * w.norm(dim=1)  # (n, k)
    low, high = a - reach, a + reach
    bends = (low < 0) & (high > 0)
    slope = torch.where(bends, high / torch.where(bends, high - low, 1.0), (low >= 0).to(a.dtype))
    over = q * (slope * a - torch.where(bends, slope * low, 0.0))  # q times the chord at the sample
    alpha, logit = (a > 0).to(a.dtype), 4 * a / torch.where(bends, reach, 1.0)
    best = torch.full_like(r, -torch.inf)
    for step in range(steps + 1):
        g = (p * alpha - q * slope) @ w  # (n, d)
        size = g.norm(dim=1)
        terms = (p * alpha * a).abs().sum(1) + over.abs().sum(1) + r * size
        best = best.maximum((p * alpha * a - over).sum(1) - r * size - ROUNDING * terms)
        if step < steps:
            z = a - (r / size.clamp(min=1e-300))[:, None] * (g @ w.T)  # where the worst δ takes each neuron
            logit = logit + 2 * z / torch.where(bends, reach, 1.0)
            alpha = torch.where(bends, logit.sigmoid(), alpha)
    return best


def lipschitz(a: Tensor, yv: Tensor, w: Tensor, give: Tensor | float = 0.0) -> Tensor:
    """y N(x) / Σ_j |v_j| ‖w_j‖: a sound radius that is small, but never far too small; the initial scale."""
    return (((yv * a.relu()).sum(1) - give) / (yv.abs() @ w.norm(dim=1))).clamp(min=0) * (1 - ROUNDING)


class Pairs:
    """All w_j w_jᵀ as flattened upper triangles: sums over neurons become one matrix product for all samples."""

    def __init__(self, w: Tensor) -> None:
        self.w, d = w.float(), w.shape[1]
        self.i, self.j = torch.triu_indices(d, d)
        self.twice = torch.where(self.i == self.j, 1.0, 2.0)
        columns = max(1, STORED // 8 // len(w))
        self.blocks = [slice(c, c + columns) for c in range(0, len(self.i), columns)]

    def _block(self, block: slice) -> Tensor:
        return self.w[:, self.i[block]] * self.w[:, self.j[block]]  # (k, columns)

    @cached_property
    def _stored(self) -> list[Tensor] | None:
        few = len(self.w) * len(self.i) <= STORED
        return [self._block(block) for block in self.blocks] if few else None

    def _products(self, n: int) -> Tensor:
        return self._stored[n] if self._stored else self._block(self.blocks[n])

    def sum(self, s: Tensor) -> Tensor:
        """Σ_j s_j w_j w_jᵀ."""  # (n, k) -> (n, d, d)
        flat = torch.cat([s @ self._products(n) for n in range(len(self.blocks))], dim=1)
        full = flat.new_empty(len(s), self.w.shape[1], self.w.shape[1])
        full[:, self.i, self.j] = full[:, self.j, self.i] = flat
        return full

    def forms(self, matrix: Tensor) -> Tensor:
        """w_jᵀ M w_j for symmetric M."""  # (n, d, d) -> (n, k)
        flat = matrix[:, self.i, self.j] * self.twice
        return sum(flat[:, block] @ self._products(n).T for n, block in enumerate(self.blocks))


def quadratic(
    a: Tensor, yv: Tensor, w: Tensor, steps: int = 40, pairs: Pairs | None = None, give: Tensor | float = 0.0
) -> Tensor:
    """The radius by the dual, its parameters first optimised in float32."""  # (n, k), (n, k), (k, d), (n,) -> (n,)
    give = give + torch.zeros_like(a[:, 0])
    scale = lipschitz(a, yv, w, give)
    usable = (scale > 0) & scale.isfinite()  # neither wrong already nor constant
    radius = torch.where(scale > 0, scale, 0.0)
    if bool(usable.any()):
        t, alpha, lam = _ascend(a[usable], yv[usable], pairs or Pairs(w), scale[usable], steps)
        found = dual(a[usable], yv[usable], w, t, alpha, lam, give=give[usable])
        radius[usable] = radius[usable].maximum(found)
    return radius


def dual(
    a: Tensor,
    yv: Tensor,
    w: Tensor,
    t: Tensor,
    alpha: Tensor,
    lam: Tensor,
    polish: int = 4,
    give: Tensor | float = 0.0,
) -> Tensor:
    """The certified radius, for any t > 0, 0 ≤ α ≤ 1, λ > 0: 0 if I - λQ is not positive definite.

    Soundness is decided here, not in `_ascend`. `polish` Newton steps move λ; each value on the way is itself a bound.
    """  # (n, k), (n, k), (k, d), (n, k), (n, k), (n,) -> (n,)
    p, q = yv.clamp(min=0), (-yv).clamp(min=0)
    s = q / (4 * t)
    under, over = p * alpha * a, s * (a + t) ** 2
    c, g = (under - over).sum(1), (p * alpha - 2 * s * (a + t)) @ w
    lost = ROUNDING * (under.abs() + over).sum(1) + give
    slack = 1e-3 * ROUNDING * ((p * alpha + 2 * s * (a + t).abs()) @ w.norm(dim=1))  # of g, times ‖δ‖ ≤ (λc)^½
    quad = torch.stack([(w * row[:, None]).T @ w for row in s])  # (n, d, d)
    eye = (1 - ROUNDING) * torch.eye(w.shape[1], dtype=w.dtype)
    best = torch.zeros_like(lam)
    for _ in range(polish + 1):
        factor, broken = torch.linalg.cholesky_ex(eye - lam[:, None, None] * quad)
        half = torch.linalg.solve_triangular(factor, g[:, :, None], upper=False)
        value = lam * (c - lost - slack * sqrt((lam * c).clamp(min=0))) - lam**2 / 4 * half.square().sum((1, 2)) * (
            1 + ROUNDING
        )
        best = torch.where(broken == 0, best.maximum(value.nan_to_num(0.0)), best)
        delta = -lam[:, None] / 2 * torch.cholesky_solve(g[:, :, None], factor)[:, :, 0]
        bound = c + (g * delta).sum(1) - torch.einsum("nd,nde,ne->n", delta, quad, delta)
        curvature = 2 * torch.linalg.solve_triangular(factor, delta[:, :, None], upper=False).square().sum((1, 2))
        lam = lam * (1 + (lam * bound / curvature).nan_to_num(0.0).clamp(-0.1, 0.1))
    return sqrt(best.clamp(min=0)) * (1 - ROUNDING)


def _factor(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The Cholesky factors in float64, and where there are none; in float32 they differ from processor to processor.

    There MKL begins with the processor's own approximation of 1/x, and a step that is judged otherwise moves the end.
    """  # (n, d, d) -> (n, d, d), (n,)
    return torch.linalg.cholesky_ex(matrix.double())


def _ascend(a: Tensor, yv: Tensor, pairs: Pairs, scale: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Improve t (n, k), α (n, k) and λ (n,) by ascent on the dual.

    The dual is smoothed by a barrier τ ln det(I - λQ) with decreasing τ. At given λ and Q, its minimiser is spread
    around δ = -λ/2 (I - λQ)⁻¹g with covariance τ (I - λQ)⁻¹; t moves to the root mean square of z_j under this spread,
    α by mirror ascent along the mean of z_j, λ by Newton's method. Steps in ln t are half steps, shorter where they
    overshoot.
    """
    dtype, w = a.dtype, pairs.w
    d, eye, norms = w.shape[1], torch.eye(w.shape[1]), w.norm(dim=1).clamp(min=1e-30)
    outputs = (yv * a.relu()).sum(1, keepdim=True)
    a, yv, scale = a.float(), (yv / outputs).float(), scale.float()  # scaled to y N(x) = 1, so that λ ≈ r²
    p, q = yv.clamp(min=0), (-yv).clamp(min=0)
    reach = scale[:, None] * norms
    t, logit = (a**2 + reach**2).sqrt(), 4 * a / reach
    lam, damping = torch.zeros(0), torch.full_like(scale, 0.5)
    best, previous = torch.full_like(scale, -torch.inf), torch.full_like(scale, -torch.inf)
    kept = (t, logit.sigmoid(), scale**2)
    for step in range(steps):
        alpha, s = logit.sigmoid(), q / (4 * t)
        c, g = (p * alpha * a - s * (a + t) ** 2).sum(1), (p * alpha - 2 * s * (a + t)) @ w
        quad = pairs.sum(s)
        if step == 0:
            top = torch.linalg.eigvalsh(quad)[:, -1].clamp(min=0)
            linear = (2 * c / g.square().sum(1)).nan_to_num(0.0)  # the best λ if Q were 0
            lam = (0.5 / top).minimum(linear.maximum(scale**2)).minimum(1e6 * scale**2)
        factor, broken = _factor(eye - lam[:, None, None] * quad)
        for _ in range(50):
            if not bool(broken.any()):
                break
            lam = torch.where(broken > 0, 0.9 * lam, lam)
            factor, broken = _factor(eye - lam[:, None, None] * quad)
        inverse = torch.cholesky_inverse(factor).to(quad.dtype)  # (n, d, d)
        delta = -lam[:, None] / 2 * (inverse @ g[:, :, None])[:, :, 0]
        value = lam * c + lam / 2 * (g * delta).sum(1)  # r²
        better = value > best
        best = torch.where(better, value, best)
        kept = tuple(
            torch.where(better.reshape(-1, *[1] * (new.dim() - 1)), new, old)
            for new, old in zip((t, alpha, lam), kept, strict=True)
        )
        damping = torch.where(value < previous, 0.7 * damping, damping).clamp(min=0.05)
        previous = value
        # Update the parameters.
        square = best.maximum(scale**2)  # the best r² so far
        tau = square / d * 0.01 ** min(1, step / (0.8 * steps))
        z = a + delta @ w.T
        spread = (z**2 + tau[:, None] * pairs.forms(inverse)).sqrt().clamp(min=1e-30)
        t = t * (spread / t) ** damping[:, None]
        logit = (logit + 4 * z / (square.sqrt()[:, None] * norms)).clamp(-15, 15)
        bound = c + (g * delta).sum(1) - torch.einsum("nd,nde,ne->n", delta, quad, delta)
        slope = lam * bound - tau * (inverse.diagonal(dim1=1, dim2=2).sum(1) - d)
        curvature = 2 * torch.einsum("nd,nde,ne->n", delta, inverse, delta)
        curvature = curvature + tau * (inverse - eye).square().sum((1, 2))
        lam = lam * (1 + (slope / curvature).nan_to_num(0.0).clamp(-0.2, 0.1))
    t, alpha, lam = (value.to(dtype) for value in kept)
    return t, alpha, lam / outputs[:, 0]
