"""What the stages on CIFAR-10 share: the networks of FP §8, their trainings and their names."""

from __future__ import annotations

import numpy as np
import torch

from brittle.attacks.image_pgd import Attacker
from brittle.attacks.image_pgd import named as attacker_named
from brittle.core.rng import rng
from brittle.nets import weights
from brittle.nets.alexnet import AlexNet
from brittle.nets.image_layers import Layered
from brittle.nets.pre_resnet import PreResNet
from brittle.pictures import splits
from brittle.pictures.cifar10_params import Cifar10, Stretch, deepest_layer
from brittle.pictures.splits import Split
from brittle.train.image_sgd import ImagePlan

ROBUST = "robust"  # the network that is purified: trained against the first attacker, from the clean one


def build(name: str, device: torch.device) -> Layered:
    if name == "alexnet":
        net: Layered = AlexNet()
    else:
        depth, *widen = (int(part) for part in name.split("-")[1:])
        net = PreResNet(depth, *widen)
    return net.to(device, memory_format=torch.channels_last)


def restored(net: str, arrays: dict[str, np.ndarray], name: str, device: torch.device) -> Layered:
    """A network with the weights stored under this name."""
    return weights.take(build(net, device), arrays, name, path(net))


def copied(net: str, other: Layered) -> Layered:
    """A network with the same weights, nothing frozen."""
    again = build(net, next(other.parameters()).device)
    weights.restore(again, weights.flat(other))
    return again


def draw(p: Cifar10, net: str, network: Layered, purpose: str, seed: int, since: int = 0) -> None:
    """Draw random weights for the layers from number `since` on."""
    initial = p.alexnet.initial if net == "alexnet" else "he"
    network.draw(rng(seed, f"{net} {purpose}"), since=since, first=p.first, initial=initial)


def first_pictures(p: Cifar10, device: torch.device) -> tuple[Split, Split]:
    """The first pictures of each split, to train on and to test on."""
    data = splits.load_splits("cifar10", device)
    return tuple(Split(data[split].x[:n], data[split].y[:n]) for split, n in (("train", p.samples), ("test", p.test)))


def plan(p: Cifar10, net: str, stretch: Stretch) -> ImagePlan:
    rate = p.alexnet if net == "alexnet" else p.resnet
    drops = tuple(stretch.drops)
    return ImagePlan(
        stretch.epochs, p.batch, rate.lr * stretch.rate, p.momentum, rate.weight_decay, drops, p.factor, augment=True
    )


def attack(p: Cifar10, name: str, stretch: Stretch) -> Attacker:
    """An attacker whose radius grows to its full size over the first part of the stretch."""
    steps = p.perturb.l2_steps if name.startswith("l2") else p.perturb.linf_steps
    return attacker_named(name, steps, p.perturb.copies, p.perturb.warmup * stretch.epochs)


def ball(name: str) -> tuple[str, float]:
    """The norm and the radius of an attacker."""
    attacker = attacker_named(name, 1)
    return attacker.norm, attacker.eps


def within(net: str, layers: list[int]) -> list[int]:
    """Those of the layers that the network has."""
    return [layer for layer in layers if layer <= deepest_layer(net)]


def path(net: str) -> str:
    return f"models/cifar10/{net}.safetensors"


def layers_path(net: str) -> str:
    return f"models/cifar10_layers/{net}.safetensors"


def stage1(p: Cifar10) -> str:
    """The network of §8.2's stage 1: adversarial training from random weights, against the first attacker."""
    return f"{p.attackers[0]}.random"


def networks(p: Cifar10) -> list[str]:
    """The networks of one seed: the path random → clean → robust → clean again, its control, and other attackers."""
    others = [f"{name}.clean" for name in p.attackers[1:]]
    return ["init", "clean", ROBUST, "control", "again", *others, *(f"{name}.random" for name in p.attackers)]
