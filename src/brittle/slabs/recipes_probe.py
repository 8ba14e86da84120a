"""Randomised AUCs for every activation, optimiser, dropout and weight decay (SB Tables 4 and 5 of the appendix)."""

from __future__ import annotations

import pandas as pd

from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.slabs import draws, groups, measures
from brittle.slabs.recipes import recipes
from brittle.slabs.recipes_params import RecipesParams


def main(params: RecipesParams) -> None:
    p = params.slabs
    where = device.pick(params.device)
    every = recipes(params, lambda world: draws.load_sample("recipes", world, p.d, where))
    rows = []
    for group in tracked(every, "probing"):
        trained = groups.load_groups("models/recipes.safetensors", [group.name], s=len(group.rows))[group.name]
        for i, about in enumerate(group.rows):
            f, sample = measures.network(group.family, trained, i, where), group.samples[group.members[i].data]
            versions = measures.drawn(f, sample, p.permutations, about["seed"])
            rows.append(about | trained.row(i) | measures.row(versions, sample.y_test))
    store.save_table("plots/recipes.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    run(main, RecipesParams)
