"""The comparison of trained networks with Thm 3.1's as one table, with the dimensions of params.yaml alone."""

from __future__ import annotations

import pandas as pd

from brittle.core import store
from brittle.core.stage import run
from brittle.margin.sweep_params import SweepParams

COLUMNS = ["alpha", "d", "m", "seed", "sample", "attacked", "certified", "bound"]


def main(params: SweepParams) -> None:
    tables = [store.load_table(f"plots/title/{d}.csv", COLUMNS) for d in params.sweep.ds]
    store.save_table("plots/title.csv", pd.concat(tables))


if __name__ == "__main__":
    run(main, SweepParams)
