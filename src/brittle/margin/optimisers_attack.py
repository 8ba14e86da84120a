"""Measure every optimiser's networks alike: margin, c, attacked radius, KKT residuals; at depth 2 a certificate."""

from __future__ import annotations

import math

import pandas as pd
import torch
from torch import Tensor

from brittle.attacks.minimum_norm_pgd import minimal
from brittle.attacks.nearest_boundary import best
from brittle.attacks.segments import along
from brittle.attacks.universal import z_direction
from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.margin.draws import draw
from brittle.margin.kkt_params import KKTParams
from brittle.margin.optimisers import OptimiserRun, runs
from brittle.margin.optimisers_params import OptimisersParams
from brittle.margin.params import MarginParams
from brittle.nets.deep import Deep
from brittle.probes.certify import certified
from brittle.probes.kkt import residuals
from brittle.probes.margin import on_margin, separated
from brittle.probes.steepest import GEOMETRIES, residual


class Params(OptimisersParams, KKTParams, MarginParams):
    """The sections on the networks, the margin and the kinks."""


STEPS, HALVINGS = 20, 8  # of PGD at depth 3; at depth 2 these come within 0.2 % of the best attack


def main(params: Params) -> None:
    p, slack, kink = params.optimisers, params.margin.slack, params.kkt.kink
    every = runs(p)
    shapes = {name: shape for each in every for name, shape in each.shapes().items()}
    sizes = {f"d{each.d}": each.d for each in every}
    stored = store.load_tensors("models/optimisers.safetensors", shapes, s=len(p.seeds), one=1, **sizes)
    keys = ["depth", "d", "m", "init_scale", "seed"]
    counts = store.load_table("plots/optimisers_steps.csv", [*keys, "steps"], text=["rule"])
    steps = counts.set_index(["rule", *keys])["steps"].to_dict()

    def measured(each: OptimiserRun, i: int) -> dict[str, float]:
        x, y = (torch.from_numpy(a).double() for a in draw(each.d, each.m, p.seeds[i]))
        net = each.single(stored, i)
        outputs = separated(net, x, y)
        margin = on_margin(outputs, slack)
        u = z_direction(x[margin], y[margin])
        z = along(net, x[margin], y[margin], u)
        theta, theta0 = net.flat(), each.start([p.seeds[i]]).to(torch.float64).flat()
        row = each.cell | {"seed": p.seeds[i]}
        row |= {
            "steps": steps[tuple(row.values())],
            "c": z.all_at_once(),
            "c_median": float(z.first().median()),
            "on_margin": float(margin.double().mean()),
            "margin": float(outputs.min() / theta.norm() ** each.depth),  # in ‖θ‖₂, whatever the rule's own norm
            "moved": float((theta - theta0).norm() / theta0.norm()),
        }
        row |= {f"kkt_{name}": residual(net, x, y, geometry) for name, geometry in GEOMETRIES.items()}
        row |= radii(net, x[: p.certified], y[: p.certified], u)
        # With the best λ, and σ' free at the kinks: seconds for each network, and known for depth 2.
        free = each.depth == 2 and each.compared(p)
        return row | {"kkt": residuals(net.two_layer(), x, y, kink).stationarity if free else math.nan}

    cells = [(each, i) for each in every for i in range(len(p.seeds))]
    store.save_table("plots/optimisers.csv", pd.DataFrame([measured(*cell) for cell in tracked(cells, "attacking")]))


def radii(net: Deep, x: Tensor, y: Tensor, u: Tensor) -> dict[str, float]:
    """The certified and the attacked radius of the median sample; deeper networks have no certificate that is tight."""
    if net.depth == 2:
        two = net.two_layer()
        lower, upper = certified(two, x, y).radius, best(two, x, y, u).size
        return {"certified": float(lower.median()), "attacked": float(upper.median())}
    by_z = along(net, x, y, u).first()
    far = float(by_z[by_z.isfinite()].max()) if bool(by_z.isfinite().any()) else float(x.norm(dim=1).max())
    by_pgd = minimal(lambda points: net(points[None])[0], x, y, "l2", far, STEPS, HALVINGS).size
    return {"certified": math.nan, "attacked": float(by_pgd.minimum(by_z).median())}


if __name__ == "__main__":
    run(main, Params)
