"""Train one architecture on every slab world, all seeds and worlds side by side (SB §4.2)."""

from __future__ import annotations

import hashlib

import pandas as pd

from brittle.core import device, store
from brittle.core.stage import run
from brittle.nets.parse import family
from brittle.slabs import draws, groups
from brittle.slabs.params import SlabsParams
from brittle.train.sgd import Member, SgdPlan

STAGE = "slabs_train"


def main(params: SlabsParams, model: str) -> None:
    p, training = params.slabs, params.slabs.training
    where = device.pick(params.device)
    net = family(model, p.d)
    how, worlds = draws.how(p, model), draws.worlds_of(p, model)
    plan = SgdPlan(epochs=training.epochs, batch=training.batch, optimiser=how.optimiser, target=training.target)
    samples = [draws.load_sample("slabs", name, p.d, where) for name in worlds]
    members = [
        Member(seed, data, how.lr, how.momentum, training.weight_decay)
        for data in range(len(worlds))
        for seed in how.seeds
    ]
    path, group = f"models/slabs/{model}.safetensors", groups.Group(model, net, members, samples, plan)
    groups.train_all(STAGE, path, [group])
    trained = groups.load_groups(path, [model])[model]
    # The table is in Git and has a digest of the weights, so what depends on its folder depends on the networks.
    rows = [
        {"model": model, "world": worlds[member.data], "seed": member.seed}
        | trained.row(i)
        | {"weights": hashlib.sha256(trained.theta[i].tobytes()).hexdigest()}
        for i, member in enumerate(members)
    ]
    store.save_table(f"plots/slabs/{model}.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    run(main, SlabsParams)
