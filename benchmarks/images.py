"""Pictures per second of clean and adversarial training of AlexNet, against a plain torchvision script.

    python benchmarks/images.py
    python benchmarks/images.py --tiny    # 32 pictures

Both sides train the same network from the same weights for one epoch over the same pictures with the same SGD, crops
and flips (from their own random numbers), and alternate in one run. The baseline is what one would write first: a
DataLoader over PIL pictures with torchvision's transforms, ordinary convolutions, PGD by torch.autograd.grad with
respect to the pictures alone. What makes the difference: bytes on the device, cropped and flipped an epoch at a time;
channels last; and AlexNet's layers in equivalent, faster forms (nets/small_map.py), which an attack can reuse.

The pictures are random bytes: speed does not depend on what they show.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take

# isort: split
import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

from bars import bar
from brittle.attacks.image_pgd import Attacker
from brittle.core.device import pick
from brittle.core.rng import rng
from brittle.nets.alexnet import AlexNet
from brittle.nets.image_layers import MEAN, STD
from brittle.train.image_sgd import ImagePlan, train
from brittle.worlds.vision import torchvision
from command import Command

EPS, STEPS = 8 / 255, 7  # Madry et al.'s, as in FP §8
DESCENT = {"lr": 0.02, "momentum": 0.9, "weight_decay": 5e-4}


@dataclass(frozen=True)
class Size:
    pictures: int
    batch: int
    rounds: int


FULL, TINY = Size(1920, 128, 2), Size(32, 16, 1)


class Pictures(Dataset):
    """Pictures in memory, as in torchvision's own CIFAR10."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        t = torchvision.transforms
        self.x, self.y = x, y
        self.transform = t.Compose([t.RandomCrop(32, padding=4), t.RandomHorizontalFlip(), t.ToTensor()])

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return self.transform(Image.fromarray(self.x[i])), int(self.y[i])


class Normalise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x - MEAN) / STD


def plain_alexnet() -> nn.Sequential:
    """The same network, built from torch's own layers."""
    parts: list[nn.Module] = [Normalise(), nn.Conv2d(3, 64, 11, stride=4, padding=5), nn.ReLU(True), nn.MaxPool2d(2)]
    parts += [nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(True), nn.MaxPool2d(2)]
    for before, after in ((192, 384), (384, 256), (256, 256)):
        parts += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(True)]
    return nn.Sequential(*parts, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))


def perturbed(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    delta = EPS * (2 * torch.rand_like(x) - 1)
    for _ in range(STEPS):
        delta.requires_grad_()
        (g,) = torch.autograd.grad(cross_entropy(net(x + delta), y), delta)
        delta = (delta.detach() + 2 * EPS / STEPS * g.sign()).clamp(-EPS, EPS)
        delta = (x + delta).clamp(0, 1) - x
    return x + delta


def script(x: np.ndarray, y: np.ndarray, where: torch.device, adversarial: bool, *, batch: int, workers: int) -> None:
    net = plain_alexnet().to(where)
    descent = torch.optim.SGD(net.parameters(), **DESCENT)
    for pictures, truth in DataLoader(Pictures(x, y), batch, shuffle=True, num_workers=workers):
        some, labels = pictures.to(where), truth.to(where)
        shown = perturbed(net, some, labels) if adversarial else some
        descent.zero_grad()
        cross_entropy(net(shown), labels).backward()
        descent.step()


def ours(x: np.ndarray, y: np.ndarray, where: torch.device, adversarial: bool, *, batch: int, **speed: Any) -> None:
    net = AlexNet().to(where, memory_format=torch.channels_last)
    net.draw(rng(0, "benchmark"))
    attack = Attacker("linf", EPS, STEPS) if adversarial else None
    plan = ImagePlan(epochs=1, batch=batch, augment=True, **DESCENT, **speed)
    train(net, torch.from_numpy(x).to(where), torch.from_numpy(y).to(where), plan, 0, attack)


def rate(side: Callable[..., None], x: np.ndarray, y: np.ndarray, where: torch.device, adversarial: bool) -> float:
    """Pictures per second."""
    start = time.perf_counter()
    side(x, y, where, adversarial)
    if where.type == "cuda":
        torch.cuda.synchronize()
    return len(x) / (time.perf_counter() - start)


def main(size: Size) -> None:
    where, draws, n, batch = pick("auto"), rng(0, "benchmark pictures"), size.pictures, size.batch
    x, y = draws.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), draws.integers(0, 10, n)
    print(f"AlexNet, {n} pictures, batch {batch}, {where.type}, {torch.get_num_threads()} threads")
    sides = {
        "script": partial(script, batch=batch, workers=0),
        "script with 2 workers": partial(script, batch=batch, workers=2),
        "brittle": partial(ours, batch=batch),
    }
    for adversarial in (False, True):
        best = dict.fromkeys(sides, 0.0)
        for _ in range(size.rounds):
            for name, side in sides.items():
                best[name] = max(best[name], rate(side, x, y, where, adversarial))
        baseline = max(value for name, value in best.items() if name != "brittle")
        rates = ", ".join(f"{name} {value:.0f}" for name, value in best.items())
        kind = f"against PGD, {STEPS} steps" if adversarial else "clean"
        print(f"{kind}, pictures per second: {rates}")
        bar(f"{kind}: faster than the faster script", best["brittle"] / baseline)
    # Whether these are faster depends on the machine; `images.precision` and `images.compile` turn them on.
    few = (x, y) if where.type == "cuda" else (x[: 2 * batch], y[: 2 * batch])
    options: dict[str, dict[str, Any]] = {"float32": {}, "bfloat16": {"precision": "bfloat16"}}
    if where.type == "cuda":
        options["compiled"] = {"compile": True}
    found = {}
    for name, speed in options.items():
        for _ in range(2):  # the first time is for compiling
            found[name] = rate(partial(ours, batch=batch, **speed), *few, where, False)
    print("clean, on fewer pictures: " + ", ".join(f"{name} {value:.0f}" for name, value in found.items()))
    for name in list(found)[1:]:
        bar(f"clean: {name} faster than float32", found[name] / found["float32"])


if __name__ == "__main__":
    main(TINY if Command(__doc__).parse_args().tiny else FULL)
