"""The l2 attacks that robust accuracy is reported under, for any network of scores: the strongest for each sample."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from brittle.attacks.nearest_boundary import minimum
from brittle.attacks.pgd import pgd as descend
from brittle.core.rng import rng
from brittle.nets.modules import as_two_layer
from brittle.plugins import Plugin, attack

STEPS = 20
BEYOND = 1.02  # go slightly across the boundary, which float32 locates only approximately


@attack
def pgd(net: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """PGD from the sample and from a random point on the edge of the ball; the stronger result for each sample."""
    noise = torch.from_numpy(rng(0, "pgd").standard_normal(x.shape)).to(x)
    tried = [descend(net, x, y, "l2", radius, STEPS, start=start) for start in (None, noise * radius)]
    scores = torch.stack([y * net(x + delta).detach() for delta in tried])
    return x + torch.stack(tried)[scores.argmin(0), torch.arange(len(x))]


@attack
def nearest(net: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """The nearest boundary point, by softened gradients and exact line searches, which masked gradients do not mislead.

    Only for networks with one hidden layer of ReLUs; for others the samples are returned unchanged.
    """
    known = as_two_layer(net)
    if known is None:
        return x
    found = minimum(known, x.cpu().double(), y.cpu().double(), steps=20, restarts=1)
    further = found.delta * (radius / found.size.clamp(min=1e-12)).clamp(max=BEYOND)[:, None]
    return torch.where((found.size <= radius)[:, None].to(x.device), x + further.to(x), x)


def attacked(by: Plugin, net: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """The samples perturbed by one attack, checked for their shape and for staying within the radius."""  # (n, d)
    moved = by(net, x.clone(), y.clone(), radius)  # an attack that works in place changes its own copies
    if not isinstance(moved, Tensor) or moved.shape != x.shape:
        got = tuple(moved.shape) if isinstance(moved, Tensor) else type(moved).__name__
        raise by.wrong(f"must return inputs of the shape {tuple(x.shape)}, not {got}")
    moved = moved.detach().to(x)
    far = (moved - x).norm(dim=1)
    allowed = radius * (1 + 1e-4) + 4 * torch.finfo(x.dtype).eps * x.norm(dim=1)  # x + δ is rounded
    if not bool((far <= allowed).all()):
        raise by.wrong(f"moved a sample by {float(far.max()):.4g}; at most {radius:.4g} is allowed")
    return moved
