"""Measure the networks of VYS Figure 1(b) at one width."""

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


def main(params: Params, width: int) -> None:
    p, slack = params.sweep, params.margin.slack
    axes = {name: axes for d in p.width_ds for name, axes in shapes(d=f"d{d}", prefix=f"{d}.").items()}
    sizes = {f"d{d}": d for d in p.width_ds}
    stored = store.load_tensors(f"models/widths/{width}.safetensors", axes, s=len(p.seeds), k=width, **sizes)
    tables = []
    for d in tracked(p.width_ds, f"attacking width {width}"):
        tables.append(measured(stored, d, d, p.seeds, slack, f"{d}."))
    store.save_table(f"plots/widths/{width}.csv", pd.concat(tables))


if __name__ == "__main__":
    run(main, Params)
