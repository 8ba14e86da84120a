"""Purification of one layer at a time (FP §8.2).

Stage 1 is adversarial training from random weights. The layers below are frozen at its weights. The layer and all
above it start again from random weights and are trained cleanly (stage 2), and then against the attacker (stage 3),
until they withstand it as often as stage 1's network (footnote 17); or, as a control, cleanly for as many epochs. Of
the first layer, below which nothing is frozen, the stages 1 and 2 are those of cifar10_train.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch

from brittle.attacks.image_pgd import Attacker, accuracy, strongest
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import Bar, Checkpoints, bar, resumable
from brittle.core.stage import run
from brittle.nets import weights
from brittle.nets.image_layers import Layered
from brittle.pictures import cifar10_nets
from brittle.pictures.cifar10_params import NET, NETS, Cifar10, Cifar10Params
from brittle.pictures.fitting import Fit, effort, fit
from brittle.pictures.params import Images
from brittle.pictures.splits import Split
from brittle.probes.summary import resampled
from brittle.probes.theta import theta, theta_pairs
from brittle.train.image_sgd import ImagePlan
from brittle.worlds.pixels import shown

STAGE = "cifar10_layers"
PAIRS = (("init", "clean"), ("init", "robust"), ("clean", "robust"), ("clean", "control"))


@dataclass(frozen=True)
class OneLayer:
    """Stages 2 and 3 for one layer of one network."""

    p: Cifar10
    images: Images
    net: str
    number: int
    seed: int
    train: Split
    test: Split
    checkpoints: Checkpoints
    bar: Bar

    def stages(self, stage1: Layered, before: dict[str, Layered]) -> dict[str, Layered]:
        """The networks with the layer random, clean, robust, and its control; `before` has what is there already."""
        p, done = self.p, dict(before)
        if "init" not in done:
            done["init"] = self.randomised(stage1)
        if "clean" not in done:
            done["clean"] = self.trained(done["init"], "clean", cifar10_nets.plan(p, self.net, p.layers.clean)).net
        plan, attack = cifar10_nets.plan(p, self.net, p.layers.robust), attacker(p)
        wanted = withstood(p, stage1, self.test)["robust"]
        looked = {"look": lambda net: {"robust": np.array(withstood(p, net, self.test)["robust"])}}
        looked |= {"enough": lambda seen: bool(seen["robust"] >= wanted)}
        robust = self.trained(done["clean"], "robust", plan, attack, **looked)
        control = self.trained(done["clean"], "control", replace(plan, epochs=len(robust.losses)))
        return done | {"robust": robust.net, "control": control.net}

    def randomised(self, stage1: Layered) -> Layered:
        """Stage 1's network with random weights from this layer on."""
        first = cifar10_nets.copied(self.net, stage1)
        cifar10_nets.draw(self.p, self.net, first, f"layer {self.number}", self.seed, since=self.number - 1)
        return first

    def trained(self, start: Layered, name: str, plan: ImagePlan, attack: Attacker | None = None, **more: Any) -> Fit:
        net = cifar10_nets.copied(self.net, start)
        net.freeze(self.number - 1)
        more |= {"attack": attack, "purpose": f"layer {self.number} {name} "}
        return fit(self.checkpoints, self.images, net, self.train.x, self.train.y, plan, self.seed, self.bar, **more)


def main(params: Cifar10Params, net: str) -> None:
    p = params.cifar10
    if not re.fullmatch(NET, net):
        raise BadInput(f"{net}: is not a network; must be {NETS}")
    where = device.pick(params.device)
    train, test = cifar10_nets.first_pictures(p, where)
    trained = store.load_tensors(cifar10_nets.path(net), {})
    numbers = cifar10_nets.within(net, p.layers.numbers)
    arrays, rows, right = {}, [], []
    with resumable(STAGE) as checkpoints, bar(work(p, net, numbers, len(train.x)), f"layers of {net}") as progress:
        for seed, number in product(p.seeds, numbers):
            of = {
                name: cifar10_nets.restored(net, trained, f"{seed}.{name}", where)
                for name in ("init", "clean", cifar10_nets.stage1(p))
            }
            stage1 = of.pop(cifar10_nets.stage1(p))
            one = OneLayer(p, params.images, net, number, seed, train, test, checkpoints, progress)
            done = one.stages(stage1, of if number == 1 else {})
            about = {"net": net, "seed": seed, "layer": number}
            rows += [about | row for row in alike(done, number)]
            right.append(about | {"network": "stage 1", "weights": ""} | withstood(p, stage1, test))
            for name, network in done.items():
                arrays |= weights.named(f"{seed}.{number}.{name}", network)
                digest = weights.digest(network)
                right.append(about | {"network": name, "weights": digest} | withstood(p, network, test))
        store.save_tensors(cifar10_nets.layers_path(net), arrays)
        # In Git, with digests of the weights: stages that depend on these tables depend on the networks.
        store.save_table(f"plots/cifar10_layers/{net}.csv", pd.DataFrame(rows))
        store.save_table(f"plots/cifar10_layers_accuracy/{net}.csv", pd.DataFrame(right))


def attacker(p: Cifar10) -> Attacker:
    return cifar10_nets.attack(p, p.attackers[0], p.layers.robust)


def work(p: Cifar10, net: str, numbers: list[int], n: int) -> float:
    """The length of the progress bar, at most."""
    clean, robust = cifar10_nets.plan(p, net, p.layers.clean), cifar10_nets.plan(p, net, p.layers.robust)
    third = effort(robust, n, attacker(p)) + effort(robust, n, None)
    return len(p.seeds) * sum(third + (effort(clean, n, None) if number > 1 else 0) for number in numbers)


def withstood(p: Cifar10, net: Layered, test: Split) -> dict[str, float]:
    """Accuracy without attack, and under the attacker of adversarial training."""
    x, y = shown(test.x), test.y
    some, truth, draws = x[: p.measure.pictures], y[: p.measure.pictures], torch.Generator(x.device).manual_seed(0)
    size = (*cifar10_nets.ball(p.attackers[0]), p.measure.steps, p.measure.restarts)
    delta = strongest(net, some, truth, *size, draws)
    return {"accuracy": accuracy(net, x, y), "robust": accuracy(net, some, truth, delta)}


def alike(done: dict[str, Layered], number: int) -> Iterator[dict[str, object]]:
    """Quantiles of θ of the layer's neurons between two networks, and of different neurons of one (FP Fig 2).

    The spread of the median is over resamplings of the neurons.
    """
    w = {name: net.convolutions[number - 1].weight.detach().flatten(1) for name, net in done.items()}
    found = {f"{a}, {b}": theta(w[a], w[b]) for a, b in PAIRS} | {"different neurons": theta_pairs(w["clean"])}
    for of, values in found.items():
        low, median, high = torch.quantile(values, torch.tensor([0.1, 0.5, 0.9], device=values.device)).tolist()
        yield {"of": of, "low": low, "median": median, "high": high, "median_spread": resampled(values[:1000].cpu())}


if __name__ == "__main__":
    run(main, Cifar10Params)
