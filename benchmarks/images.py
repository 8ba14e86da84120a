"""Pictures per second of training, against a plain torchvision script and against plain convolutions.

    python benchmarks/images.py
    python benchmarks/images.py --tiny    # 32 pictures

All sides train the same network from the same weights for one epoch over the same pictures with the same SGD, and
alternate in one run. The script is what one would write first: a DataLoader over PIL pictures with torchvision's
transforms, ordinary convolutions, PGD by torch.autograd.grad with respect to the pictures alone; its crops and flips
come from its own random numbers. What makes the difference: bytes on the device, cropped and flipped an epoch at a
time; channels last; and convolutions in equivalent, faster forms (nets/small_map.py), part of which an attack computes
once for all its steps.

Two more baselines are our own code with plainer convolutions. AlexNet: each later layer as one dense matrix, with a
block for each pair of pixels, also kept during an attack. MobileNetV2 and ResNet50, which SB trains on a digit above a
picture (64 × 32 pixels): torch's own convolutions, and memory that goes back to the system. A profile of theirs on one
core of an AMD EPYC: oneDNN's convolutions take 68 and 80 % of a step with the stems for ImageNet. With those for CIFAR
maps are larger, and less can be saved: of MobileNetV2's step 23 % go into batch normalisation and 10 % into ReLU6's
gradient, which wait for memory, 18 % into depthwise convolutions, and 43 % into products that are as fast as the core
multiplies; three quarters of ResNet50's go into products and convolutions of 3 × 3 at nine tenths of that speed.

The pictures are random bytes: speed does not depend on what they show.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
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
from brittle.core.device import keep_freed_memory, pick
from brittle.core.rng import rng
from brittle.nets import imagenet
from brittle.nets.alexnet import AlexNet
from brittle.nets.image_layers import MEAN, STD
from brittle.nets.small_map import QuickConv
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
    few: int  # pictures for SB's networks


FULL, TINY = Size(1920, 128, 2, 192), Size(32, 16, 1, 12)


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


def ours(
    x: np.ndarray,
    y: np.ndarray,
    where: torch.device,
    adversarial: bool,
    *,
    batch: int,
    plain: bool = False,
    **speed: Any,
) -> None:
    net = AlexNet().to(where, memory_format=torch.channels_last)
    for layer in net.features[1:]:
        layer.__class__ = OneMatrix if plain else QuickConv
    net.draw(rng(0, "benchmark"))
    attack = Attacker("linf", EPS, STEPS) if adversarial else None
    plan = ImagePlan(epochs=1, batch=batch, augment=True, **DESCENT, **speed)
    train(net, torch.from_numpy(x).to(where), torch.from_numpy(y).to(where), plan, 0, attack)


class OneMatrix(QuickConv):
    """A layer on a small map as one dense matrix, each entry of which is one of the kernel's or 0."""

    def _small_map(self, x: Tensor) -> Tensor:
        n, into, h, w = x.shape
        y = x.permute(0, 2, 3, 1).reshape(n, h * w * into) @ self._products(h, w)
        return y.view(n, h, w, self.out_channels).permute(0, 3, 1, 2) + self.bias[:, None, None]

    def _spread(self, weight: Tensor, h: int, w: int) -> Tensor:
        rows, columns, which = entries(h, w, *self.kernel_size)
        blocks = weight.permute(2, 3, 1, 0).reshape(-1, self.in_channels, self.out_channels)
        matrix = weight.new_zeros(h * w, h * w, self.in_channels, self.out_channels)
        matrix = matrix.index_put((rows, columns), blocks[which])
        return matrix.permute(0, 2, 1, 3).reshape(h * w * self.in_channels, h * w * self.out_channels)


