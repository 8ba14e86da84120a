"""Measure every optimiser's networks alike: margin, c, KKT residual and, at depth 2, the certified bracket."""

from __future__ import annotations

import pandas as pd
import torch

from brittle.attacks.nearest_boundary import best
from brittle.attacks.segments import along
from brittle.attacks.universal import z_direction
from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.margin.draws import draws
from brittle.margin.kkt_params import KKTParams
from brittle.margin.optimisers import OptimiserRun, runs
from brittle.margin.optimisers_params import OptimisersParams
from brittle.margin.params import MarginParams
from brittle.probes.certify import certified
from brittle.probes.kkt import residuals
from brittle.probes.margin import on_margin, separated


class Params(OptimisersParams, KKTParams, MarginParams):
    """The sections on the networks, the margin and the kinks."""


def main(params: Params) -> None:
    p, slack, kink = params.optimisers, params.margin.slack, params.kkt.kink
    every = runs(p)
    shapes = {name: shape for each in every for name, shape in each.shapes().items()}
    stored = store.load_tensors("models/optimisers.safetensors", shapes, s=len(p.seeds), d=p.d, one=1)
    counts = store.load_table("plots/optimisers_steps.csv", ["depth", "seed", "steps"], text=["rule"])
    steps = counts.set_index(["rule", "depth", "seed"])["steps"]
    xs, ys = (torch.from_numpy(a).double() for a in draws(p.d, p.m, p.seeds))

    def measured(each: OptimiserRun, i: int) -> dict[str, float]:
        net, x, y = each.single(stored, i), xs[i], ys[i]
        outputs = separated(net, x, y)
        margin = on_margin(outputs, slack)
        u = z_direction(x[margin], y[margin])
        z = along(net, x[margin], y[margin], u)
        theta, theta0 = net.flat(), each.start(p.d, [p.seeds[i]]).to(torch.float64).flat()
        row = {
            "steps": int(steps.loc[each.rule, each.depth, p.seeds[i]]),
            "c": z.all_at_once(),
            "c_median": float(z.first().median()),
            "on_margin": float(margin.double().mean()),
            "margin": float(outputs.min() / theta.norm() ** each.depth),  # in ‖θ‖₂, whatever the rule's own norm
            "moved": float((theta - theta0).norm() / theta0.norm()),
        }
        if each.depth > 2:
            return row | dict.fromkeys(("kkt", "certified", "attacked"), float("nan"))
        two, some = net.two_layer(), slice(p.certified)
        lower, upper = certified(two, x[some], y[some]).radius, best(two, x[some], y[some], u).size
        kkt = residuals(two, x, y, kink).stationarity
        return row | {"kkt": kkt, "certified": float(lower.median()), "attacked": float(upper.median())}

    cells = [(each, i) for each in every for i in range(len(p.seeds))]
    rows = [
        {"rule": each.rule, "depth": each.depth, "seed": p.seeds[i], "d": p.d, "m": p.m} | measured(each, i)
        for each, i in tracked(cells, "attacking")
    ]
    store.save_table("plots/optimisers.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    run(main, Params)
