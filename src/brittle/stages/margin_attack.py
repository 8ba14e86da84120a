"""Follow the universal perturbation z = Σ y_i x_i until it flips every sample on the margin (VYS §6.1)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from brittle import store
from brittle.nets.two_layer import TwoLayer
from brittle.params.base import BadInput
from brittle.params.margin import MarginParams
from brittle.probes.margin import NotSeparated, along, probe
from brittle.probes.summary import over_seeds
from brittle.rng import rng
from brittle.stages.progress import tracked
from brittle.stages.run import run

SIZES = np.linspace(0.0, 1.2, 241)  # the perturbations of the flipping curve, relative to the norm of the data


def main(params: MarginParams) -> None:
    seeds, slack = params.seeds, params.margin.slack
    data = store.load_tensors("data/margin.safetensors", {"x": "s m d", "y": "s m"}, s=len(seeds))
    shapes = {"w": "s k d", "b": "s k", "v": "s k"}
    model = store.load_tensors("models/margin.safetensors", shapes, s=len(seeds), d=data["x"].shape[2])
    x, y, w, b, v = (torch.from_numpy(t) for t in (data["x"], data["y"], model["w"], model["b"], model["v"]))
    d, norm = x.shape[2], float(x.norm(dim=2).mean())  # the norm is √d on the sphere
    sizes = torch.from_numpy(norm * SIZES)
    per_seed, samples, curves = [], [], []
    for i, seed in enumerate(tracked(seeds, "attacking")):
        net = TwoLayer(w[i : i + 1], b[i : i + 1], v[i : i + 1]).to(torch.float64)
        xi, yi = x[i].double(), y[i].double()
        try:
            found = probe(net, xi, yi, slack)
        except NotSeparated as wrong:
            raise BadInput(f"margin_attack: seed {seed}: {wrong}") from None
        u = torch.from_numpy(rng(seed, "margin random direction").standard_normal(d))
        random = along(net, xi[found.margin], yi[found.margin], u / u.norm())  # for comparison
        per_seed.append(
            {
                "seed": seed,
                "d": d,
                "m": y.shape[1],
                "width": v.shape[1],
                "sqrt_d": d**0.5,
                "norm": norm,
                "c": found.c,
                "c_over_norm": found.c / norm,
                "c_median": float(found.z.first().median()),
                "random_at_c": float(random.flipped(xi.new_tensor([found.c]))),
                "on_margin": float(found.margin.double().mean()),
            }
        )
        samples.append(
            pd.DataFrame(
                {
                    "seed": seed,
                    "y": y[i].int(),
                    "output": found.outputs / found.outputs.min(),
                    "on_margin": found.margin.int(),
                    "c": torch.full_like(found.outputs, torch.nan).masked_scatter(found.margin, found.z.first()),
                }
            )
        )
        curves.append(pd.DataFrame({"size": sizes, "z": found.z.flipped(sizes), "random": random.flipped(sizes)}))

    table = pd.DataFrame(per_seed)
    flipped = pd.concat(curves).groupby("size").agg(["mean", "std"])
    flipped.columns = ["z", "z_std", "random", "random_std"]
    store.save_table("plots/margin_seeds.csv", table)
    store.save_table("plots/margin_samples.csv", pd.concat(samples))
    store.save_table("plots/margin_flipped.csv", flipped.reset_index())
    headline = over_seeds("margin", table, ["c", "c_over_norm", "c_median", "random_at_c", "on_margin"])
    store.save_metrics("metrics/margin.json", {"margin.m": y.shape[1], "margin.sqrt_d": d**0.5} | headline)


if __name__ == "__main__":
    run(main, MarginParams)
