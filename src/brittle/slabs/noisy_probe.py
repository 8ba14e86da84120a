"""Accuracies of the networks that did best on validation data (SB Table 2), and of the whole grid."""

from __future__ import annotations

import pandas as pd

from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.probes.randomised import evaluate, scores
from brittle.slabs import draws, groups, measures
from brittle.slabs.noisy import searches
from brittle.slabs.noisy_params import NoisyParams

HYPER = ["lr", "batch", "momentum", "weight_decay"]


def main(params: NoisyParams) -> None:
    permutations = params.slabs.permutations
    where = device.pick(params.device)
    every = searches(params, lambda world, d: draws.load_sample("noisy", world, d, where))
    grid, networks = [], []
    for group in tracked(every, "probing"):
        trained, sample = (
            groups.load_groups("models/noisy.safetensors", [group.name], s=len(group.rows)),
            group.samples[0],
        )
        for i, about in enumerate(group.rows):
            f = measures.network(group.family, trained[group.name], i, where)
            valid = scores(evaluate(f, sample.x_valid), sample.y_valid).accuracy
            networks.append((f, sample))
            grid.append(about | trained[group.name].row(i) | {"valid": valid})
    table = pd.DataFrame(grid)
    rows = []
    for at, about in picked(table).iterrows():
        f, sample = networks[at]
        values = {"train": scores(evaluate(f, sample.x), sample.y).accuracy}
        if about["world"].startswith("noisy"):
            versions = measures.drawn(f, sample, permutations, int(about["seed"]))
            named = {"test": "standard", "rest": "rest", "s": "s"}
            values |= {name: versions[version].mean.accuracy for name, version in named.items()}
        else:
            values |= {"test": scores(evaluate(f, sample.x_test), sample.y_test).accuracy}
        rows.append(about.to_dict() | values)
    store.save_table("plots/noisy_grid.csv", table)
    store.save_table("plots/noisy.csv", pd.DataFrame(rows))


def picked(table: pd.DataFrame) -> pd.DataFrame:
    """The hyper-parameters with the best validation accuracy over seeds, for each network; the first if several tie."""
    chosen = []
    for _, some in table.groupby(["world", "model"], sort=False):
        best = some.groupby(HYPER, sort=False)["valid"].mean().idxmax()
        chosen.append(some[(some[HYPER] == pd.Series(best, index=HYPER)).all(axis=1)])
    return pd.concat(chosen)


if __name__ == "__main__":
    run(main, NoisyParams)
