"""The synthetic worlds of SB §3.1 and Appendix B, where every coordinate, linear or in slabs, predicts the label.

A block is two mixtures of uniform distributions, one for each label. Its coordinate is drawn through the quantile
function of the label's mixture, so one uniform number per coordinate decides slab, side and position at once, and the
coordinates are independent given the label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from brittle.core.errors import BadInput

ROWS = 1 << 12  # drawn at a time
NAMES = "lms-K, noisy-lms-K, ms-K or ms-K-L with K and L among 3, 5, 7"


@dataclass(frozen=True)
class Mixture:
    """Uniform on disjoint intervals, with shares that add up to 1."""

    shares: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    def quantile(self, u: np.ndarray) -> np.ndarray:
        """The point with a share u of the mass to its left; piecewise linear, with a jump from interval to interval."""
        starts = np.concatenate([[0.0], np.cumsum(self.shares)[:-1]])
        slopes = np.subtract(self.highs, self.lows) / np.asarray(self.shares)
        offsets = np.asarray(self.lows) - starts * slopes
        x = u * u.dtype.type(slopes[0]) + u.dtype.type(offsets[0])
        for start, slope, offset in zip(starts[1:], slopes[1:], offsets[1:], strict=True):
            np.copyto(x, u * u.dtype.type(slope) + u.dtype.type(offset), where=u >= start)
        return x


@dataclass(frozen=True)
class Block:
    """One coordinate: its distribution for each label."""

    pieces: int  # of the simplest piecewise-linear classifier with the best accuracy: its complexity
    positive: Mixture
    negative: Mixture


def linear(gamma: float, b: float, noise: float = 0.0) -> Block:
    """y·U[γB, B]; a share `noise` of the samples is U[-γB, γB] whatever the label."""
    sides = ((gamma * b, b), (-b, -gamma * b))
    if noise == 0:
        positive, negative = (Mixture((1.0,), (low,), (high,)) for low, high in sides)
    else:
        middle = (noise, -gamma * b, gamma * b)
        (low, high), (left, right) = sides
        positive = _mixture([middle, (1 - noise, low, high)])
        negative = _mixture([(1 - noise, left, right), middle])
    return Block(1, positive, negative)


def slab(k: int, gamma: float, b: float) -> Block:
    """k slabs of width 2B(1-(k-1)γ)/k with gaps of 2γB and alternating labels, the middle one negative.

    With these shares both labels have the same variance (k = 5, 7): no linear or quadratic statistic of one
    coordinate tells them apart. Three slabs leave no choice of shares.
    """
    if not 0 < gamma * (k - 1) < 1:
        raise BadInput(f"gamma = {gamma}: must be > 0 and < 1/{k - 1}, or {k} slabs leave no room for themselves")
    width = 2 * b * (1 - (k - 1) * gamma) / k
    shares = {3: (1.0, 1.0), 5: (3 / 4, 1.0, 1 / 4), 7: (1 / 2, 7 / 8, 1 / 2, 1 / 8)}[k]  # from the middle outwards
    intervals: dict[bool, list[tuple[float, float, float]]] = {True: [], False: []}
    for ring, share in enumerate(shares):
        centre = ring * (width + 2 * gamma * b)
        low, high = centre - width / 2, centre + width / 2
        if ring == 0:
            intervals[False].append((share, low, high))
        else:
            intervals[ring % 2 == 1] += [(share / 2, low, high), (share / 2, -high, -low)]
    return Block(k - 1, _mixture(intervals[True]), _mixture(intervals[False]))


def _mixture(intervals: list[tuple[float, float, float]]) -> Mixture:
    shares, lows, highs = zip(*sorted(intervals, key=lambda each: each[1]), strict=True)
    return Mixture(shares, lows, highs)


@dataclass(frozen=True)
class SlabWorld:
    """The first coordinate is `first`, the other d - 1 are independent copies of `rest` (given the label)."""

    name: str
    d: int
    first: Block
    rest: Block

    @property
    def has_simple(self) -> bool:
        """Whether the first coordinate is simpler than the others: then it is S, and they are Sᶜ."""
        return self.first.pieces < self.rest.pieces

    def sample(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """n unrotated samples with fair labels ±1."""  # (n, d) float32, (n,) float32
        positive = rng.random(n) < 0.5
        x = rng.random((n, self.d), dtype=np.float32)
        for start in range(0, n, ROWS):  # a block that fits into the cache
            block = slice(start, start + ROWS)
            for rows, first, rest in (
                (positive[block], self.first.positive, self.rest.positive),
                (~positive[block], self.first.negative, self.rest.negative),
            ):
                u = x[block][rows]
                drawn = rest.quantile(u)
                drawn[:, 0] = first.quantile(u[:, 0])
                x[block][rows] = drawn
        y = np.where(positive, np.float32(1), np.float32(-1))
        return x, y


def world(name: str, d: int, *, gamma: float = 0.1, b: float = 1.0, noise: float = 0.1) -> SlabWorld:
    """A world by its name: lms-5, noisy-lms-7, ms-5-7, ms-5, …"""
    matched = re.fullmatch(r"(noisy-lms|lms|ms)-([357])(?:-([357]))?", name)
    if matched is None or (matched[1] != "ms" and matched[3]):
        raise BadInput(f"{name}: is not a world; worlds are {NAMES}")
    kind, k = matched[1], int(matched[2])
    if kind == "ms":
        return SlabWorld(name, d, slab(k, gamma, b), slab(int(matched[3] or k), gamma, b))
    return SlabWorld(name, d, linear(gamma, b, noise if kind == "noisy-lms" else 0.0), slab(k, gamma, b))


def rotation(d: int, rng: np.random.Generator) -> np.ndarray:
    """A uniformly random orthogonal matrix. Row i is the direction in which feature i appears."""  # (d, d)
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return (q * np.sign(np.diag(r))).astype(np.float32)


def title(name: str) -> str:
    """The paper's name for a world."""
    kind, _, ks = name.rpartition("lms-") if "lms" in name else ("ms", "", name.removeprefix("ms-"))
    if kind == "ms":
        return f"MS-({ks.replace('-', ', ')})" if "-" in ks else f"MS-{ks}"
    return f"noisy LMS-{ks}" if kind else f"LMS-{ks}"
