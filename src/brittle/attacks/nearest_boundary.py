"""The smallest l2 perturbation that flips a sample of a depth-2 ReLU network, as nearly as descent can find it.

At a locally nearest point of the boundary the perturbation is parallel to the gradient there, which is what DeepFool
(Moosavi-Dezfooli et al. 2016) steps towards. Two things make the steps reliable here. Along a line the boundary is
found exactly (`line.py` says how), so every iterate is on it. And the nearest point often lies in the crease of neurons
with y v_j > 0, where the gradient jumps: so the gradient is that of a softened network, softened less and less.
Where few neurons may switch, branch and bound finds the nearest point whatever the gradients say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.attacks.branch_and_bound import bracket
from brittle.attacks.line import first_zero
from brittle.attacks.pgd import pgd
from brittle.attacks.pieces import l2_normalise
from brittle.attacks.universal import z_direction
from brittle.nets.two_layer import TwoLayer

NUDGES = (0.0, 1e-12, 1e-10, 1e-8)  # relative steps across the boundary, in case rounding stops short of it


@dataclass(frozen=True)
class Found:
    """Perturbations with y_i N(x_i + δ_i) ≤ 0, as the network itself computes it."""

    delta: Tensor  # (m, d)
    size: Tensor  # (m,) ‖δ_i‖₂; ∞ where nothing was found


@dataclass(frozen=True)
class Best(Found):
    winner: Tensor  # (m,) index into NAMES; the first of those that are equal up to rounding
    sizes: Tensor  # (len(NAMES), m) by each attack alone


NAMES = ("z", "pgd", "minimum")


def along(net: TwoLayer, x: Tensor, y: Tensor, u: Tensor) -> Found:
    """Follow each sample along its own direction, to the boundary and just across it."""  # (m, d), (m,), (m, d)
    a, yv = net.preactivations(x[None])[0], y[:, None] * net.v[0]
    return _across(net, x, y, l2_normalise(u), first_zero(a, l2_normalise(u) @ net.w[0].T, yv))


def minimum(
    net: TwoLayer,
    x: Tensor,
    y: Tensor,
    steps: int = 50,
    restarts: int = 2,
    rng: torch.Generator | None = None,
    z: Tensor | None = None,
) -> Found:
    """The best of several descents, from the gradient, from z and from random directions, and of branch and bound."""
    rng = rng or torch.Generator().manual_seed(0)
    a, yv, w = net.preactivations(x[None])[0], y[:, None] * net.v[0], net.w[0]
    z = z_direction(x, y) if z is None else z
    starts = [-(yv * (a > 0)) @ w, -y[:, None] * z]
    starts += [torch.randn(x.shape, generator=rng, dtype=x.dtype) for _ in range(restarts)]
    found = _smallest([_across(net, x, y, *_descend(a, yv, w, l2_normalise(u), steps)) for u in starts])
    return _smallest([found, along(net, x, y, bracket(a, yv, w, tried=[found.delta]).u)])


def _descend(a: Tensor, yv: Tensor, w: Tensor, u: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Turn u against the gradient at x + c u; return the direction in which the boundary was nearest, and how near."""
    norms = w.norm(dim=1).clamp(min=1e-300)
    linear = ((yv * a.relu()).sum(1) / ((yv * (a > 0)) @ w).norm(dim=1)).nan_to_num(0.0, 0.0)
    best_u, best_c = u, torch.full_like(linear, torch.inf)
    for step in range(steps):
        rate = u @ w.T
        c = first_zero(a, rate, yv)
        nearer = c < best_c
        best_u, best_c = torch.where(nearer[:, None], u, best_u), best_c.minimum(c)
        c = torch.where(c.isfinite(), c, linear)[:, None]  # no boundary this way: look as far as DeepFool would
        softness = 0.5 * 0.01 ** (step / steps) * c * norms
        g = (yv * ((a + c * rate) / softness.clamp(min=1e-300)).sigmoid()) @ w
        u = l2_normalise(u - 0.4 * (l2_normalise(g) + u))
    return best_u, best_c


def smallest_pgd(net: TwoLayer, x: Tensor, y: Tensor, steps: int = 30, halvings: int = 10) -> Found:
    """The smallest ε at which PGD succeeds, by bisection below the distance along the gradient; then straight back."""
    high = along(net, x, y, _gradient_step(net, x, y)).size
    high = torch.where(high.isfinite(), high, x.norm(dim=1))
    low, found = torch.zeros_like(high), Found(torch.zeros_like(x), torch.full_like(high, torch.inf))
    for halving in range(halvings):
        eps = high if halving == 0 else (low + high) / 2
        delta = pgd(lambda points: net(points[None])[0], x, y, "l2", eps, steps)
        flips = y * net((x + delta)[None])[0] <= 0
        found = _smallest([found, Found(delta, torch.where(flips, delta.norm(dim=1), torch.inf))])
        low, high = torch.where(flips, low, eps), torch.where(flips, eps, high)
    return _smallest([found, along(net, x, y, found.delta)])


def best(net: TwoLayer, x: Tensor, y: Tensor, z: Tensor | None = None) -> Best:
    """The smallest perturbation that any attack finds for each sample: an upper bound on its robustness.

    z is the universal direction, which comes from all training samples; pass it if x holds only some of them.
    """  # (m, d), (m,), (d,)
    z = z_direction(x, y) if z is None else z
    attacks: tuple[Callable[[], Found], ...] = (
        lambda: along(net, x, y, -y[:, None] * z),
        lambda: smallest_pgd(net, x, y),
        lambda: minimum(net, x, y, z=z),
    )
    found = [attack() for attack in attacks]
    sizes = torch.stack([f.size for f in found])
    smallest = _smallest(found)
    winner = (sizes <= smallest.size * (1 + 1e-9)).to(torch.int8).argmax(0)
    return Best(smallest.delta, smallest.size, winner, sizes)


def _gradient_step(net: TwoLayer, x: Tensor, y: Tensor) -> Tensor:
    return -(y[:, None] * net.v[0] * (net.preactivations(x[None])[0] > 0)) @ net.w[0]


def _across(net: TwoLayer, x: Tensor, y: Tensor, u: Tensor, c: Tensor) -> Found:
    """c u, extended just enough that the network itself says that the sample is flipped."""
    delta, size = torch.zeros_like(x), torch.full_like(c, torch.inf)
    for nudge in NUDGES:
        tried = torch.where(c.isfinite(), c * (1 + nudge), 0.0)[:, None] * u
        done = c.isfinite() & size.isinf() & (y * net((x + tried)[None])[0] <= 0)
        delta, size = torch.where(done[:, None], tried, delta), torch.where(done, tried.norm(dim=1), size)
    return Found(delta, size)


def _smallest(found: list[Found]) -> Found:
    size, which = torch.stack([f.size for f in found]).min(0)
    delta = torch.stack([f.delta for f in found])[which, torch.arange(len(size))]
    return Found(delta, size)
