"""Radii within which no perturbation changes the class of a ReLU MLP of any depth (CROWN, Zhang et al. 2018).

Layer by layer, every preactivation gets a lower and an upper bound over the l2 ball, by two lines for each ReLU that
may switch there: σ(z) ≤ the chord, σ(z) ≥ αz with α = 1 where the chord rises by more than a half, else 0. Substituted
backwards down to the input, the lines are linear in δ, and their minimum over the ball is known. For depth 2,
`certify.py` does better: its quadratic bound takes into account that one δ must move all neurons at once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.nets.relu_mlp import ReluMlp
from brittle.probes.certify import ROUNDING

HALVINGS = 14
ROWS = 16  # samples at a time: each has a matrix for each layer

Lines = tuple[Tensor, Tensor, Tensor, Tensor]  # of each ReLU: slope below, slope above, what is added above, z's size


def certified(net: ReluMlp, x: Tensor, label: Tensor, most: Tensor) -> Tensor:
    """The largest r found, at most `most`, for which the label provably wins everywhere within r; by bisection.

    `most` is the size of a perturbation that is known to succeed. float64, CPU; 0 where a sample is wrong already.
    """  # (n, d), (n,), (n,) -> (n,)
    parts = zip(*(tensor.split(ROWS) for tensor in (x, label, most)), strict=True)
    return torch.cat([_certified(net, *part) for part in parts])


def _certified(net: ReluMlp, x: Tensor, label: Tensor, most: Tensor) -> Tensor:
    low, high = torch.zeros_like(most), torch.where(most.isfinite(), most, x.norm(dim=1) + 1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        holds = lead(net, x, label, middle).amin(1) > 0
        low, high = torch.where(holds, middle, low), torch.where(holds, high, middle)
    return low * (1 - ROUNDING)


def lead(net: ReluMlp, x: Tensor, label: Tensor, r: Tensor) -> Tensor:
    """A lower bound, over ‖δ‖ ≤ r, on how far the label's output is ahead of each other one; ∞ for itself."""
    lines: list[Lines] = []  # (n, d), (n,), (n,) -> (n, classes)
    for w, b in zip(net.weights[:-1], net.biases[:-1], strict=True):
        lines.append(_lines(*_between(net, x, r, lines, w.expand(len(x), -1, -1), b.expand(len(x), -1))))
    w, b = net.weights[-1], net.biases[-1]
    ahead, _ = _between(net, x, r, lines, w[label][:, None] - w, b[label][:, None] - b)
    return ahead.scatter(1, label[:, None], torch.inf)


def _lines(low: Tensor, high: Tensor) -> Lines:
    bends = (low < 0) & (high > 0)
    above = torch.where(bends, high / torch.where(bends, high - low, 1.0), (low >= 0).to(low.dtype))
    below = torch.where(bends, (high > -low).to(low.dtype), above)  # (n, k)
    return below, above, torch.where(bends, -above * low, 0.0), low.abs().maximum(high.abs())


def _between(net: ReluMlp, x: Tensor, r: Tensor, lines: list[Lines], a: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Bounds on a·h + c over the ball, where h is what comes out of the last of these ReLUs (x, if there are none)."""
    return _least(net, x, r, lines, a, c), -_least(net, x, r, lines, -a, -c)  # (n, s, k), (n, s) -> (n, s)


def _least(net: ReluMlp, x: Tensor, r: Tensor, lines: list[Lines], a: Tensor, c: Tensor) -> Tensor:
    size = c.abs()  # of the terms that are added up, for the allowance for rounding
    for w, b, (below, above, added, reach) in reversed(list(zip(net.weights, net.biases, lines, strict=False))):
        positive, negative = a.clamp(min=0), a.clamp(max=0)
        size = size + (a.abs() @ (reach + b.abs())[:, :, None])[:, :, 0]
        c = c + (negative @ added[:, :, None])[:, :, 0]
        a = positive * below[:, None] + negative * above[:, None]
        c = c + a @ b
        a = a @ w
    at, far = (a @ x[:, :, None])[:, :, 0], r[:, None] * a.norm(dim=2)
    return at + c - far - ROUNDING * (size + (a.abs() @ x.abs()[:, :, None])[:, :, 0] + far)
