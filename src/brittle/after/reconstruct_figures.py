"""Draw how many training samples the weights give away, along training."""

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

METHODS = {"pairs": ("differences of two neurons", ORANGE), "search": ("search for a KKT point", BLUE)}
COLUMNS = ["m", "log10_loss", "kkt", *(f"{key}_{what}" for key in METHODS for what in ("all", "margin", "foreign"))]

TICKS = (0.5, 0.2, 0.1, 0.05)


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    table = store.load_table("plots/reconstruct.csv", COLUMNS)
    save({"plots/reconstruct": figure(table)}, params.figures.dpi)


def figure(table: pd.DataFrame) -> Figure:
    """The share of the samples found, against the loss and the KKT residual; more samples, and controls."""
    drawn, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained", sharey=True)
    fewest = table[(table["m"] == table["m"].min()) & (table["log10_loss"] < 0)]
    for key, (name, colour) in METHODS.items():
        stats = fewest.groupby("log10_loss")[f"{key}_all"].agg(["mean", "min", "max"]).sort_index(ascending=False)
        at = -stats.index.to_numpy()
        left.plot(at, stats["mean"], marker="o", markersize=4, color=colour, label=name)
        left.fill_between(at, stats["min"], stats["max"], color=colour, alpha=0.2, linewidth=0)
        middle.plot(fewest["kkt"], fewest[f"{key}_all"], "o", markersize=4, color=colour)
    left.plot(
        at, fewest.groupby("log10_loss")["search_foreign"].mean().iloc[::-1], color=GREY, label="samples never seen"
    )
    left.set(xscale="log", xlabel="$-\\log_{10}$ loss", ylabel="share of the samples found", ylim=(-0.03, 1.03))
    left.set_title(f"(a) Along training, $m={table['m'].min():g}$")
    left.legend(loc="upper right")
    middle.set(xscale="log", xlabel="KKT residual", title="(b) Nearer to a KKT point")
    middle.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    middle.minorticks_off()
    middle.invert_xaxis()
    _cells(right, table)
    return drawn


def _cells(ax: Axes, table: pd.DataFrame) -> None:
    """Each number of samples at the level that they share, and the networks before training."""
    shared = table.groupby("log10_loss")["m"].nunique()
    level = shared.index[(shared.index < 0) & (shared == shared.max())].max()
    cells = [
        (f"$m={m}$", table[(table["log10_loss"] == level) & (table["m"] == m)]) for m in sorted(table["m"].unique())
    ]
    cells.append(("before\ntraining", table[table["log10_loss"] == 0]))
    for n, (key, (_, colour)) in enumerate(METHODS.items()):
        at = [place + 0.35 * n for place in range(len(cells))]
        ax.bar(at, [cell[f"{key}_all"].mean() for _, cell in cells], width=0.33, color=colour)
    ax.set_xticks([place + 0.175 for place in range(len(cells))], [name for name, _ in cells])
    ax.set_title(f"(c) At loss 1e{level:g}")


if __name__ == "__main__":
    run(main, FigureParams)
