"""Train one of FP §8's networks on CIFAR-10: cleanly, then against attackers, then cleanly again.

`control` has as many further clean epochs as `robust` has adversarial ones: effects that it also shows are not
purification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from torch import Tensor

from brittle.attacks.image_pgd import Attacker, accuracy
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import bar, resumable
from brittle.core.stage import run
from brittle.nets import weights
from brittle.nets.image_layers import Layered
from brittle.pictures import cifar10_nets
from brittle.pictures.cifar10_params import NET, NETS, Cifar10, Cifar10Params
from brittle.pictures.fitting import effort, fit
from brittle.probes.activity import activity
from brittle.train.image_sgd import ImagePlan
from brittle.worlds.pixels import shown

STAGE = "cifar10_train"
LOOKED_AT = 500  # test pictures for the measurements along training


@dataclass(frozen=True)
class TrainingStep:
    name: str
    source: str  # the network that it starts from
    plan: ImagePlan
    attack: Attacker | None = None


def jobs(p: Cifar10, net: str) -> list[TrainingStep]:
    def against(name: str, attacker: str, source: str) -> TrainingStep:
        stretch = p.direct if source == "init" else p.robust
        return TrainingStep(name, source, cifar10_nets.plan(p, net, stretch), cifar10_nets.attack(p, attacker, stretch))

    main, *others = p.attackers
    return [
        TrainingStep("clean", "init", cifar10_nets.plan(p, net, p.clean)),
        against(cifar10_nets.ROBUST, main, "clean"),
        TrainingStep("control", "clean", cifar10_nets.plan(p, net, p.robust)),
        TrainingStep("again", cifar10_nets.ROBUST, cifar10_nets.plan(p, net, p.again)),
        *(against(f"{name}.clean", name, "clean") for name in others),
        *(against(f"{name}.random", name, "init") for name in p.attackers),
    ]


def main(params: Cifar10Params, net: str) -> None:
    p = params.cifar10
    if not re.fullmatch(NET, net):
        raise BadInput(f"{net}: is not a network; must be {NETS}")
    where = device.pick(params.device)
    train, test = cifar10_nets.first_pictures(p, where)
    few = shown(test.x[:LOOKED_AT]), test.y[:LOOKED_AT]
    every = jobs(p, net)
    arrays, rows, growth = {}, [], []
    work = len(p.seeds) * sum(effort(job.plan, len(train.x), job.attack) for job in every)
    with resumable(STAGE) as checkpoints, bar(work, f"training {net}") as progress:
        for seed in p.seeds:
            first = cifar10_nets.build(net, where)
            cifar10_nets.draw(p, net, first, "weights", seed)
            done: dict[str, Layered] = {"init": first}
            for job in every:
                begun = cifar10_nets.copied(net, done[job.source])
                how = (job.plan, seed, progress, job.attack, partial(looked, *few), f"{job.name} ")
                trained = fit(checkpoints, params.images, begun, train.x, train.y, *how)
                done[job.name] = trained.net
                growth += [{"seed": seed, "network": job.name} | row for row in along(trained.seen, trained.losses)]
                arrays[f"{seed}.path.{job.name}"] = trained.seen["filters"]
            for name, network in done.items():
                arrays |= weights.named(f"{seed}.{name}", network)
                rows.append({"net": net, "seed": seed, "network": name, "weights": weights.digest(network)})
        store.save_tensors(cifar10_nets.path(net), arrays)
        # In Git, with digests of the weights: stages that depend on this table depend on the networks.
        store.save_table(f"plots/cifar10/{net}.csv", pd.DataFrame(rows))
        store.save_table(f"plots/cifar10_growth/{net}.csv", pd.DataFrame(growth))


def looked(x: Tensor, y: Tensor, net: Layered) -> dict[str, np.ndarray]:
    """Measurements during training: the accuracy, how many neurons are active, and the filters of the first layer."""
    layers, mean = activity(net, x)
    numbers = [accuracy(net, x, y), mean, *layers.values()]
    return {"numbers": np.array(numbers), "filters": net.convolutions[0].weight.detach().cpu().numpy().copy()}


def along(seen: dict[str, np.ndarray], losses: list[float]) -> Iterator[dict[str, float]]:
    for epoch, (right, mean, *layers) in enumerate(seen["numbers"]):
        row = {"epoch": epoch, "loss": losses[epoch - 1] if epoch else np.nan, "accuracy": right, "active": mean}
        yield row | {f"active_{number}": share for number, share in enumerate(layers, 1)}


if __name__ == "__main__":
    run(main, Cifar10Params)
