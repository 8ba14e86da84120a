"""Draw what is learnt from perturbed noise."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.drawing.style import BLUE, GREY, ORANGE

COLUMNS = ["d", "noises", "samples", "accuracy", "control", "shared", "each"]


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    table = store.load_table("plots/perturbed_noise.csv", COLUMNS)
    save({"plots/perturbed_noise": figure(table)}, params.figures.dpi)


def figure(table: pd.DataFrame) -> Figure:
    """Accuracy on samples never seen, against the dimension and the number of noise points; the cosine with z."""
    drawn, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    by_d = table[table["noises"] == table["noises"].max()]
    by_noise = table[table["d"] == table["d"].max()]
    for ax, some, x, label, title in (
        (axes[0], by_d, "d", "dimension $d$", "(a) Samples never seen"),
        (axes[1], by_noise, "noises", "noise points", f"(b) The same, $d={table['d'].max():g}$"),
    ):
        _line(ax, some, x, "accuracy", BLUE, "noise + perturbations")
        _line(ax, some, x, "control", GREY, "noise alone")
        ax.axhline(0.5, color="black", linestyle=":", linewidth=1)
        ax.set(ylim=(0.3, 1.03), xlabel=label, title=title)
    axes[0].set(ylabel="accuracy on the first\nnetwork's samples")
    axes[1].legend(loc="center right")
    _line(axes[2], by_d, "d", "shared", BLUE, "mean perturbation")
    _line(axes[2], by_d, "d", "each", ORANGE, "a single perturbation")
    axes[2].set(ylim=(0, 1.03), xlabel="dimension $d$", ylabel="cosine with $z=\\Sigma y_i x_i$")
    axes[2].set_title("(c) The perturbation is $z$")
    axes[2].legend(loc="lower right")
    return drawn


def _line(ax: Axes, table: pd.DataFrame, x: str, y: str, colour: str, name: str) -> None:
    """The mean over seeds, with their range."""
    stats = table.groupby(x)[y].agg(["mean", "min", "max"])
    ax.plot(stats.index, stats["mean"], marker="o", markersize=4, color=colour, label=name)
    ax.fill_between(stats.index, stats["min"], stats["max"], color=colour, alpha=0.2, linewidth=0)
    ax.set_xscale("log")
    ax.set_xticks(stats.index, [f"{value}" for value in stats.index])
    ax.minorticks_off()


if __name__ == "__main__":
    run(main, FigureParams)
