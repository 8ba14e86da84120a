"""Measure them on fresh samples: what neurons point at, the size of single perturbations and of z.

Beside them stands Thm 3.1's network on the centres, with certificates.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.after.powers import Cell, cells
from brittle.after.powers_params import PowersParams, PowersSection
from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.nets.on_centres import crossing_of_centres, crossing_of_sums, radius_of_centres, radius_of_sums
from brittle.nets.power_relu import scores
from brittle.nets.robust_construction import thm31
from brittle.nets.two_layer import TwoLayer
from brittle.probes.powers import alignment, flips, halving
from brittle.probes.within_span import certified_within_span

SIZES = np.linspace(0.0, 1.5, 61)  # of the curves, where the distance of two centres is √2


def main(params: PowersParams) -> None:
    p = params.powers
    axes = {f"{cell.name}.{name}": axes for cell in cells(p) for name, axes in
            (("w", "s k d"), ("v", "s k"), ("loss", "s"))}  # fmt: skip
    nets = store.load_tensors("models/powers.safetensors", axes, s=len(p.seeds), k=p.width, d=p.d)
    rows, curves = [], []
    for cell in tracked(cells(p), "attacking"):
        for i, seed in enumerate(p.seeds):
            w, v = (torch.from_numpy(nets[f"{cell.name}.{name}"][i]).double() for name in ("w", "v"))
            row, sizes = measured(p, cell, seed, w, v)
            where = {"p": cell.p, "k": cell.k, "alpha": cell.alpha, "d": p.d, "n": p.n, "width": p.width}
            where |= {"seed": seed, "fresh": p.test}
            rows.append(where | {"loss": float(nets[f"{cell.name}.loss"][i])} | row)
            kept = {name: [float((size > at).double().mean()) for at in SIZES] for name, size in sizes.items()}
            curves.append(pd.DataFrame(where | {"size": SIZES} | kept))
    store.save_table("plots/powers.csv", pd.DataFrame(rows))
    mean = pd.concat(curves).groupby(["p", "k", "alpha", "size"], as_index=False)[["nearest", "z", "certified"]].mean()
    store.save_table("plots/powers_curves.csv", mean)


def measured(
    p: PowersSection, cell: Cell, seed: int, w: Tensor, v: Tensor
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """One row of the table, and the sizes at which each fresh sample flips."""
    mu, labels = map(torch.from_numpy, cell.centres(p))
    x, y = map(torch.from_numpy, cell.draw(p, seed, p.test, "fresh"))
    seen, seen_y = map(torch.from_numpy, cell.draw(p, seed, p.n, "training"))
    accuracy = float((y * scores(w, v, x, cell.p) > 0).double().mean())
    x, y = x[: p.attacked], y[: p.attacked]
    found = flips(lambda points: scores(w, v, points, cell.p), x, y, seen_y @ seen, math.sqrt(cell.k))
    robust = certified_within_span(on_unit_centres(mu, labels), x, y).radius
    positive, negative = int((labels > 0).sum()), int((labels < 0).sum())
    sums = cell.p < 2  # what neurons turn towards
    row = vars(alignment(w, v, mu, labels)) | {
        "accuracy": accuracy,
        "radius": halving(found.nearest),
        "radius_closed": radius_of_sums(cell.k) if sums else radius_of_centres(),
        "z": halving(found.by_z),
        "z_positive": halving(found.by_z[y > 0]),
        "z_negative": halving(found.by_z[y < 0]),
        "z_positive_closed": crossing_of_sums(cell.k) if sums else crossing_of_centres(cell.k, negative, cell.p),
        "z_negative_closed": crossing_of_sums(cell.k) if sums else crossing_of_centres(cell.k, positive, cell.p),
        "certified": halving(robust),
    }
    return row, {"nearest": found.nearest, "z": found.by_z, "certified": robust}


def on_unit_centres(mu: Tensor, y: Tensor) -> TwoLayer:
    """Thm 3.1's network on the centres, which it takes to have norm √d, for samples around centres of norm 1."""
    root = mu.shape[1] ** 0.5  # (k, d), (k,)
    net = thm31(root * mu, y)
    return TwoLayer(root * net.w, net.b, net.v)


if __name__ == "__main__":
    run(main, PowersParams)
