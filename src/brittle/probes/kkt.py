"""How far a depth-2 network is from a KKT point of the max-margin problem, VYS Problem (2).

With the network scaled so that its smallest output is 1, a KKT point has multipliers λ_i ≥ 0 and subgradients
s_ij ∈ ∂σ(a_ij) of the ReLU at a_ij = w_j·x_i + b_j such that (VYS Eq. 3, 4)

    stationarity    w̃_j = v_j Σ_i λ_i s_ij y_i x̃_i   and   v_j = Σ_i λ_i y_i σ(a_ij),   x̃ = (x, 1), w̃ = (w, b),
    slackness       λ_i (y_i N(x_i) - 1) = 0,
    feasibility     y_i N(x_i) ≥ 1 (by the scaling).

s_ij is 0 or 1 away from the kink and anything between at it (Clarke). At a KKT point many a_ij are exactly 0; in a
trained network they are nearly so. `kink` says how near counts: |a_ij| ≤ kink · ‖w̃_j‖ ‖x̃_i‖. With kink = 0 every s_ij
is fixed, and λ solves a non-negative least-squares problem; otherwise λ and the free u_ij = λ_i s_ij, 0 ≤ u_ij ≤ λ_i,
solve one convex problem over cones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from scipy.optimize import nnls
from torch import Tensor

from brittle.core.device import sqrt
from brittle.nets.two_layer import TwoLayer
from brittle.probes.margin import separated

MOST, ENOUGH = 10_000, 1e-3  # iterations of the convex solver; it stops if 50 of them lower the value by less


@dataclass(frozen=True)
class KKT:
    """The residuals at the best λ found: upper bounds, which are minimal up to the solver's tolerance."""

    stationarity: float  # ‖θ - Σ λ_i y_i ∇N(x_i)‖ / ‖θ‖
    slackness: float  # Σ λ_i (y_i N(x_i) - 1) / ‖θ‖²: half the mean excess over the margin, as Σ λ_i = ‖θ‖²/2
    kinks: float  # the share of the (i, j) at a kink
    multipliers: Tensor  # (m,) λ
    pulls: Tensor  # (m, k) λ_i s_ij


def residuals(net: TwoLayer, x: Tensor, y: Tensor, kink: float = 0.0) -> KKT:
    """The KKT residuals of a single network that separates its data; float64."""  # (m, d), (m,)
    size = math.sqrt(separated(net, x, y).min())
    w, b, v = (p[0] / size for p in (net.w, net.b, net.v))  # homogeneous of degree 2: the smallest output is 1
    x1, w1 = torch.cat([x, torch.ones_like(x[:, :1])], 1), torch.cat([w, b[:, None]], 1)
    a = x1 @ w1.T  # (m, k)
    free = a.abs() <= kink * x1.norm(dim=1)[:, None] * w1.norm(dim=1)
    problem = _Problem(x1 @ x1.T, a, v, y, free, squared_norm=float((w1 * w1).sum() + (v * v).sum()))
    lam, pulls, left = problem.fixed() if kink == 0 else problem.with_free_kinks()
    q = y * (a.relu() @ v)
    slackness = float(lam @ (q - 1)) / problem.squared_norm
    return KKT((max(left, 0.0) / problem.squared_norm) ** 0.5, slackness, float(free.double().mean()), lam, pulls)


