"""Clustered data for VYS Corollary 4.1: the margin is attained by a few nearly orthogonal samples of norm √d."""

from __future__ import annotations

import numpy as np

from brittle.worlds.sphere import points


def sample(d: int, m: int, size: int, spread: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of `size` samples with one label; labels alternate from cluster to cluster.

    A cluster is a centre μ ~ U(√d·S^(d-1)), which is itself a sample, and further samples
    s·μ + spread·ξ with s ~ U[1.5, 2] and ξ ~ U(√d·S^(d-1)): farther out in the same direction, so that the
    network's output there is larger and the centres alone attain the margin.
    """  # (m, d), (m,)
    cluster = np.arange(m) // size
    mu = points(d, cluster[-1] + 1, rng)
    x = rng.uniform(1.5, 2.0, (m, 1)) * mu[cluster] + spread * points(d, m, rng)
    centre = np.arange(m) % size == 0
    x[centre] = mu
    return x, np.where(cluster % 2 == 0, 1.0, -1.0)
