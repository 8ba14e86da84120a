"""Measure the cell that was trained in mini-batches and on all samples at once, side by side."""

from __future__ import annotations

import pandas as pd

from brittle.core import store
from brittle.core.stage import run
from brittle.margin.cells import measured
from brittle.margin.minibatch_params import METHODS, MinibatchParams
from brittle.margin.params import MarginParams
from brittle.nets.two_layer import shapes


class Params(MinibatchParams, MarginParams):
    """The sections on the cell and on the margin."""


def main(params: Params) -> None:
    p = params.minibatch
    axes = {key: axis for name in METHODS for key, axis in shapes(prefix=f"{name}.").items()}
    nets = store.load_tensors("models/minibatch.safetensors", axes, s=len(p.seeds), d=p.d)
    tables = []
    for name, batch in zip(METHODS, (p.batch, p.m), strict=True):
        rows = measured(nets, p.d, p.m, p.seeds, params.margin.slack, f"{name}.")
        tables.append(rows.assign(method=name, batch=batch))
    store.save_table("plots/minibatch.csv", pd.concat(tables))


if __name__ == "__main__":
    run(main, Params)
