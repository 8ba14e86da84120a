"""Purification of one layer at a time (FP §8.2): the layers below it frozen at robust weights, it and all above begin
anew at random, are trained cleanly, and then against the attacker; or, as a control, cleanly for as long."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pandas as pd
import torch

from brittle import device, store
from brittle.attacks.pictures import accuracy, strongest
from brittle.nets.pictures import Layered, flat, restore
from brittle.params.base import BadInput
from brittle.params.cifar10 import NET, NETS, Cifar10, Cifar10Params
from brittle.probes.theta import theta, theta_pairs
from brittle.rng import rng
from brittle.stages import cifar10_nets as nets
from brittle.stages import pictures
from brittle.stages.pictures import Split, effort, fit
from brittle.stages.progress import bar
from brittle.stages.run import run
from brittle.train.pictures import shown

STAGE = "cifar10_layers"
PAIRS = (("init", "clean"), ("init", "robust"), ("clean", "robust"), ("clean", "control"))


def main(params: Cifar10Params, net: str) -> None:
    p = params.cifar10
    if not re.fullmatch(NET, net):
        raise BadInput(f"{net}: is not a network; must be {NETS}")
    where = device.pick(params.device)
    train, test = nets.load(p, where)
    trained = store.load_tensors(nets.path(net), {})
    clean, robust = nets.plan(p, net, p.layers.clean), nets.plan(p, net, p.layers.robust)
    attack = nets.attack(p, p.attackers[0], p.layers.robust)
    steps = (("clean", "init", clean, None), ("robust", "clean", robust, attack), ("control", "clean", robust, None))
    work = sum(effort(plan, len(train.x), against) for _, _, plan, against in steps)
    arrays, rows, right, checkpoints = {}, [], [], []
    numbers = nets.within(net, p.layers.numbers)
    deeper = [number for number in numbers if number > 1]  # the first layer's networks are there already
    with bar(max(1, len(p.seeds) * len(deeper) * work), f"layers of {net}") as progress:
        for seed in p.seeds:
            for number in numbers:
                done: dict[str, Layered] = {}
                if number == 1:
                    for name in ("init", "clean", nets.ROBUST, "control"):
                        done[name] = pictures.take(nets.build(net, where), trained, f"{seed}.{name}", nets.path(net))
                else:
                    first = pictures.take(nets.build(net, where), trained, f"{seed}.{nets.ROBUST}", nets.path(net))
                    first.draw(rng(seed, f"{net} layer {number}"), since=number - 1, first=p.first)
                    done["init"] = first
                    for name, source, plan, against in steps:
                        begun = nets.build(net, where)
                        restore(begun, flat(done[source]))
                        begun.freeze(number - 1)
                        how = {"attack": against, "purpose": f"layer {number} {name} "}
                        result = fit(STAGE, params.images, begun, train.x, train.y, plan, seed, progress, **how)
                        checkpoints.append(result.checkpoint)
                        done[name] = result.net
                    for name, of in done.items():
                        arrays |= pictures.named(f"{seed}.{number}.{name}", of)
                about = {"net": net, "seed": seed, "layer": number}
                rows += [about | row for row in alike(done, number)]
                right += [about | {"network": name} | withstood(p, of, test) for name, of in done.items()]
    store.save_tensors(f"models/cifar10_layers/{net}.safetensors", arrays)
    store.save_table(f"plots/cifar10_layers/{net}.csv", pd.DataFrame(rows))
    store.save_table(f"plots/cifar10_layers_accuracy/{net}.csv", pd.DataFrame(right))
    for checkpoint in checkpoints:
        checkpoint.forget()


def withstood(p: Cifar10, net: Layered, test: Split) -> dict[str, float]:
    """Accuracy without and with the attacker it is purified against."""
    x, y = shown(test.x), test.y
    some, truth, draws = x[: p.measure.pictures], y[: p.measure.pictures], torch.Generator(x.device).manual_seed(0)
    size = (*nets.ball(p.attackers[0]), p.measure.steps, p.measure.restarts)
    delta = strongest(net, some, truth, *size, draws)
    return {"accuracy": accuracy(net, x, y), "robust": accuracy(net, some, truth, delta)}


def alike(done: dict[str, Layered], number: int) -> Iterator[dict[str, object]]:
    """θ of each neuron of the layer between two networks, and of different neurons of the clean one (FP Fig 2)."""
    w = {name: net.convolutions[number - 1].weight.detach().flatten(1) for name, net in done.items()}
    found = {f"{a}, {b}": theta(w[a], w[b]) for a, b in PAIRS} | {"different neurons": theta_pairs(w["clean"])}
    for of, values in found.items():
        low, median, high = torch.quantile(values, torch.tensor([0.1, 0.5, 0.9], device=values.device)).tolist()
        yield {"of": of, "low": low, "median": median, "high": high}


if __name__ == "__main__":
    run(main, Cifar10Params, threads=2)