@cache
def entries(h: int, w: int, down: int, across: int) -> tuple[Tensor, Tensor, Tensor]:
    """(from, to, entry of the kernel) for each pair of pixels that the kernel connects."""
    pixels = [(i, j) for i in range(h) for j in range(w)]
    found = [
        (q, p, (y - i + down // 2) * across + x - j + across // 2)
        for p, (i, j) in enumerate(pixels)
        for q, (y, x) in enumerate(pixels)
        if abs(y - i) <= down // 2 and abs(x - j) <= across // 2
    ]
    return tuple(torch.tensor(found).T)


def sb(name: str, stem: str, x: np.ndarray, y: np.ndarray, where: torch.device, *, quick: bool, batch: int) -> None:
    """One of SB's networks, which tells one class from another."""
    net = imagenet.build(name, 0, stem)
    for part in net.modules():
        if type(part) is QuickConv and not quick:
            part.__class__ = nn.Conv2d
    plan = ImagePlan(epochs=1, batch=batch, **DESCENT)
    tall, labels = np.concatenate([x, x], 1), 2 * (y % 2) - 1
    net = net.to(where, memory_format=torch.channels_last)
    train(net, torch.from_numpy(tall).to(where), torch.from_numpy(labels).to(where), plan, 0)


def rate(side: Callable[..., None], x: np.ndarray, y: np.ndarray, where: torch.device, *more: bool) -> float:
    """Pictures per second."""
    start = time.perf_counter()
    side(x, y, where, *more)
    if where.type == "cuda":
        torch.cuda.synchronize()
    return len(x) / (time.perf_counter() - start)


def of_sb(size: Size, x: np.ndarray, y: np.ndarray, where: torch.device) -> None:
    """Compare SB's networks; what is freed goes back to the system until all plain ones have run."""
    cases = [(name, stem) for stem in ("imagenet", "cifar") for name in ("mobilenet_v2", "resnet50")]
    found: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
    for quick in (False, True):
        if quick:
            keep_freed_memory()
        for name, stem in cases:
            few, batch = size.few // (1 if stem == "imagenet" else 3), size.batch // 2
            side = partial(sb, name, stem, quick=quick, batch=min(batch, few))
            found[name, stem].append(max(rate(side, x[:few], y[:few], where) for _ in range(1 + size.rounds)))
    for (name, stem), (plain, quick) in found.items():
        print(f"{name}, stem for {stem}, clean, pictures per second: plain {plain:.1f}, brittle {quick:.1f}")
        told = f"{name}, stem for {stem}: faster than with torch's convolutions"
        bar(told, quick / plain, at_least=1.3 if stem == "imagenet" else None)


def main(size: Size) -> None:
    where, draws, n, batch = pick("auto"), rng(0, "benchmark pictures"), size.pictures, size.batch
    x, y = draws.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), draws.integers(0, 10, n)
    print(f"AlexNet, {n} pictures, batch {batch}, {where.type}, {torch.get_num_threads()} threads")
    sides = {
        "script": partial(script, batch=batch, workers=0),
        "script with 2 workers": partial(script, batch=batch, workers=2),
        "brittle with one matrix a layer": partial(ours, batch=batch, plain=True),
        "brittle": partial(ours, batch=batch),
    }
    for adversarial in (False, True):
        best = dict.fromkeys(sides, 0.0)
        for _ in range(size.rounds):
            for name, side in sides.items():
                best[name] = max(best[name], rate(side, x, y, where, adversarial))
        baseline = max(value for name, value in best.items() if not name.startswith("brittle"))
        rates = ", ".join(f"{name} {value:.0f}" for name, value in best.items())
        kind = f"against PGD, {STEPS} steps" if adversarial else "clean"
        print(f"{kind}, pictures per second: {rates}")
        bar(f"{kind}: faster than the faster script", best["brittle"] / baseline)
        gain = best["brittle"] / best["brittle with one matrix a layer"]
        bar(f"{kind}: faster than one matrix a layer", gain, at_least=1.3 if adversarial else None)
    of_sb(size, x, y, where)
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
