"""FP's attacks on its sparse coding model: the dense direction, a random one, FGM, and PGD with softened starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from brittle.attacks.fgm import fgm
from brittle.attacks.pgd import pgd
from brittle.attacks.pieces import NORMS
from brittle.core.rng import normal32, rng
from brittle.nets.symmetric import Symmetric

Scores = Callable[[Tensor], Tensor]  # (n, d) -> (n,)
PGD_STEPS = 20  # of the attack that robust accuracy is reported under, which has two starts
SOFTER = 10  # its second start is found on a network this many times smoother


def perturbed(
    f: Scores, x: Tensor, y: Tensor, dense: Tensor, norm: str, tau: float, softer: Scores | None = None
) -> dict[str, Tensor]:
    """The perturbation δ of every attack within τ: dense (it needs no network), random of the same size, FGM, PGD.

    A purified network hides its gradient: words that are off have none, so PGD cannot see which of them it could turn
    on. Therefore PGD also starts from where it ends on a `softer` network, in which no neuron is completely off.
    """  # each (n, d)
    steepest = NORMS[norm].normalise
    noise = torch.from_numpy(normal32(x.shape, rng(0, "sparse noise"))).to(x.device)
    noise = tau * steepest(noise)
    single = fgm(gradient(f, x), y, norm, tau)
    start = pgd(softer, x, y, norm, tau, PGD_STEPS // 2) if softer else noise
    twice = [pgd(f, x, y, norm, tau, PGD_STEPS)]
    twice += [pgd(f, x, y, norm, tau, PGD_STEPS, step_size=2 / PGD_STEPS, start=start)]
    scores = [y * f(x + delta).detach() for delta in (single, *twice)]
    first = torch.where((scores[0] < scores[1])[:, None], single, twice[0])
    worst = torch.where((scores[2] < torch.minimum(scores[0], scores[1]))[:, None], twice[1], first)
    return {"dense": -tau * y[:, None] * steepest(dense[None]), "random": noise, "fgm": single, "pgd": worst}


def soft(net: Symmetric) -> Symmetric:
    """The network with the same weights and a much smoother ReLU."""
    return replace(net, sigma=SOFTER * max(net.sigma, 0.05 * net.b))


def gradient(f: Scores, x: Tensor) -> Tensor:
    """∇_x f(x_i)."""  # (n, d) -> (n, d)
    leaf = x.detach().requires_grad_()
    return torch.autograd.grad(f(leaf).sum(), leaf)[0]


@torch.no_grad()
def accuracy(f: Scores, x: Tensor, y: Tensor, delta: Tensor | float = 0.0) -> float:
    """The share of the samples that keep their label under δ."""
    return float((y * f(x + delta) > 0).double().mean())
