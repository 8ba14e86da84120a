"""Where a ReLU network of any depth changes its sign along a line: exactly, as `line` does for depth 2.

A layer's preactivations are linear in c between the switches of the layers before it. So we evaluate them at those
switches: between two neighbours of opposite sign lies a switch of this layer, known in closed form. Layer by layer, the
nodes grow to all points where the network can bend; between them its own zero crossings have a closed form, too.
"""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.attacks.line import Crossings
from brittle.nets.deep import Deep

CHUNK = 1 << 22  # samples × nodes × neurons at a time
ROUNDING = 1e-12  # relative rounding error of float64 sums over some hundred neurons


def along(net: Deep, x: Tensor, y: Tensor, u: Tensor) -> Crossings:
    """Every sign change of c ↦ y_i N(x_i - y_i c u), c ≥ 0, of a single network; u may differ for each sample.

    Without biases after the first layer N is homogeneous in that layer's preactivations, so that its sign at a + c·s is
    that at (1 - t)·a + t·s for t = c / (1 + c): the whole ray is a segment, and c = ∞ is its end. Use float64.
    """  # (n, d), (n,), (d,) or (n, d)
    a = net.preactivations(x[None])[0]  # (n, k)
    s = -y[:, None] * (u.expand_as(x) @ net.ws[0][0].T)  # how fast each changes with c
    rows = max(1, CHUNK // (2 * a.shape[1] * max(w.shape[1] for w in net.ws)))
    parts = zip(*(tensor.split(rows) for tensor in (a, s, y)), strict=True)
    return Crossings.joined([_chunk(net, *part) for part in parts])


def _chunk(net: Deep, a: Tensor, s: Tensor, y: Tensor) -> Crossings:
    later = [w[0].T for w in net.ws[1:]]

    def preactivations(t: Tensor, layers: list[Tensor]) -> Tensor:
        """The preactivations after `layers`, at the fractions t of the way from a to s."""  # (n, p) -> (n, p, k)
        h = torch.lerp(a.unsqueeze(1), s.unsqueeze(1), t.unsqueeze(2))
        for w in layers:
            h = h.relu() @ w
        return h

    t = torch.tensor([0.0, 1.0]).to(a).expand(len(a), 2)
    for hidden in range(len(later)):
        sample, _, switch = _zeros(t, preactivations(t, later[:hidden]))
        t = torch.cat([t, _rows(sample, switch, len(a))], dim=1).sort(dim=1).values
    value = y[:, None] * preactivations(t, later).squeeze(2)  # (n, p)
    # A network whose neurons are all off is exactly 0, which is not a flip; the sums must not make it -1e-17.
    terms = torch.lerp(a.abs().unsqueeze(1), s.abs().unsqueeze(1), t.unsqueeze(2))
    for w in later:
        terms = terms @ w.abs()
    value = torch.where(value.abs() <= ROUNDING * terms.squeeze(2), 0.0, value)
    sample, segment, zero = _zeros(t, value.unsqueeze(2))
    finite = zero < 1
    sample, segment, zero = sample[finite], segment[finite], zero[finite]
    return Crossings(len(a), value[:, 0] < 0, sample, zero / (1 - zero), value[sample, segment] >= 0)


def _zeros(t: Tensor, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where a changes sign between neighbouring nodes: the sample, the segment, and t itself."""  # (n, p), (n, p, k)
    negative = a < 0
    sample, segment, j = (negative[:, 1:] != negative[:, :-1]).nonzero(as_tuple=True)
    low, high = a[sample, segment, j], a[sample, segment + 1, j]
    return sample, segment, torch.lerp(t[sample, segment], t[sample, segment + 1], low / (low - high))


def _rows(sample: Tensor, t: Tensor, n: int) -> Tensor:
    """A row of nodes for each sample, padded with the end t = 1. `sample` is in ascending order."""  # -> (n, most)
    count = torch.bincount(sample, minlength=n)
    rows = t.new_ones(n, int(count.max()))
    rows[sample, torch.arange(len(t), device=t.device) - (count.cumsum(0) - count)[sample]] = t
    return rows
