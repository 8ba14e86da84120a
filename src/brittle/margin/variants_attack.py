"""Measure the variants, on test data, too; and flip many networks with the one z computed from their data alone."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.attacks.universal import thm41, z_direction
from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.margin.params import MarginParams
from brittle.margin.variants import CLUSTERS, Variant, headline, transfer
from brittle.margin.variants_params import VariantsParams
from brittle.nets.two_layer import TwoLayer, shapes, single
from brittle.probes.fresh import on_points
from brittle.probes.margin import MarginProbe, along, probe

APART = 1_000_000  # between the seeds of training and test data
BEYOND = 1.5  # z from all samples is followed up to this many times the network's own c


class Params(VariantsParams, MarginParams):
    """The sections on the variants and on the margin."""


def main(params: Params) -> None:
    p, slack = params.variants, params.margin.slack
    every = headline(p) + transfer(p)
    axes = {name: axes.replace("s ", f"s{len(v.init_seeds)} ") for v in every for name, axes in _axes(v).items()}
    nets = store.load_tensors("models/variants.safetensors", axes, d=p.d)

    def measured(variant: Variant, i: int) -> tuple[MarginProbe, Tensor, Tensor]:
        x, y = (torch.from_numpy(a).double() for a in variant.draw(p, variant.data_seeds[i]))
        return probe(single(nets, i, f"{variant.name}."), x, y, slack), x, y

    rows = []
    for variant in tracked(headline(p), "attacking"):
        for i, seed in enumerate(variant.data_seeds):
            found, x, y = measured(variant, i)
            norm = float(x[found.margin].norm(dim=1).mean())
            share, count = float(found.margin.double().mean()), int(found.margin.sum())
            row = {"world": variant.data.world, "loss": variant.loss, "seed": seed, "d": p.d, "m": p.m, "norm": norm}
            row |= {"c": found.c, "c_over_norm": found.c / norm, "on_margin": share, "margin_size": count}
            rows.append(row | corollary(single(nets, i, f"{variant.name}."), x, y, found))
    store.save_table("plots/variants.csv", pd.DataFrame(rows))

    rows, (clustered,) = [], [variant for variant in headline(p) if variant.data == CLUSTERS]
    for i, seed in enumerate(tracked(clustered.data_seeds, "testing")):
        found, x, y = measured(clustered, i)
        again = np.arange(p.m) % p.cluster_size > 0  # the centres would be those of the training data
        fresh = (torch.from_numpy(a[again]).double() for a in clustered.draw(p, seed + APART))
        kinds = {"margin": (x[found.margin], y[found.margin]), "others": (x[~found.margin], y[~found.margin])}
        z, net = z_direction(*kinds["margin"]), single(nets, i, f"{clustered.name}.")
        for kind, points in (kinds | {"fresh": tuple(fresh)}).items():
            row = {"world": clustered.data.world, "seed": seed, "d": p.d, "m": p.m, "kind": kind}
            rows += [row | vars(on_points(net, found.c, z, *points))] if len(points[1]) else []
    store.save_table("plots/fresh.csv", pd.DataFrame(rows))

    rows = []
    for variant in tracked(transfer(p), "transferring"):
        for i, init in enumerate(variant.init_seeds):
            found, x, y = measured(variant, i)
            net, at = single(nets, i, f"{variant.name}."), x.new_tensor([BEYOND * found.c])
            shared = along(net, x[found.margin], y[found.margin], z_direction(x, y))  # z needs no network
            row = {"data": variant.data.name, "width": variant.width, "loss": variant.loss, "init": init}
            row |= {"on_margin": float(found.margin.double().mean()), "own_c": found.c}
            rows.append(row | {"shared_c": shared.all_at_once(), "flipped": float(shared.flipped(at))})
    store.save_table("plots/transfer.csv", pd.DataFrame(rows))


def corollary(net: TwoLayer, x: Tensor, y: Tensor, found: MarginProbe) -> dict[str, float]:
    """VYS Cor 4.1: Thm 4.1's z of the margin set alone, where that set is what the theorem assumes."""
    x, y = x[found.margin], y[found.margin]
    proof, on_sphere = thm41(x, y), torch.allclose(x.norm(dim=1), x.new_tensor(x.shape[1]).sqrt(), rtol=1e-4)
    after = y * net((x - y[:, None] * proof.z)[None])[0] / found.outputs.min()
    applies = proof.applies and on_sphere
    return {
        "applies": int(applies),
        "z_norm": float(proof.z.norm()) if applies else math.nan,
        "z_bound": proof.bound if applies else math.nan,
        "largest_after": float(after.max()) if applies else math.nan,
    }


def _axes(variant: Variant) -> dict[str, str]:
    return shapes(f"k{variant.width}", prefix=f"{variant.name}.")


if __name__ == "__main__":
    run(main, Params)
