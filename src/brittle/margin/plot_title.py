"""VYS's title as one figure: how robust trained networks are, and Thm 3.1's networks on the same data."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from brittle.drawing.style import BLUE, GREY, ORANGE

LOW, HIGH = 0.1, 0.9  # of all samples and seeds: the band around a median


def title(table: pd.DataFrame) -> Figure:
    """Radii against d, one panel for each α: attacked of the trained networks, certified of Thm 3.1's."""
    alphas = sorted(table["alpha"].unique())
    figure, axes = plt.subplots(
        1, len(alphas), figsize=(2.4 * len(alphas) + 0.4, 3.2), layout="constrained", sharey=True, squeeze=False
    )
    ticks: list[float] = []
    for d in sorted(table["d"].unique()):
        ticks += [d] if not ticks or d >= 1.8 * ticks[-1] else []  # far enough apart to be read
    for ax, alpha in zip(axes[0], alphas, strict=True):
        each = table[table["alpha"] == alpha]
        _band(ax, each, "certified", BLUE, "Thm 3.1's network, certified")
        _band(ax, each, "attacked", ORANGE, "trained network, attacked")
        promised = each.groupby("d")["bound"].mean()
        ax.plot(promised.index, promised, color=GREY, linestyle="--", linewidth=1.2, label="Thm 3.1's promise")
        ax.set(xscale="log", yscale="log", xlabel="input dimension $d$", title=f"$m=d^{{{alpha:g}}}$")
        ax.set_xticks(ticks, [f"{d:g}" for d in ticks])
        ax.xaxis.set_minor_locator(NullLocator())
    ax = axes[0][0]
    low, high = ax.get_ylim()
    radii = [r for r in (0.5, 1, 2, 4, 8, 16) if low <= r <= high]
    ax.set_yticks(radii, [f"{r:g}" for r in radii])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set(ylabel="radius of a sample, $\\ell_2$")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _band(ax: Axes, table: pd.DataFrame, column: str, colour: str, label: str) -> None:
    finite = table[np.isfinite(table[column])]
    quantiles = finite.groupby("d")[column].quantile([LOW, 0.5, HIGH]).unstack()
    ax.plot(quantiles.index, quantiles[0.5], color=colour, marker="o", markersize=4, label=label)
    ax.fill_between(quantiles.index, quantiles[LOW], quantiles[HIGH], color=colour, alpha=0.2, linewidth=0)
