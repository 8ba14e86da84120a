"""Draw FP's theorems on the sparse coding model."""

from __future__ import annotations

import pandas as pd

from brittle import store
from brittle.figures import sparse, style
from brittle.params.sparse import SparseFigureParams
from brittle.stages.run import run

NETWORK = ["seed", "d", "k", "margin", "tau"]
WEIGHTS = ["ratio", "predicted", "accuracy", "correlated", "runaway_energy", "local", "winner", "winner3"]
DENSITY = ["fgm_l1_l2", "pgd_l1_l2"]
TERMS = ["clean_dense", "clean_correlated", "clean_runaway_energy", "robust_pgd", "local", "theta_pairs"]


def main(params: SparseFigureParams) -> None:
    style.use(params.figures.font_size)
    networks = store.load_table("plots/sparse_networks.csv", [*NETWORK, *WEIGHTS, *DENSITY], text=["start", "network"])
    curves = store.load_table(
        "plots/sparse_accuracy.csv", ["seed", "tau", "accuracy"], text=["start", "network", "attack"]
    )
    coefficients = store.load_table(
        "plots/sparse_coefficients.csv", ["low", "high", "share"], text=["start", "network"]
    )
    growth = store.load_table(
        f"plots/sparse_growth/{'random' if 'random' in params.sparse.starts else 'pure'}.csv",
        ["step", "b", "alpha", "beta", "second", "rest", "accuracy", "dense"],
        text=["network"],
    )
    theta = store.load_table("plots/sparse_theta.csv", ["median", "low", "high", "share"], text=["start", "of"])
    columns = [
        "d",
        "k",
        "words",
        "margin",
        "predicted",
        "clean_ratio",
        "clean_accuracy",
        "clean_pgd",
        "robust_accuracy",
    ]
    grid, larger = (
        store.load_table(path, [*columns, *TERMS], text=["of", "start"])
        for path in ("plots/sparse_grid.csv", "docs/paper-scale/sparse.csv")
    )
    larger = larger[larger["d"] > grid["d"].max()]
    low = store.load_table(
        "plots/sparse_low.csv", ["tau", "d", "k", "margin", "accuracy", "pgd"], text=["model", "training", "norm"]
    )
    transfer = store.load_table("plots/sparse_transfer.csv", ["accuracy"], text=["of", "on"])
    figures = {
        "plots/sparse_accuracy": sparse.accuracy(curves, networks),
        "plots/sparse_mixture": sparse.mixture(coefficients, growth, networks),
        "plots/sparse_theta": sparse.theta(theta, networks),
        "plots/sparse_prediction": sparse.prediction(pd.concat([grid, larger]), networks),
        "plots/sparse_scaling": sparse.scaling(pd.concat([grid, larger]), networks, curves, theta),
        "plots/sparse_low": sparse.low(low, networks, curves, grid),
        "plots/sparse_transfer": sparse.transfer(transfer, networks),
    }
    for path, figure in figures.items():
        for form in ("svg", "png"):
            store.save_bytes(f"{path}.{form}", style.render(figure, form, params.figures.dpi))


if __name__ == "__main__":
    run(main, SparseFigureParams)