@dataclass(frozen=True)
class _Problem:
    """The problem min ‖θ - Σ λ_i y_i ∇N(x_i)‖², written in inner products only."""

    gram: Tensor  # (m, m) x̃_i·x̃_l
    a: Tensor  # (m, k)
    v: Tensor  # (k,)
    y: Tensor  # (m,)
    free: Tensor  # (m, k) bool, the kinks
    squared_norm: float  # ‖θ‖²

    def fixed(self) -> tuple[Tensor, Tensor, float]:
        """The λ with s_ij = 1(a_ij > 0): min ‖θ‖² - 2 rᵀλ + λᵀGλ, a least-squares problem with the matrix G^½."""
        on, h = (self.a > 0).to(self.a.dtype), self.a.relu()
        g = self.y[:, None] * self.y * (self.gram * ((on * self.v**2) @ on.T) + h @ h.T)
        r = 2 * self.y * (h @ self.v)  # ⟨θ, ∇N⟩ = 2N (Euler)
        values, vectors = torch.linalg.eigh(g)
        keep = values > values[-1] * 1e-13
        root = sqrt(values[keep])
        lam, _ = nnls((root[:, None] * vectors[:, keep].T).numpy(), ((vectors[:, keep].T @ r) / root).numpy())
        lam = torch.from_numpy(lam)
        return lam, lam[:, None] * on, float(self.squared_norm - 2 * r @ lam + lam @ g @ lam)

    def with_free_kinks(self) -> tuple[Tensor, Tensor, float]:
        """Optimal λ and u, by accelerated projected gradients (FISTA with restarts), from the best fixed λ."""
        on, h = ((self.a > 0) & ~self.free).to(self.a.dtype), self.a.relu()
        yh, yv = self.y[:, None] * h, self.y[:, None] * self.v

        def value(lam: Tensor, u: Tensor) -> tuple[float, Tensor, Tensor]:
            """½‖residual‖² and its gradient."""
            coefficients = yv * (lam[:, None] * on + u)  # of x̃_i in w̃_j
            moved = self.gram @ coefficients
            left_v = self.v - lam @ yh
            left_w2 = float((self.a * (-2 * coefficients)).sum() + (coefficients * moved).sum())
            pull = -yv * (self.a - moved)  # ∂/∂(λ_i s_ij)
            half = 0.5 * (left_w2 + float(self.squared_norm - self.v @ self.v) + float(left_v @ left_v))
            return half, (on * pull).sum(1) - yh @ left_v, torch.where(self.free, pull, 0.0)

        lam = self.fixed()[0]
        u = torch.where(self.free & (self.a > 0), lam[:, None], 0.0)
        point, best = (lam, u), value(lam, u)[0]
        ahead, age, step, checked = point, 0.0, 1.0 / self._curvature(on, yh), best
        for n in range(1, MOST + 1):
            _, g_lam, g_u = value(*ahead)
            there = _onto_cones(ahead[0] - step * g_lam, ahead[1] - step * g_u, self.free)
            now = value(*there)[0]
            if now > best:  # the momentum overshot
                if age == 0:
                    break
                ahead, age = point, 0.0
                continue
            age += 1
            beta = age / (age + 3)
            ahead = tuple(t + beta * (t - p) for t, p in zip(there, point, strict=True))
            point, best = there, now
            if n % 50 == 0:
                if checked - best < ENOUGH * best:
                    break
                checked = best
        return point[0], point[0][:, None] * on + point[1], 2 * best

    def _curvature(self, on: Tensor, yh: Tensor) -> float:
        """The largest eigenvalue of the Hessian, by power iteration, with a margin."""
        yv = self.y[:, None] * self.v
        lam, u = torch.ones_like(self.y), torch.where(self.free, 1.0, 0.0)
        size = 1.0
        for _ in range(50):
            pull = yv * (self.gram @ (yv * (lam[:, None] * on + u)))
            lam, u = (on * pull).sum(1) + yh @ (lam @ yh), torch.where(self.free, pull, 0.0)
            size = math.sqrt(lam @ lam + (u * u).sum())
            lam, u = lam / size, u / size
        return 1.05 * size


def _onto_cones(lam: Tensor, u: Tensor, free: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest (λ, u) with 0 ≤ u_ij ≤ λ_i, for each i on its own.

    u_ij = clip(u_ij, 0, λ), and λ solves λ - λ₀ = Σ_j (u_ij - λ)₊: it is the mean of λ₀ and the n largest u_ij, for
    the first n at which the next u_ij is below that mean.
    """  # (m,), (m, k), (m, k) bool
    high = torch.where(free, u, -torch.inf).sort(dim=1, descending=True).values
    counts = torch.arange(2, high.shape[1] + 2, dtype=lam.dtype, device=lam.device)
    means = (lam[:, None] + high.masked_fill(high == -torch.inf, 0.0).cumsum(1)) / counts
    all_means = torch.cat([lam[:, None], means], 1)
    below = (
        torch.cat([high, torch.full_like(high[:, :1], -torch.inf)], 1) <= all_means
    )  # the next one is below the mean
    first = below.to(torch.int8).argmax(1, keepdim=True)
    lam = all_means.gather(1, first).squeeze(1).clamp(min=0.0)
    return lam, torch.where(free, u.clamp(min=0.0).minimum(lam[:, None]), 0.0)
