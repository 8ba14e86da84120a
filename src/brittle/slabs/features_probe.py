"""Randomised AUCs against the number of complex features, and what is learnt of them without S (SB Fig 3(b))."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.slabs import groups, measures
from brittle.slabs.features import wide
from brittle.slabs.features_params import FeaturesParams


def main(params: FeaturesParams) -> None:
    where = device.pick(params.device)
    rows = []
    for group in tracked(wide(params, where), "probing"):
        trained = groups.load_groups("models/features.safetensors", [group.name], s=len(group.rows))[group.name]
        (sample,) = group.samples
        for i, about in enumerate(group.rows):
            f = measures.network(group.family, trained, i, where)
            if about["simple"]:
                values = measures.row(
                    measures.drawn(f, sample, params.slabs.permutations, about["seed"]), sample.y_test
                )
            else:  # there is no S to randomise
                found = measures.drawn(f, sample, 1, about["seed"], ())["standard"].mean
                values = {f"standard_{name}": value for name, value in asdict(found).items()}
            rows.append(about | trained.row(i) | values)
    store.save_table("plots/features.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    run(main, FeaturesParams)
