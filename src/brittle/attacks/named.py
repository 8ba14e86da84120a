"""The attacks that robust accuracy is stated under, the strongest on each sample: l2, for any network of scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from brittle.attacks.minimum import minimum
from brittle.attacks.pgd import pgd as descend
from brittle.nets.modules import as_two_layer
from brittle.plugins import Plugin, attack
from brittle.rng import rng

STEPS = 20
BEYOND = 1.02  # a step across the boundary, which float32 does not know so exactly


@attack
def pgd(net: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """From the sample, and from a random point at the end of the ball."""
    noise = torch.from_numpy(rng(0, "pgd").standard_normal(x.shape)).to(x)
    tried = [descend(net, x, y, "l2", radius, STEPS, start=start) for start in (None, noise * radius)]
    scores = torch.stack([y * net(x + delta).detach() for delta in tried])
    return x + torch.stack(tried)[scores.argmin(0), torch.arange(len(x))]


@attack
def nearest(net: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """The boundary's nearest point, by softened gradients and exact lines, which no masked gradient deceives.

    For networks with one hidden layer of ReLUs; others are left as they are.
    """
    known = as_two_layer(net)
    if known is None:
        return x
    found = minimum(known, x.cpu().double(), y.cpu().double(), steps=20, restarts=1)
    further = found.delta * (radius / found.size.clamp(min=1e-12)).clamp(max=BEYOND)[:, None]
    return torch.where((found.size <= radius)[:, None].to(x.device), x + further.to(x), x)


def attacked(by: Plugin, net: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
    """What one attack makes of the samples, checked: of their shape, within the radius."""  # (n, d)
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
