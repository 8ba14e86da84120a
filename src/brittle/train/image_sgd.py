"""SGD on pictures: any network, any loss, any attack, the data on the device as bytes.

Pictures stay uint8 with the channels last, the fastest layout for convolutions; a whole epoch is cropped and flipped
in one gather instead of picture by picture. All randomness of an epoch comes from its number, so that a training run
resumed after any epoch reaches the same weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from brittle.core.rng import rng
from brittle.nets.weights import flat, restore
from brittle.worlds.pixels import shown

# Network, pictures, labels, epochs so far, generator -> the pictures and labels to train on instead
Attack = Callable[[nn.Module, Tensor, Tensor, float, torch.Generator], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class ImagePlan:
    epochs: int
    batch: int
    lr: float
    momentum: float
    weight_decay: float
    drops: tuple[int, ...] = ()  # after these epochs the learning rate is multiplied by `factor`
    factor: float = 0.1
    target: float = 0.0  # training stops after an epoch with a smaller mean loss
    augment: bool = False  # shifted by up to 4 pixels, and mirrored half of the time
    precision: str = "float32"  # or bfloat16, in convolutions and products of matrices; weights stay float32
    compile: bool = False

    def rate(self, epoch: int) -> float:
        return self.lr * self.factor ** sum(epoch >= drop for drop in self.drops)


@dataclass
class Progress:
    """The state of a training run: everything that the next epoch depends on."""

    epoch: int
    weights: dict[str, np.ndarray]
    momenta: dict[str, np.ndarray]
    losses: list[float]


def loss_of(logits: Tensor, y: Tensor) -> Tensor:
    """Cross entropy; a single logit per picture is that of label +1."""
    if logits.ndim == 1:
        return binary_cross_entropy_with_logits(logits, (y > 0).to(logits.dtype))
    return cross_entropy(logits, y)


def augmented(x: Tensor, draws: np.random.Generator, reach: int = 4) -> Tensor:
    """Each picture shifted by up to `reach` pixels, black outside, and mirrored half of the time."""  # (n, h, w, 3)
    n, h, w, _ = x.shape
    corner = torch.from_numpy(draws.integers(0, 2 * reach + 1, (2, n, 1))).to(x.device)
    mirror = torch.from_numpy(draws.random((n, 1)) < 0.5).to(x.device)
    rows, columns = torch.arange(h, device=x.device) + corner[0], torch.arange(w, device=x.device) + corner[1]
    columns = torch.where(mirror, columns.flip(1), columns)
    padded = torch.nn.functional.pad(x, (0, 0, reach, reach, reach, reach))
    which = torch.arange(n, device=x.device)
    return padded[which[:, None, None], rows[:, :, None], columns[:, None, :]]


def train(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    plan: ImagePlan,
    seed: int,
    attack: Attack | None = None,
    start: Progress | None = None,
    each_epoch: Callable[[Callable[[], Progress]], bool | None] = lambda now: None,
    each_batch: Callable[[], None] = lambda: None,
    purpose: str = "",
) -> list[float]:
    """Train the network in place; return the mean loss of every epoch. Each `purpose` has its own random numbers.

    each_epoch: may ask for the state that training can be resumed from; only then is it copied from the device. If it
    says True, training ends.
    """
    learning = {name: p for name, p in net.named_parameters() if p.requires_grad}
    fused = {"fused": True} if x.device.type == "cuda" else {}
    optimiser = torch.optim.SGD(learning.values(), plan.lr, plan.momentum, weight_decay=plan.weight_decay, **fused)
    losses: list[float] = []
    first = 0
    if start is not None:
        first, losses = start.epoch, list(start.losses)
        restore(net, start.weights)
        for name, p in learning.items():
            if name in start.momenta:
                # In the layout of its weights (channels last), as training leaves it: fused SGD takes no other.
                optimiser.state[p]["momentum_buffer"] = torch.empty_like(p).copy_(torch.from_numpy(start.momenta[name]))

    def done() -> bool:
        """Whether the loss is below the target, at the attack's full radius."""
        return bool(losses) and losses[-1] < plan.target and len(losses) > getattr(attack, "warmup", 0)

    if done():
        return losses
    quick = torch.compile(net) if plan.compile else net
    for epoch in range(first, plan.epochs):
        for group in optimiser.param_groups:
            group["lr"] = plan.rate(epoch)
        draws = rng(seed, f"{purpose}epoch {epoch}")
        with torch.random.fork_rng():  # dropout's random numbers come from the epoch, too
            losses.append(_epoch(quick, x, y, plan, draws, epoch, attack, optimiser, each_batch))
        enough = each_epoch(partial(_progress, net, learning, optimiser, list(losses)))
        if not np.isfinite(losses[-1]) or done() or enough:
            break
    return losses


def _progress(
    net: nn.Module, learning: dict[str, nn.Parameter], optimiser: torch.optim.Optimizer, losses: list[float]
) -> Progress:
    momenta = {
        name: state["momentum_buffer"].cpu().numpy().copy()
        for name, p in learning.items()
        if (state := optimiser.state[p]).get("momentum_buffer") is not None
    }
    return Progress(len(losses), flat(net), momenta, losses)


def _epoch(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    plan: ImagePlan,
    draws: np.random.Generator,
    epoch: int,
    attack: Attack | None,
    optimiser: torch.optim.Optimizer,
    each_batch: Callable[[], None],
) -> float:
    noise = torch.Generator(x.device).manual_seed(int(draws.integers(2**62)))
    torch.manual_seed(noise.initial_seed())
    order = torch.from_numpy(draws.permutation(len(x))).to(x.device)
    pictures, labels = x[order], y[order]
    if plan.augment:
        pictures = augmented(pictures, draws)
    total, batches = torch.zeros((), device=x.device), len(x) // plan.batch or 1
    net.train()
    for number in range(batches):  # an incomplete last batch is left out: its statistics would come from few pictures
        rows = slice(number * plan.batch, (number + 1) * plan.batch)
        some, truth = shown(pictures[rows]), labels[rows]
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=plan.precision == "bfloat16"):
            if attack is not None:
                some, truth = attack(net, some, truth, epoch + number / batches, noise)
            loss = loss_of(net(some), truth)
        loss.backward()
        optimiser.step()
        total += loss.detach()
        each_batch()
    return float(total / batches)
