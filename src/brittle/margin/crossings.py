"""Where each sample on the margin changes its label, exactly, along z and along a random direction: for the slider."""

from __future__ import annotations

import pandas as pd
import torch

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.margin.params import MarginParams
from brittle.nets.two_layer import shapes, single
from brittle.probes.flipping import flipping
from brittle.probes.margin import NotSeparated


def main(params: MarginParams) -> None:
    seeds, slack = params.seeds, params.margin.slack
    data = store.load_tensors("data/margin.safetensors", {"x": "s m d", "y": "s m"}, s=len(seeds))
    nets = store.load_tensors("models/margin.safetensors", shapes(), s=len(seeds), d=data["x"].shape[2])
    x, y = (torch.from_numpy(data[name]).double() for name in ("x", "y"))
    rows = []
    for i, seed in enumerate(seeds):
        u = torch.from_numpy(rng(seed, "margin random direction").standard_normal(x.shape[2]))
        try:
            found = flipping(single(nets, i), x[i], y[i], slack, u)
        except NotSeparated as wrong:
            raise BadInput(f"margin_crossings: seed {seed}: {wrong}") from None
        for direction, along in (("z", found.found.z), ("random", found.random)):
            events = {"sample": along.sample, "c": along.c, "flips": along.flips.int()}
            rows.append(pd.DataFrame({"seed": seed, "direction": direction} | events))
    store.save_table("plots/margin_crossings.csv", pd.concat(rows))


if __name__ == "__main__":
    run(main, MarginParams)
