"""Attacks on networks for pictures, built from the same pieces as the other attacks; pixels stay in [0, 1].

`Attacker` is what FP §8 trains against: Madry et al.'s PGD, and with noise Salman et al.'s SmoothAdvPGD (footnote 14),
whose perturbation raises the loss of the *mean* prediction over noisy copies of a picture. `strongest` is what robust
accuracy is measured with: several losses, several starts, many steps, and no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid

from brittle.attacks.pieces import NORMS

ROWS = 250  # pictures attacked at a time


@contextmanager
def fixed(net: nn.Module):  # noqa: ANN201
    """Freeze the parameters: inside, gradients reach the pictures only, which takes two thirds of the work."""
    learning = [p for p in net.parameters() if p.requires_grad]
    try:
        for p in learning:
            p.requires_grad_(False)
        yield
    finally:
        for p in learning:
            p.requires_grad_(True)


@contextmanager
def still(net: nn.Module):  # noqa: ANN201
    """Switch to eval mode: inside, there is no dropout, and batch normalisation neither mixes pictures nor learns."""
    modes = {part: part.training for part in net.modules()}
    try:
        net.eval()
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


@dataclass(frozen=True)
class Attacker:
    """PGD in a ball, against a picture or against noisy copies of it; called by training."""

    norm: str
    eps: float
    steps: int
    sigma: float = 0.0  # standard deviation of the noise
    copies: int = 1  # number of noisy copies of each picture
    warmup: float = 0.0  # epochs in which the radius grows from 0

    @property
    def step(self) -> float:
        """The step length relative to the radius; all steps together cross the ball once (Salman et al. 2019)."""
        return 2 / self.steps

    def __call__(
        self, net: nn.Module, x: Tensor, y: Tensor, epoch: float, noise: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """The pictures to train on, one block per noisy copy, and their labels."""  # (n, 3, h, w) -> (n·k, ...)
        copies = self.copies if self.sigma else 1
        many, truth = _copied(x, copies), y.repeat(copies)
        if self.sigma:
            many = many + self.sigma * torch.randn(many.shape, generator=noise, device=x.device)
        eps = self.eps * min(1.0, epoch / self.warmup if self.warmup else 1.0)
        ball, radius = NORMS[self.norm], x.new_full((len(x),), eps)
        delta = torch.zeros_like(_rows(x))
        if self.norm == "linf":
            delta = eps * (2 * torch.rand(delta.shape, generator=noise, device=x.device) - 1)
        with fixed(net), still(net):
            for _ in range(self.steps if eps > 0 else 0):
                moved = _pictures(delta, x).requires_grad_()
                loss = _mean_loss(net(many + _copied(moved, copies)), truth, copies)
                (g,) = torch.autograd.grad(loss, moved)
                delta = ball.project(delta + self.step * eps * ball.normalise(_rows(g)), radius)
                delta = _rows((x + _pictures(delta, x)).clamp(0, 1) - x)
        return many + _copied(_pictures(delta, x), copies), truth


def _copied(x: Tensor, copies: int) -> Tensor:
    """One block for each copy; x.repeat would lose the channels-last layout."""
    return torch.cat([x] * copies) if copies > 1 else x


def _rows(x: Tensor) -> Tensor:
    """Each picture as a row, channels last as in memory, so that nothing is copied."""  # -> (n, h·w·3)
    return x.permute(0, 2, 3, 1).reshape(len(x), -1)


def _pictures(rows: Tensor, like: Tensor) -> Tensor:
    """Rows as pictures of the shape of `like`."""
    n, colours, height, width = like.shape
    return rows.detach().view(n, height, width, colours).permute(0, 3, 1, 2)


def _mean_loss(logits: Tensor, y: Tensor, copies: int) -> Tensor:
    """-Σ log of the label's mean probability over the copies, up to a constant."""
    right = logsigmoid(y * logits) if logits.ndim == 1 else log_softmax(logits, 1).gather(1, y[:, None])[:, 0]
    return -right.view(copies, -1).logsumexp(0).sum()


