"""Measure the networks of VYS Figures 1(a) and 2 at one dimension."""

from __future__ import annotations

import pandas as pd

from brittle import store
from brittle.nets.two_layer import shapes
from brittle.params.margin import MarginParams
from brittle.params.sweep import SweepParams
from brittle.stages.cells import measured
from brittle.stages.progress import tracked
from brittle.stages.run import run


class Params(SweepParams, MarginParams):
    """The grid, and what is on the margin."""


def main(params: Params, d: int) -> None:
    p, slack = params.sweep, params.margin.slack
    axes = {name: axes for alpha in p.alphas for name, axes in shapes(prefix=f"{alpha}.").items()}
    stored = store.load_tensors(f"models/sweep/{d}.safetensors", axes, s=len(p.seeds), d=d)
    tables = []
    for alpha in tracked(p.alphas, f"attacking d = {d}"):
        table = measured(stored, d, round(d**alpha), p.seeds, slack, f"{alpha}.")
        table.insert(0, "alpha", alpha)
        tables.append(table)
    store.save_table(f"plots/sweep/{d}.csv", pd.concat(tables))


if __name__ == "__main__":
    run(main, Params)
