"""Purification of one layer at a time (FP §8.2).

The layers below are frozen at robust weights. The layer and all above it start again from random weights and are
trained cleanly, and then against the attacker or, as a control, cleanly for as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pandas as pd
import torch

from brittle.attacks.image_pgd import accuracy, strongest
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import bar, resumable
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets import weights
from brittle.nets.image_layers import Layered
from brittle.nets.weights import flat, restore
from brittle.pictures import cifar10_nets
from brittle.pictures.cifar10_params import NET, NETS, Cifar10, Cifar10Params
from brittle.pictures.fitting import effort, fit
from brittle.pictures.splits import Split
from brittle.probes.theta import theta, theta_pairs
from brittle.worlds.pixels import shown

STAGE = "cifar10_layers"
PAIRS = (("init", "clean"), ("init", "robust"), ("clean", "robust"), ("clean", "control"))


def main(params: Cifar10Params, net: str) -> None:
    p = params.cifar10
    if not re.fullmatch(NET, net):
        raise BadInput(f"{net}: is not a network; must be {NETS}")
    where = device.pick(params.device)
    train, test = cifar10_nets.first_pictures(p, where)
    trained = store.load_tensors(cifar10_nets.path(net), {})
    clean, robust = cifar10_nets.plan(p, net, p.layers.clean), cifar10_nets.plan(p, net, p.layers.robust)
    attack = cifar10_nets.attack(p, p.attackers[0], p.layers.robust)
    steps = (("clean", "init", clean, None), ("robust", "clean", robust, attack), ("control", "clean", robust, None))
    work = sum(effort(plan, len(train.x), against) for _, _, plan, against in steps)
    arrays, rows, right = {}, [], []
    numbers = cifar10_nets.within(net, p.layers.numbers)
    deeper = [number for number in numbers if number > 1]  # the networks for the first layer have been trained already
    work = max(1, len(p.seeds) * len(deeper) * work)
    with resumable(STAGE) as checkpoints, bar(work, f"layers of {net}") as progress:
        for seed in p.seeds:
            for number in numbers:
                done: dict[str, Layered] = {}
                if number == 1:
                    for name in ("init", "clean", cifar10_nets.ROBUST, "control"):
                        done[name] = cifar10_nets.restored(net, trained, f"{seed}.{name}", where)
                else:
                    first = cifar10_nets.restored(net, trained, f"{seed}.{cifar10_nets.ROBUST}", where)
                    first.draw(rng(seed, f"{net} layer {number}"), since=number - 1, first=p.first)
                    done["init"] = first
                    for name, source, plan, against in steps:
                        begun = cifar10_nets.build(net, where)
                        restore(begun, flat(done[source]))
                        begun.freeze(number - 1)
                        how = {"attack": against, "purpose": f"layer {number} {name} "}
                        result = fit(checkpoints, params.images, begun, train.x, train.y, plan, seed, progress, **how)
                        done[name] = result.net
                    for name, of in done.items():
                        arrays |= weights.named(f"{seed}.{number}.{name}", of)
                about = {"net": net, "seed": seed, "layer": number}
                rows += [about | row for row in alike(done, number)]
                right += [about | {"network": name} | withstood(p, of, test) for name, of in done.items()]
        store.save_tensors(f"models/cifar10_layers/{net}.safetensors", arrays)
        store.save_table(f"plots/cifar10_layers/{net}.csv", pd.DataFrame(rows))
        store.save_table(f"plots/cifar10_layers_accuracy/{net}.csv", pd.DataFrame(right))


def withstood(p: Cifar10, net: Layered, test: Split) -> dict[str, float]:
    """Accuracy without attack, and under the attacker of adversarial training."""
    x, y = shown(test.x), test.y
    some, truth, draws = x[: p.measure.pictures], y[: p.measure.pictures], torch.Generator(x.device).manual_seed(0)
    size = (*cifar10_nets.ball(p.attackers[0]), p.measure.steps, p.measure.restarts)
    delta = strongest(net, some, truth, *size, draws)
    return {"accuracy": accuracy(net, x, y), "robust": accuracy(net, some, truth, delta)}


def alike(done: dict[str, Layered], number: int) -> Iterator[dict[str, object]]:
    """Quantiles of θ of the layer's neurons between two networks, and of different neurons of one (FP Fig 2)."""
    w = {name: net.convolutions[number - 1].weight.detach().flatten(1) for name, net in done.items()}
    found = {f"{a}, {b}": theta(w[a], w[b]) for a, b in PAIRS} | {"different neurons": theta_pairs(w["clean"])}
    for of, values in found.items():
        low, median, high = torch.quantile(values, torch.tensor([0.1, 0.5, 0.9], device=values.device)).tolist()
        yield {"of": of, "low": low, "median": median, "high": high}


if __name__ == "__main__":
    run(main, Cifar10Params, threads=2)
