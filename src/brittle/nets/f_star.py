"""The robust network that SGD does not find (SB §4.3): f*, the average of one classifier per feature.

The classifier of a feature is +1 on its positive intervals, -1 on its negative ones and linear across the gaps between
them, of width 2γB: its slope is nowhere more than 1/(γB). A ramp is two ReLUs, so f* is a network with one hidden
layer: two neurons per gap, and one more that is always 1, for the constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from brittle.nets.two_layer import TwoLayer
from brittle.worlds.slabs import Block, SlabWorld


@dataclass(frozen=True)
class Ramps:
    """One feature's classifier: `start` on the far left, then across each gap a ramp from one sign to the other."""

    start: float  # ±1
    lows: np.ndarray  # (g,)
    highs: np.ndarray  # (g,)
    slopes: np.ndarray  # (g,) ±2 over the gap

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """The classifier's value at coordinates of the feature."""  # (...) -> (...)
        ways = np.clip(u[..., None], self.lows, self.highs) - self.lows  # (..., g), how far along each ramp
        return self.start + ways @ self.slopes


def ramps(block: Block) -> Ramps:
    """The classifier of a block. A ramp spans the noisy linear block's middle, which says nothing about the label."""
    positive, negative = ({*zip(m.lows, m.highs, strict=True)} for m in (block.positive, block.negative))
    sides = sorted([(*each, 1.0) for each in positive - negative] + [(*each, -1.0) for each in negative - positive])
    gaps = [(a[1], b[0], b[2]) for a, b in pairwise(sides) if a[2] != b[2]]
    lows, highs, signs = np.array(gaps).T
    return Ramps(sides[0][2], lows, highs, 2 * signs / (highs - lows))


def classifiers(world: SlabWorld) -> list[Ramps]:
    """Each feature's classifier."""
    return [ramps(world.first)] + [ramps(world.rest)] * (world.d - 1)


def lipschitz(world: SlabWorld) -> float:
    """The most that f* changes per unit of ‖δ‖₂: 1/(γB√d), as the features' directions are orthogonal."""
    steepest = [np.abs(each.slopes).max() for each in classifiers(world)]
    return float(np.linalg.norm(steepest)) / world.d


def f_star(world: SlabWorld, q: np.ndarray | Tensor) -> TwoLayer:
    """f*(x) = (1/d) Σ_i g_i(q_i·x) with g_i the classifier of feature i, whose direction is row q_i; in float64."""
    q, features = torch.as_tensor(q).double(), classifiers(world)  # (d, d) -> one network of width Σ_i 2 g_i + 1
    rows = np.repeat(np.arange(world.d), [2 * len(each.lows) for each in features])
    knots = np.concatenate([np.stack([each.lows, each.highs], 1).ravel() for each in features])
    bends = np.concatenate([np.stack([each.slopes, -each.slopes], 1).ravel() for each in features])
    start = sum(each.start for each in features)
    w = torch.cat([q[torch.from_numpy(rows)], q.new_zeros(1, world.d)])
    b = np.append(-knots, 1.0)
    v = np.append(bends, start) / world.d
    return TwoLayer(w=w[None], b=torch.from_numpy(b)[None], v=torch.from_numpy(v)[None])
