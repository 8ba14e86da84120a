"""What the stages on MNIST-CIFAR share: the worlds, the networks that are trained on them, and their names."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.nets import imagenet
from brittle.params.mnist_cifar import MnistCifar
from brittle.rng import rng
from brittle.stages import pictures
from brittle.train.pictures import shown
from brittle.worlds import mnist_cifar
from brittle.worlds.mnist_cifar import Blocks


@dataclass(frozen=True)
class Job:
    """A network: what it is trained on, and how."""

    kind: str  # standard, adversarial, or alone: on the pictures without the digits
    world: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.world}.{self.seed}"


def seeds(p: MnistCifar, model: str, world: str) -> list[int]:
    """The first alone, unless `more_seeds` names the pair."""
    if f"{model}@{world}" in p.skip:
        return []
    return p.seeds if f"{model}@{world}" in p.more_seeds else p.seeds[:1]


def jobs(p: MnistCifar, model: str) -> list[Job]:
    worlds = [(world, seed) for world in p.worlds for seed in seeds(p, model, world)]
    found = [Job("standard", world, seed) for world, seed in worlds]
    for kind in ("adversarial", "alone"):
        if model in getattr(p, kind).models:
            found.append(Job(kind, *worlds[0]))
    return found


@dataclass(frozen=True)
class Source:
    """The digits and pictures of one split, to draw worlds from."""

    split: str
    blocks: Blocks
    digit_labels: Tensor
    picture_labels: Tensor

    def draw(self, world: str, n: int) -> tuple[Tensor, Tensor]:
        """Pairs and labels; the first of n are those of a smaller n's distribution."""
        labels = (y.cpu().numpy() for y in (self.digit_labels, self.picture_labels))
        pairs, y = mnist_cifar.draw(world, *labels, n, rng(0, f"mnist_cifar {self.split} {world}"))
        return pairs.to(self.digit_labels.device), y.to(self.digit_labels.device)


def load(device: torch.device) -> dict[str, Source]:
    digits, scenes = (pictures.load(name, device) for name in ("mnist", "cifar10"))
    return {
        split: Source(split, Blocks(digits[split].x, scenes[split].x), digits[split].y, scenes[split].y)
        for split in ("train", "test")
    }


def seen_by(kind: str, x: Tensor) -> Tensor:
    """What such a network sees of samples."""  # (n, 64, 32, 3)
    return x[:, 32:].contiguous() if kind == "alone" else x


def build(p: MnistCifar, model: str, seed: int, device: torch.device) -> imagenet.Binary:
    return imagenet.build(model, seed, p.stem, p.size).to(device, memory_format=torch.channels_last)


def path(model: str) -> str:
    return f"models/mnist_cifar/{model}.safetensors"


def table(model: str) -> str:
    return f"plots/mnist_cifar/{model}.csv"


ROWS = 250  # samples evaluated at a time


def scores(net: torch.nn.Module, kind: str, blocks: Blocks, pairs: Tensor) -> Tensor:
    """The logits of samples given as pairs."""  # (n, 2) -> (n,)
    with torch.no_grad():
        return torch.cat([net(shown(seen_by(kind, blocks.show(some)))) for some in pairs.split(ROWS)])
