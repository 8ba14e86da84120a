"""Randomised AUCs against the number of complex features (SB Fig 3(b))."""

from __future__ import annotations

import pandas as pd

from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.nets.parse import family
from brittle.slabs import draws, groups, measures
from brittle.slabs.features_params import FeaturesParams


def main(params: FeaturesParams) -> None:
    p, permutations = params.features, params.slabs.permutations
    where = device.pick(params.device)
    trained = groups.load_groups("models/features.safetensors", [f"{complex}" for complex in p.complex], s=len(p.seeds))
    rows = []
    for complex in tracked(p.complex, "probing"):
        sample, net, each = (
            draws.load_sample("features", p.world, 1 + complex, where),
            family(p.model, 1 + complex),
            trained[f"{complex}"],
        )
        for i, seed in enumerate(p.seeds):
            versions = measures.drawn(measures.network(net, each, i, where), sample, permutations, seed)
            about = {"model": p.model, "world": p.world, "complex": complex, "seed": seed}
            about |= each.row(i)
            rows.append(about | measures.row(versions, sample.y_test))
    store.save_table("plots/features.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    run(main, FeaturesParams)
