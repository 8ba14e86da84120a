"""Draw FP's theorems on the sparse coding model."""

from __future__ import annotations

import pandas as pd

from brittle import long_runs
from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.sparse import plot, plot_scaling
from brittle.sparse.params import SparseParams

NETWORK = ["seed", "d", "k", "margin", "tau"]
WEIGHTS = ["ratio", "predicted", "accuracy", "correlated", "runaway_energy", "local", "winner", "winner3", "winner_pot"]
DENSITY = ["fgm_l1_l2", "pgd_l1_l2"]
TERMS = ["clean_dense", "clean_correlated", "clean_runaway_energy", "robust_pgd", "local", "theta_pairs"]


class Params(SparseParams, FigureParams):
    """The parameters of what was trained and of how figures look."""


def main(params: Params) -> None:
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
        "tau",
        "predicted",
        "clean_ratio",
        "clean_accuracy",
        "clean_pgd",
        "robust_accuracy",
    ]
    grid = store.load_table("plots/sparse_grid.csv", [*columns, *TERMS], text=["of", "start", "norm"])
    larger = long_runs.load("sparse_grid", [*columns, *TERMS], text=["of", "start", "norm"])
    larger = larger[larger["d"] > grid["d"].max()]
    low = store.load_table(
        "plots/sparse_low.csv", ["tau", "d", "k", "margin", "accuracy", "pgd"], text=["model", "training", "norm"]
    )
    transfer = store.load_table("plots/sparse_transfer.csv", ["accuracy"], text=["of", "on"])
    figures = {
        "plots/sparse_accuracy": plot.accuracy(curves, networks),
        "plots/sparse_mixture": plot.mixture(coefficients, growth, networks),
        "plots/sparse_theta": plot.theta(theta, networks),
        "plots/sparse_prediction": plot_scaling.prediction(pd.concat([grid, larger]), networks),
        "plots/sparse_scaling": plot_scaling.scaling(pd.concat([grid, larger]), networks, curves, theta),
        "plots/sparse_low": plot_scaling.low(low, networks, curves, grid),
        "plots/sparse_transfer": plot_scaling.transfer(transfer, networks),
    }
    save(figures, params.figures.dpi)


if __name__ == "__main__":
    run(main, Params)
