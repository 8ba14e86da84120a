"""Clusters with Gaussian noise, of which fresh samples can be drawn (Frei and others 2023; Min and Vidal 2024)."""

from __future__ import annotations

import math

import numpy as np

from brittle.worlds.sphere import points


def orthogonal_centres(d: int, k: int, norm: float) -> np.ndarray:
    """norm · e_1 … norm · e_k."""  # (k, d)
    return norm * np.eye(k, d)


def random_centres(d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """k points on √d·S^(d-1): weakly correlated where d is large."""  # (k, d)
    return points(d, k, rng)


def labels(k: int, positive: int) -> np.ndarray:
    """1 for the first clusters, -1 for the others."""  # (k,)
    return np.where(np.arange(k) < positive, 1.0, -1.0)


def sample(
    mu: np.ndarray, y: np.ndarray, n: int, sigma: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """μ + ξ with ξ ~ N(0, σ²I), as many samples of each cluster as n allows; each has the label of its cluster."""
    cluster = np.arange(n) % len(mu)  # (k, d), (k,) -> (n, d), (n,)
    return mu[cluster] + sigma * rng.standard_normal((n, mu.shape[1])), y[cluster]


def correlation(mu: np.ndarray, sigma: float) -> float:
    """What Frei and others assume to be ≤ 1/10, for centres of norm √d: how alike samples of different clusters may be.

    Inner products are at most p + Δ between clusters and at least d - Δ within one, p = max |⟨μ_i, μ_j⟩| and
    Δ = 4σ√d ln d; the ratio is k (p + Δ + 1) / (d - Δ + 1), or ∞ where noise drowns the centres. (That Δ and 1/10 are
    the paper's own constants has not been checked against its text.)
    """  # (k, d)
    k, d = mu.shape
    p = float(np.abs(mu @ mu.T - np.diag((mu * mu).sum(1))).max())
    noise = 4 * sigma * math.sqrt(d) * math.log(d)
    return k * (p + noise + 1) / (d - noise + 1) if noise <= d else math.inf