def named(name: str, steps: int, copies: int = 1, warmup: float = 0.0) -> Attacker:
    """The attacker of this name: linf-8 is the cube of 8/255, l2-1-0.25 the ball of radius 1 with noise of 0.25."""
    norm, eps, *sigma = name.split("-")
    if norm == "linf":
        return Attacker("linf", int(eps) / 255, steps, warmup=warmup)
    return Attacker("l2", float(eps), steps, float(sigma[0]) if sigma else 0.0, copies, warmup)


# --- What robust accuracy is measured with


def margin(logits: Tensor, y: Tensor) -> Tensor:
    """How far the label is ahead of the best other one: at most 0 where the network is wrong."""  # (n, k), (n,)
    if logits.ndim == 1:
        return y * logits
    right = logits.gather(1, y[:, None])[:, 0]
    return right - logits.scatter(1, y[:, None], -torch.inf).amax(1)


def _cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    return -_mean_loss(logits, y, 1)


def _margins(logits: Tensor, y: Tensor) -> Tensor:
    return margin(logits, y).sum()


LOSSES: Sequence[Callable[[Tensor, Tensor], Tensor]] = (_margins, _cross_entropy)  # the attack lowers each


def strongest(
    net: nn.Module, x: Tensor, y: Tensor, norm: str, eps: float, steps: int, restarts: int, draws: torch.Generator
) -> Tensor:
    """The δ with the smallest margin found by PGD with each of the losses, from x itself and from random starts.

    Steps shrink towards 0, so that the first ones cross the ball and the last ones settle. Pictures that are already
    misclassified are left alone: what counts is whether a picture can be misclassified at all.
    """  # (n, 3, h, w), (n,) -> (n, 3, h, w)
    with fixed(net), still(net):
        found = [
            _strongest(net, *part, norm, eps, steps, restarts, draws)
            for part in zip(x.split(ROWS), y.split(ROWS), strict=True)
        ]
    return torch.cat(found)


def _strongest(
    net: nn.Module, x: Tensor, y: Tensor, norm: str, eps: float, steps: int, restarts: int, draws: torch.Generator
) -> Tensor:
    ball, best = NORMS[norm], torch.zeros_like(x)
    longest = max(0.4, 2 / (steps + 1)) * eps  # fewer than 4 steps must be longer to reach the edge of the ball
    with torch.no_grad():
        lowest = margin(net(x), y)
    for start in range(restarts):
        for loss in LOSSES:
            left = (lowest > 0).nonzero()[:, 0]
            if len(left) == 0:
                return best
            some, truth, radius = x[left], y[left], x.new_full((len(left),), eps)
            nearest, low = best[left], lowest[left]
            delta = torch.zeros_like(some)
            if start:
                noise = torch.randn(_rows(some).shape, generator=draws, device=x.device)
                delta = _pictures(ball.project(eps * ball.normalise(noise), radius), some)
                delta = (some + delta).clamp(0, 1) - some
            for step in range(steps + 1):
                moved = delta.detach().requires_grad_(step < steps)
                with torch.set_grad_enabled(step < steps):
                    logits = net(some + moved)
                now = margin(logits.detach(), truth)
                better = now < low
                nearest = torch.where(better[:, None, None, None], moved.detach(), nearest)
                low = torch.where(better, now, low)
                if step < steps:
                    (g,) = torch.autograd.grad(loss(logits, truth), moved)
                    length = longest * (1 - step / steps)
                    step_to = ball.project(_rows(moved) - length * ball.normalise(_rows(g)), radius)
                    delta = (some + _pictures(step_to, some)).clamp(0, 1) - some
            best[left], lowest[left] = nearest, low
    return best


def accuracy(net: nn.Module, x: Tensor, y: Tensor, delta: Tensor | None = None) -> float:
    """The share of the pictures, moved by δ if given, that the network labels correctly."""
    with torch.no_grad(), still(net):
        moved = x if delta is None else x + delta
        parts = zip(moved.split(ROWS), y.split(ROWS), strict=True)
        return sum(int((margin(net(some), truth) > 0).sum()) for some, truth in parts) / len(x)
