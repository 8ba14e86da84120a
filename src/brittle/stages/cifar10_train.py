"""Train one of FP §8's networks on CIFAR-10: cleanly, then against attackers, then cleanly again.

`control` has as many further clean epochs as `robust` has adversarial ones: what it shows, too, is not purification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from torch import Tensor

from brittle import device, store
from brittle.attacks.pictures import Attacker, accuracy
from brittle.nets.pictures import Layered, flat, restore
from brittle.params.base import BadInput
from brittle.params.cifar10 import NET, NETS, Cifar10, Cifar10Params
from brittle.probes.activity import activity
from brittle.rng import rng
from brittle.stages import cifar10_nets as nets
from brittle.stages import pictures
from brittle.stages.pictures import effort, fit
from brittle.stages.progress import bar
from brittle.stages.run import run
from brittle.train.pictures import Plan, shown

STAGE = "cifar10_train"
LOOKED_AT = 500  # test pictures of a look along training


@dataclass(frozen=True)
class Job:
    name: str
    source: str  # the network that it begins with
    plan: Plan
    attack: Attacker | None = None


def jobs(p: Cifar10, net: str) -> list[Job]:
    def against(name: str, attacker: str, source: str) -> Job:
        stretch = p.direct if source == "init" else p.robust
        return Job(name, source, nets.plan(p, net, stretch), nets.attack(p, attacker, stretch))

    main, *others = p.attackers
    return [
        Job("clean", "init", nets.plan(p, net, p.clean)),
        against(nets.ROBUST, main, "clean"),
        Job("control", "clean", nets.plan(p, net, p.robust)),
        Job("again", nets.ROBUST, nets.plan(p, net, p.again)),
        *(against(f"{name}.clean", name, "clean") for name in others),
        *(against(f"{name}.random", name, "init") for name in p.attackers),
    ]


def main(params: Cifar10Params, net: str) -> None:
    p = params.cifar10
    if not re.fullmatch(NET, net):
        raise BadInput(f"{net}: is not a network; must be {NETS}")
    where = device.pick(params.device)
    train, test = nets.load(p, where)
    few = shown(test.x[:LOOKED_AT]), test.y[:LOOKED_AT]
    every = jobs(p, net)
    arrays, rows, growth, checkpoints = {}, [], [], []
    work = len(p.seeds) * sum(effort(job.plan, len(train.x), job.attack) for job in every)
    with bar(work, f"training {net}") as progress:
        for seed in p.seeds:
            first = nets.build(net, where)
            first.draw(rng(seed, f"{net} weights"), first=p.first)
            done: dict[str, Layered] = {"init": first}
            for job in every:
                begun = nets.build(net, where)
                restore(begun, flat(done[job.source]))
                how = (job.plan, seed, progress, job.attack, partial(looked, *few), f"{job.name} ")
                trained = fit(STAGE, params.images, begun, train.x, train.y, *how)
                checkpoints.append(trained.checkpoint)
                done[job.name] = trained.net
                growth += [{"seed": seed, "network": job.name} | row for row in along(trained.seen, trained.losses)]
                arrays[f"{seed}.path.{job.name}"] = trained.seen["filters"]
            for name, network in done.items():
                arrays |= pictures.named(f"{seed}.{name}", network)
                rows.append({"net": net, "seed": seed, "network": name, "weights": pictures.digest(network)})
    store.save_tensors(nets.path(net), arrays)
    # In Git, and with digests of the weights: what depends on this table depends on the networks.
    store.save_table(f"plots/cifar10/{net}.csv", pd.DataFrame(rows))
    store.save_table(f"plots/cifar10_growth/{net}.csv", pd.DataFrame(growth))
    for checkpoint in checkpoints:
        checkpoint.forget()


def looked(x: Tensor, y: Tensor, net: Layered) -> dict[str, np.ndarray]:
    """Of a network on its way: how many neurons are on, how right it is, and its first layer."""
    layers, mean = activity(net, x)
    numbers = [accuracy(net, x, y), mean, *layers.values()]
    return {"numbers": np.array(numbers), "filters": net.convolutions[0].weight.detach().cpu().numpy().copy()}


def along(seen: dict[str, np.ndarray], losses: list[float]) -> Iterator[dict[str, float]]:
    for epoch, (right, mean, *layers) in enumerate(seen["numbers"]):
        row = {"epoch": epoch, "loss": losses[epoch - 1] if epoch else np.nan, "accuracy": right, "active": mean}
        yield row | {f"active_{number}": share for number, share in enumerate(layers, 1)}


if __name__ == "__main__":
    run(main, Cifar10Params, threads=2)
