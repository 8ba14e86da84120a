"""What the stages on MNIST-CIFAR share: the networks that are trained, their names, and what they see."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.nets import imagenet
from brittle.pictures.mnist_cifar_params import MnistCifar
from brittle.worlds.mnist_cifar import Blocks
from brittle.worlds.pixels import shown


@dataclass(frozen=True)
class PictureJob:
    """A network: what it is trained on, and how."""

    kind: str  # standard, adversarial, or alone: on the pictures without the digits
    world: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.world}.{self.seed}"


def seeds(p: MnistCifar, model: str, world: str) -> list[int]:
    """The seeds for a pair of model and world: only the first, unless `more_seeds` names the pair."""
    if f"{model}@{world}" in p.skip:
        return []
    return p.seeds if f"{model}@{world}" in p.more_seeds else p.seeds[:1]


def jobs(p: MnistCifar, model: str) -> list[PictureJob]:
    worlds = [(world, seed) for world in p.worlds for seed in seeds(p, model, world)]
    found = [PictureJob("standard", world, seed) for world, seed in worlds]
    for kind in ("adversarial", "alone"):
        if model in getattr(p, kind).models:
            found.append(PictureJob(kind, *worlds[0]))
    return found


def seen_by(kind: str, x: Tensor) -> Tensor:
    """The part of the samples that such a network sees."""  # (n, 64, 32, 3)
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
