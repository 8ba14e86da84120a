"""The grids of VYS Figures 1 and 2 as one table each, with the cells of params.yaml, whatever other files exist."""

from __future__ import annotations

import pandas as pd

from brittle.core import store
from brittle.core.stage import run
from brittle.margin.sweep_params import SweepParams

COLUMNS = ["d", "m", "width", "seed", "c", "sqrt_d", "on_margin", "off_margin"]


def main(params: SweepParams) -> None:
    p = params.sweep
    sweep = [store.load_table(f"plots/sweep/{d}.csv", ["alpha", *COLUMNS]) for d in p.ds]
    widths = [store.load_table(f"plots/widths/{width}.csv", COLUMNS) for width in p.widths]
    store.save_table("plots/sweep.csv", pd.concat(sweep))
    store.save_table("plots/widths.csv", pd.concat(widths))


if __name__ == "__main__":
    run(main, SweepParams)
