"""Draw which directions neurons take where no line separates the labels."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE

DIRECTIONS = [f"direction_{n}" for n in range(1, 5)]
EARLY = 0.8  # of ln 2: up to the dot the loss is above this
COLOURS = (BLUE, ORANGE, GREEN, GREY)


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    table = store.load_table("plots/xor.csv", ["angle", "width", "seed", "step", "loss", "norm", "mass", *DIRECTIONS])
    middle = store.load_table("plots/mid_training.csv", ["d", "epoch", "seed", "rest", "accuracy"])
    save({"plots/xor": figure(table, middle)}, params.figures.dpi)


def figure(table: pd.DataFrame, middle: pd.DataFrame) -> Figure:
    """The mass near four directions along training, those directions at the end, and Sᶜ in the features of LMS-5."""
    drawn, (left, right, last) = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained")
    cells = list(table.groupby(["angle", "width"], sort=False))
    names = [f"{angle:g}°, {width} neurons" for (angle, width), _ in cells]
    for n, (_, each) in enumerate(cells):
        colour = COLOURS[n % len(COLOURS)]
        for i, (_, path) in enumerate(each.sort_values("step").groupby("seed")):
            early = path[path["loss"] >= EARLY * math.log(2)].tail(1)
            left.plot(path["norm"], path["mass"], color=colour, linewidth=1.0, label="_" if i else names[n])
            left.plot(early["norm"], early["mass"], "o", color=colour, markersize=4)
            right.plot(path[DIRECTIONS].iloc[-1], [n + 0.1 * (i - 1)] * 4, "o", color=colour, markersize=4)
    left.axhline(0.95, color="black", linestyle="--", linewidth=1)
    left.set(
        xscale="log",
        ylim=(0, 1.03),
        xlabel="$\\|\\theta\\|$, while it grows",
        title="(a) Near the best four directions",
    )
    left.set(ylabel="share of $\\Sigma\\|w_j\\|^2$ within 10°")
    left.legend(loc="lower right")
    right.set(xlabel="direction, in degrees", xlim=(-15, 375), title="(b) These directions, at the end")
    right.set_xticks(range(0, 361, 90))
    right.set_yticks(range(len(names)), [name.replace(", ", "\n") for name in names])
    right.invert_yaxis()
    right.grid(axis="x", linewidth=0.5)
    _middle(last, middle)
    return drawn


def _middle(ax: Axes, table: pd.DataFrame) -> None:
    for d, colour in zip(sorted(table["d"].unique()), COLOURS, strict=False):
        stats = table[table["d"] == d].groupby("epoch")["rest"].agg(["mean", "min", "max"])
        ax.plot(stats.index + 1, stats["mean"], marker="o", markersize=3.5, color=colour, label=f"$d={d}$")
        ax.fill_between(stats.index + 1, stats["min"], stats["max"], color=colour, alpha=0.2, linewidth=0)
    ax.axhline(0.5, color="black", linestyle=":", linewidth=1)
    ax.set(xscale="log", xlabel="1 + epochs", ylabel="accuracy of a linear probe for $S^c$")
    ax.set_title("(c) Hidden features of LMS-5")
    ax.legend()


if __name__ == "__main__":
    run(main, FigureParams)
