"""Clusters and fresh samples of them, drawn: the size of z, the share that it flips, and what was possible."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from brittle.drawing.style import BLUE, GREY, ORANGE, shades

ORTHOGONAL = "orthogonal"


def unseen(table: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """c/√(d/k) for every setting, curves of flips, and the radii of trained and constructed networks."""
    figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.4), layout="constrained")
    _sizes(axes[0], table)
    _flips(axes[1], curves)
    _radii(axes[2], table)
    return figure


def _by_k(ax: Axes, table: pd.DataFrame) -> None:
    ks = sorted(table["k"].unique())
    ax.set(xscale="log", xlabel="clusters $k$")
    ax.set_xticks(ks, [f"{k:g}" for k in ks])
    ax.xaxis.set_minor_locator(NullLocator())


def _sizes(ax: Axes, table: pd.DataFrame) -> None:
    """Filled where the paper's assumption holds; lines join the settings that differ in k alone."""
    table = table.assign(c_over=table["c"] / table["unit"])
    kinds = sorted(table[["centres", "sigma"]].drop_duplicates().itertuples(index=False, name=None))
    pers = sorted(table["per_cluster"].unique())
    for (centres, sigma), colour in zip(kinds, shades(len(kinds)), strict=True):
        for per, marker in zip(pers, "osD^v" * len(pers), strict=False):
            each = table[(table["centres"] == centres) & (table["sigma"] == sigma) & (table["per_cluster"] == per)]
            mean = each.groupby("k")[["c_over", "applies"]].mean()
            style = {"color": colour, "linewidth": 1.0, "linestyle": "-" if centres == ORTHOGONAL else "--"}
            ax.plot(mean.index, mean["c_over"], **style)
            for k, row in mean.iterrows():
                ax.plot(k, row["c_over"], marker, color=colour, mfc=colour if row["applies"] == 1 else "white", ms=5)
    ax.axhspan(0.8, 1.25, color=GREY, alpha=0.12, linewidth=0)
    _by_k(ax, table)
    ax.set(ylim=(0.7, 1.5), ylabel="size of $z$ that flips 99 %,\nover $\\sqrt{d/k}$", title="(a) One vector")
    looks = [
        Line2D([], [], color=colour, linestyle="-" if centres == ORTHOGONAL else "--",
               label=f"$\\sigma={sigma:g}$" + ("" if centres == ORTHOGONAL else ", random centres"))
        for (centres, sigma), colour in zip(kinds, shades(len(kinds)), strict=True)
    ]  # fmt: skip
    looks += [Line2D([], [], color=GREY, marker=marker, linestyle="", label=f"$n/k={per}$")
              for per, marker in zip(pers, "osD^v" * len(pers), strict=False)]  # fmt: skip
    ax.legend(handles=looks, fontsize="x-small", loc="upper left", ncols=2)


def _flips(ax: Axes, curves: pd.DataFrame) -> None:
    """At the noise in the middle of those around orthogonal centres, and the most samples."""
    curves = curves[curves["centres"] == ORTHOGONAL]
    sigmas = sorted(curves["sigma"].unique())
    sigma = sigmas[len(sigmas) // 2]
    curves = curves[(curves["sigma"] == sigma) & (curves["per_cluster"] == curves["per_cluster"].max())]
    ks = sorted(curves["k"].unique())
    for k, colour in zip(ks, shades(len(ks)), strict=True):
        each = curves[curves["k"] == k]
        ax.plot(each["size"], each["z"], color=colour, label=f"$z$, $k={k}$")
        ax.plot(
            each["size"], each["random"], color=GREY, linestyle="--", label=None if k < ks[-1] else "random direction"
        )
    ax.axvline(1.0, color="black", linestyle=":", linewidth=1.0)
    ax.set(xlabel="size, over $\\sqrt{d/k}$", ylabel="fresh samples flipped", title=f"(b) Flips, $\\sigma={sigma:g}$")
    ax.legend(fontsize="small", loc="upper left")


def _radii(ax: Axes, table: pd.DataFrame) -> None:
    """Single perturbations of fresh samples, relative to √d, all noises around orthogonal centres together."""
    table = table[table["centres"] == ORTHOGONAL]
    for column, colour, label in (
        ("certified", BLUE, "Thm 3.1's, certified"),
        ("attacked", ORANGE, "trained, attacked"),
    ):
        over = (table[column] / np.sqrt(table["d"])).groupby(table["k"]).agg(["mean", "min", "max"])
        ax.plot(over.index, over["mean"], color=colour, marker="o", markersize=4, label=label)
        ax.fill_between(over.index, over["min"], over["max"], color=colour, alpha=0.2, linewidth=0)
    ks = np.geomspace(table["k"].min(), table["k"].max(), 50)
    ax.plot(ks, ks**-0.5, color="black", linestyle=":", linewidth=1.0, label="$1/\\sqrt{k}$")
    _by_k(ax, table)
    ax.set(ylim=(0, None), ylabel="radius of a fresh sample, over $\\sqrt{d}$", title="(c) What was possible")
    ax.legend(fontsize="small")
