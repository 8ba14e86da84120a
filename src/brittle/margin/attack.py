"""Follow the universal perturbation z = Σ y_i x_i until it flips every sample on the margin (VYS §6.1)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.margin.params import MarginParams
from brittle.nets.two_layer import shapes, single
from brittle.probes.flipping import flipping
from brittle.probes.margin import NotSeparated
from brittle.probes.summary import over_seeds

SIZES = np.linspace(0.0, 1.2, 241)  # the perturbations of the flipping curve, relative to the norm of the data


def main(params: MarginParams) -> None:
    seeds, slack = params.seeds, params.margin.slack
    data = store.load_tensors("data/margin.safetensors", {"x": "s m d", "y": "s m"}, s=len(seeds))
    nets = store.load_tensors("models/margin.safetensors", shapes(), s=len(seeds), d=data["x"].shape[2])
    x, y = (torch.from_numpy(data[name]) for name in ("x", "y"))
    (_, m, d), width, norm = x.shape, nets["v"].shape[1], float(x.norm(dim=2).mean())  # the norm is √d on the sphere
    sizes = torch.from_numpy(norm * SIZES)
    rows, samples, curves = [], [], []
    for i, seed in enumerate(tracked(seeds, "attacking")):
        u = torch.from_numpy(rng(seed, "margin random direction").standard_normal(d))
        try:
            found = flipping(single(nets, i), x[i].double(), y[i].double(), slack, u)
        except NotSeparated as wrong:
            raise BadInput(f"margin_attack: seed {seed}: {wrong}") from None
        about = {"seed": seed, "d": d, "m": m, "width": width, "sqrt_d": d**0.5, "norm": norm}
        rows.append(about | found.numbers(norm))
        samples.append(pd.DataFrame({"seed": seed, "y": y[i].int()} | found.samples()))
        curves.append(pd.DataFrame({"size": sizes} | found.curve(sizes)))

    table = pd.DataFrame(rows)
    flipped = pd.concat(curves).groupby("size").agg(["mean", "std"])
    flipped.columns = ["z", "z_std", "random", "random_std"]
    store.save_table("plots/margin_seeds.csv", table)
    store.save_table("plots/margin_samples.csv", pd.concat(samples))
    store.save_table("plots/margin_flipped.csv", flipped.reset_index())
    headline = over_seeds("margin", table, ["c", "c_over_norm", "c_median", "random_at_c", "on_margin"])
    store.save_metrics("metrics/margin.json", {"margin.m": m, "margin.sqrt_d": d**0.5} | headline)


if __name__ == "__main__":
    run(main, MarginParams)
