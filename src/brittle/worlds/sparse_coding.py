"""The sparse coding model x = Mz + ξ of FP §2: inputs are sparse sums of dictionary words, labels are linear in z."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from brittle.core import rng as core_rng
from brittle.core.rng import normal32


@dataclass(frozen=True)
class SparseCoding:
    """The distribution; Assumption 2.1 holds with |z_j| = 1 with probability c1/D and 1/√k with probability c2 k/D."""

    dictionary: np.ndarray  # M (d, D), its columns of norm 1
    w_star: np.ndarray  # (D,) of order 1 each
    k: int
    c1: float = 0.5
    c2: float = 0.5
    sigma_x: float = 0.0  # Gaussian noise ξ' ~ N(0, σ_x²/d I), of norm σ_x
    spikes: float = 0.0  # how many of a sample's coordinates carry spike noise ξ'', on average …
    spike_size: float = 0.5  # … and how large it is, as a share of 1/√k
    margin: float = 0.0  # only samples with |⟨w*, z⟩| ≥ margin are kept; 0: the paper's own distribution

    @property
    def ambient(self) -> int:
        """d, the dimension of x."""
        return self.dictionary.shape[0]

    @property
    def words(self) -> int:
        """D, the dimension of z."""
        return self.dictionary.shape[1]

    @property
    def active(self) -> float:
        """K = c1 + c2 k: how many coordinates of z are not zero, on average (before the filter)."""
        return self.c1 + self.c2 * self.k

    @property
    def dense(self) -> np.ndarray:
        """M w*/‖M w*‖: the direction of the dense mixtures, known without a network."""  # (d,)
        direction = self.dictionary @ self.w_star
        return (direction / np.linalg.norm(direction)).astype(np.float32)

    def hidden(self, n: int, rng: np.random.Generator) -> csr_matrix:
        """n draws of z that pass the filter."""  # (n, D)
        kept: list[csr_matrix] = []
        tries, rate = 0, 1.0
        while (missing := n - sum(z.shape[0] for z in kept)) > 0:
            z = self._unfiltered(math.ceil(1.1 * missing / rate) + 16, rng)
            passes = np.abs(self.sums(z)) >= self.margin
            kept.append(z[passes])
            tries += z.shape[0]
            rate = max(sum(z.shape[0] for z in kept) / tries, 1e-3)
        return _stack(kept)[:n]

    def _unfiltered(self, n: int, rng: np.random.Generator) -> csr_matrix:
        cells = bernoulli(n * self.words, self.active / self.words, rng)
        large = rng.random(len(cells)) < self.c1 / self.active
        size = np.where(large, 1.0, 1 / math.sqrt(self.k))
        values = (size * _signs(len(cells), rng)).astype(np.float32)
        return _rows(cells, values, n, self.words)

    def sums(self, z: csr_matrix) -> np.ndarray:
        """⟨w*, z⟩, rounded so that equal sums are equal: many samples lie exactly at 0 or at the margin."""
        return (z.astype(np.float64) @ self.w_star.astype(np.float64)).round(5)  # (n, D) -> (n,)

    def labels(self, z: csr_matrix) -> np.ndarray:
        """sign⟨w*, z⟩, with sign(0) = 1 as in the paper."""  # (n, D) -> (n,)
        return np.where(self.sums(z) >= 0, 1, -1).astype(np.float32)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Samples and their labels."""  # (n, d), (n,)
        z = self.hidden(n, rng)
        signal = z
        if self.spikes:
            cells = bernoulli(n * self.words, self.spikes / self.words, rng)
            size = np.float32(self.spike_size / math.sqrt(self.k))
            signal = z + _rows(cells, size * _signs(len(cells), rng).astype(np.float32), n, self.words)
        x = signal @ self.dictionary.T
        if self.sigma_x:
            noise = normal32(x.shape, rng)
            noise *= np.float32(self.sigma_x / math.sqrt(self.ambient))
            x += noise
        return np.ascontiguousarray(x), self.labels(z)

    def words_on(self) -> float:
        """K: the mean number of words in a sample, the filter's effect included."""
        z = self.hidden(20_000, core_rng.rng(0, "words on"))
        return z.nnz / z.shape[0]


def bernoulli(n: int, p: float, rng: np.random.Generator) -> np.ndarray:
    """Which of n independent trials succeed, drawn by the gaps between successes so that failures cost nothing."""
    enough = int(n * p + 8 * math.sqrt(n * p) + 16)
    at = np.cumsum(rng.geometric(p, enough)) - 1
    while at[-1] < n:
        at = np.concatenate([at, at[-1] + np.cumsum(rng.geometric(p, enough))])
    return at[: np.searchsorted(at, n)]


def _signs(n: int, rng: np.random.Generator) -> np.ndarray:
    return 2.0 * rng.integers(0, 2, n) - 1.0


def _rows(cells: np.ndarray, values: np.ndarray, n: int, width: int) -> csr_matrix:
    """The matrix with these values in these cells, counted row by row."""
    row, column = np.divmod(cells, width)
    starts = np.searchsorted(row, np.arange(n + 1))
    return csr_matrix((values, column, starts), shape=(n, width))


def _stack(parts: list[csr_matrix]) -> csr_matrix:
    data, columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("data", "indices"))
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    return csr_matrix(
        (data, columns, np.concatenate([[0], np.cumsum(lengths)])), shape=(len(lengths), parts[0].shape[1])
    )


def orthogonal(d: int, words: int, rng: np.random.Generator) -> np.ndarray:
    """`words` ≤ d orthonormal columns, uniformly random."""  # (d, D)
    q, r = np.linalg.qr(rng.standard_normal((d, words)))
    return (q * np.sign(np.diag(r))).astype(np.float32)


def incoherent(d: int, words: int, rng: np.random.Generator) -> np.ndarray:
    """Independent unit columns, any number of them: their products are of order 1/√d."""  # (d, D)
    columns = rng.standard_normal((d, words))
    return (columns / np.linalg.norm(columns, axis=0)).astype(np.float32)


def identity(d: int, words: int, rng: np.random.Generator) -> np.ndarray:
    """M = I, for which ‖M‖₁ = ‖M‖∞ = 1 (FP Theorems 5.4 and 5.6)."""  # (d, D)
    return np.eye(d, words, dtype=np.float32)


DICTIONARIES = {"orthogonal": orthogonal, "incoherent": incoherent, "identity": identity}


def labelling(words: int, spread: float, rng: np.random.Generator) -> np.ndarray:
    """w*: random signs times sizes in 1 ± spread."""  # (D,)
    return (_signs(words, rng) * (1 + spread * rng.uniform(-1, 1, words))).astype(np.float32)
