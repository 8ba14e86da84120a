"""Measure the networks of VYS Figures 1(a) and 2 at one dimension."""

from __future__ import annotations

import pandas as pd

from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.margin.cells import measured
from brittle.margin.params import MarginParams
from brittle.margin.sweep_params import SweepParams
from brittle.nets.two_layer import shapes


class Params(SweepParams, MarginParams):
    """The sections on the grid and on the margin."""


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
