"""The exact distances along a line at which a depth-2 ReLU network changes its sign.

Along x - y·c·u the network is piecewise linear in c with one breakpoint per neuron, so sorting the breakpoints gives
every crossing of zero in closed form. Bisection is not needed; it would also miss samples that flip and flip back.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

CHUNK = 1 << 22  # samples × neurons sorted at a time
ROUNDING = 1e-12  # relative rounding error of a float64 sum over some thousand neurons


@dataclass(frozen=True)
class Crossings:
    """Where y_i N(x_i - y_i c u) changes sign as c grows from 0, for n samples; one entry per change."""

    n: int
    starts_flipped: Tensor  # (n,) misclassified already at c = 0
    sample: Tensor  # (e,)
    c: Tensor  # (e,)
    flips: Tensor  # (e,) True: from right to wrong; False: back

    @classmethod
    def joined(cls, parts: list[Crossings]) -> Crossings:
        """The crossings of all parts, their samples numbered one part after the other."""
        offsets = [0, *accumulate(part.n for part in parts)]
        return cls(
            n=offsets[-1],
            starts_flipped=torch.cat([part.starts_flipped for part in parts]),
            sample=torch.cat([part.sample + offset for part, offset in zip(parts, offsets[:-1], strict=True)]),
            c=torch.cat([part.c for part in parts]),
            flips=torch.cat([part.flips for part in parts]),
        )

    def first(self) -> Tensor:
        """Each sample's smallest c that flips it; ∞ where none does."""  # (n,)
        first = torch.full((self.n,), torch.inf, dtype=self.c.dtype, device=self.c.device)
        first = first.scatter_reduce(0, self.sample[self.flips], self.c[self.flips], "amin")
        return torch.where(self.starts_flipped, 0.0, first)

    def flipped(self, c: Tensor) -> Tensor:
        """The share of the samples flipped just beyond each c."""  # (g,) -> (g,)
        change = torch.where(self.flips, 1, -1)
        order = self.c.argsort()
        count = torch.cat([change.new_zeros(1), change[order].cumsum(0)]) + self.starts_flipped.sum()
        return count[torch.searchsorted(self.c[order], c, right=True)].to(c.dtype) / self.n

    def all_at_once(self) -> float:
        """The smallest c at which every sample is flipped: the y-axis of VYS Fig 1."""
        candidates = torch.cat([self.c.new_zeros(1), self.c]).sort().values
        everything = candidates[self.flipped(candidates) == 1]
        return float(everything[0]) if len(everything) else float("inf")


def crossings(a: Tensor, rate: Tensor, v: Tensor, y: Tensor) -> Crossings:
    """Every sign change of c ↦ y_i Σ_j v_j σ(a_ij - y_i c rate_j), c ≥ 0.

    a: preactivations at the samples; rate: w_j·u. In float64 on the CPU (CUDA's cumsum is not deterministic).
    """  # (n, k), (k,), (k,), (n,)
    rows = max(1, CHUNK // a.shape[1])
    return Crossings.joined([_chunk(*part, rate, v) for part in zip(a.split(rows), y.split(rows), strict=True)])


def _chunk(a: Tensor, y: Tensor, rate: Tensor, v: Tensor) -> Crossings:
    along = profile(a, -y[:, None] * rate, y[:, None] * v)
    nodes, slope = along.nodes, along.slope
    # A network whose neurons are all off is exactly 0, which is not a flip; the sums must not make it -1e-17.
    value = torch.where(along.value.abs() <= along.slack, 0.0, along.value)
    wrong = value < 0
    # After the last node there is a ray: it ends wrong if it falls for ever, right if it rises.
    tail = torch.where(slope[:, -1:] == 0, wrong[:, -1:], slope[:, -1:] < 0)
    changes = wrong != torch.cat([wrong[:, 1:], tail], dim=1)
    sample, segment = changes.nonzero(as_tuple=True)
    c = nodes[sample, segment] - value[sample, segment] / slope[sample, segment]
    return Crossings(len(a), wrong[:, 0], sample, c, ~wrong[sample, segment])


@dataclass(frozen=True)
class Profile:
    """c ↦ Σ_j yv_j σ(a_j + c rate_j) for c ≥ 0, a piecewise linear function: one segment between two switches."""

    nodes: Tensor  # (n, k + 1) where each segment starts
    value: Tensor  # (n, k + 1) at that start
    slope: Tensor  # (n, k + 1) of each segment; 0 if it is only the rounding of its terms
    slack: Tensor  # (n, k + 1) how much of a value may be rounding


def profile(a: Tensor, rate: Tensor, yv: Tensor) -> Profile:
    """Each sample's profile along its own line, where preactivations change at `rate`."""  # (n, k), (n, k), (n, k)
    on = (a > 0) | ((a == 0) & (rate > 0))
    # A neuron switches, on or off, at c = -a/rate > 0; either way the slope of the sum changes by yv·|rate|.
    switches = ((a > 0) & (rate < 0)) | ((a < 0) & (rate > 0))
    breaks, order = torch.where(switches, -a / torch.where(switches, rate, 1.0), torch.inf).sort(dim=1)
    bends = torch.where(switches, yv * rate.abs(), 0.0).gather(1, order)
    slope = torch.cat([(yv * rate * on).sum(1, keepdim=True), bends], dim=1).cumsum(1)
    steepest = (yv * rate).abs().sum(1, keepdim=True)
    slope = torch.where(slope.abs() <= ROUNDING * steepest, 0.0, slope)
    nodes = torch.cat([breaks.new_zeros(len(a), 1), breaks], dim=1)
    # Segments past the last switch have no start: give them length zero, so that all stays finite.
    nodes = nodes.minimum(nodes.masked_fill(nodes.isinf(), 0.0).amax(1, keepdim=True))
    start = (yv * a.relu()).sum(1, keepdim=True)
    value = torch.cat([start, start + (slope[:, :-1] * nodes.diff(dim=1)).cumsum(1)], dim=1)
    slack = ROUNDING * ((yv * a).abs().sum(1, keepdim=True) + nodes * steepest)
    return Profile(nodes, value, slope, slack)


def first_zero(a: Tensor, rate: Tensor, yv: Tensor) -> Tensor:
    """The smallest c ≥ 0 with Σ_j yv_j σ(a_j + c rate_j) ≤ 0, each sample along its own line; ∞ if none.

    `crossings` gives every change of sign along a line that all samples share; here touching zero counts, too.
    """  # (n, k), (n, k), (n, k) -> (n,)
    rows = max(1, CHUNK // a.shape[1])
    if len(a) > rows:
        return torch.cat([first_zero(*part) for part in zip(*(t.split(rows) for t in (a, rate, yv)), strict=True)])
    along = profile(a, rate, yv)
    nodes, value, slope, slack = along.nodes, along.value, along.slope, along.slack
    reached = value[:, 1:] <= slack[:, 1:]  # by the end of each segment but the last, which has none
    reached = torch.cat([reached, (slope[:, -1:] < 0) | (value[:, -1:] <= slack[:, -1:])], dim=1)
    segment = reached.to(torch.int8).argmax(1, keepdim=True)
    low, drop = value.gather(1, segment), slope.gather(1, segment)
    c = nodes.gather(1, segment) + torch.where(drop < 0, -low / drop, 0.0).clamp(min=0)
    return torch.where(value[:, :1] <= 0, 0.0, torch.where(reached.any(1, keepdim=True), c, torch.inf))[:, 0]
