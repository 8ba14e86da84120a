"""What the stages on CIFAR-10 share: the networks of FP §8, their trainings and their names."""

from __future__ import annotations

import torch

from brittle.attacks.pictures import Attacker
from brittle.attacks.pictures import named as attacker_named
from brittle.nets.alexnet import AlexNet
from brittle.nets.pictures import Layered
from brittle.nets.pre_resnet import PreResNet
from brittle.params.cifar10 import Cifar10, Stretch, deepest_layer
from brittle.stages import pictures
from brittle.stages.pictures import Split
from brittle.train.pictures import Plan

ROBUST = "robust"  # the network that is purified: trained against the first attacker, from the clean one


def build(name: str, device: torch.device) -> Layered:
    if name == "alexnet":
        net: Layered = AlexNet()
    else:
        depth, *widen = (int(part) for part in name.split("-")[1:])
        net = PreResNet(depth, *widen)
    return net.to(device, memory_format=torch.channels_last)


def load(p: Cifar10, device: torch.device) -> tuple[Split, Split]:
    """The pictures to train on and to test on: the first ones."""
    data = pictures.load("cifar10", device)
    return tuple(Split(data[split].x[:n], data[split].y[:n]) for split, n in (("train", p.samples), ("test", p.test)))


def plan(p: Cifar10, net: str, stretch: Stretch) -> Plan:
    rate = p.alexnet if net == "alexnet" else p.resnet
    drops = tuple(stretch.drops)
    return Plan(
        stretch.epochs, p.batch, rate.lr * stretch.rate, p.momentum, rate.weight_decay, drops, p.factor, augment=True
    )


def attack(p: Cifar10, name: str, stretch: Stretch) -> Attacker:
    """An attacker that grows to its full radius over the first part of the stretch."""
    steps = p.perturb.l2_steps if name.startswith("l2") else p.perturb.linf_steps
    return attacker_named(name, steps, p.perturb.copies, p.perturb.warmup * stretch.epochs)


def ball(name: str) -> tuple[str, float]:
    """The norm and the radius of an attacker."""
    attacker = attacker_named(name, 1)
    return attacker.norm, attacker.eps


def within(net: str, layers: list[int]) -> list[int]:
    """Those that the network has."""
    return [layer for layer in layers if layer <= deepest_layer(net)]


def path(net: str) -> str:
    return f"models/cifar10/{net}.safetensors"


def networks(p: Cifar10) -> list[str]:
    """Those of one seed: the path random → clean → robust → clean again, its control, and the other attackers."""
    others = [f"{name}.clean" for name in p.attackers[1:]]
    return ["init", "clean", ROBUST, "control", "again", *others, *(f"{name}.random" for name in p.attackers)]
