"""Clustered data for VYS Corollary 4.1: the margin is attained by a few nearly orthogonal samples of norm √d."""

from __future__ import annotations

import numpy as np

from brittle.worlds.sphere import points


def sample(
    d: int, m: int, size: int, spread: float, rng: np.random.Generator, orthogonal: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of `size` samples with one label; labels alternate from cluster to cluster.

    A cluster is a centre μ ~ U(√d·S^(d-1)), which is itself a sample, and further samples
    s·μ + spread·ξ with s ~ U[1.5, 2] and ξ ~ U(√d·S^(d-1)): farther out in the same direction, so that the
    network's output there is larger and the centres alone attain the margin. Random centres are too close to each
    other for the corollary; with `orthogonal` they are √d·e_1, √d·e_2 …, of which it allows (d + 1)/3.
    """  # (m, d), (m,)
    cluster = np.arange(m) // size
    count = cluster[-1] + 1
    mu = np.sqrt(d) * np.eye(count, d) if orthogonal else points(d, count, rng)
    x = rng.uniform(1.5, 2.0, (m, 1)) * mu[cluster] + spread * points(d, m, rng)
    centre = np.arange(m) % size == 0
    x[centre] = mu
    return x, np.where(cluster % 2 == 0, 1.0, -1.0)
