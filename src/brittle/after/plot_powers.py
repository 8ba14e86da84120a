"""Powers of ReLU, drawn: radii against the power, accuracy under attack, and what neurons point at."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE, shades
from brittle.nets.on_centres import radius_of_centres, radius_of_sums


def powers(table: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """All at the smallest noise: (a) every number of clusters, (b) and (c) the number that all powers have."""
    table, curves = (each[each["alpha"] == table["alpha"].min()] for each in (table, curves))
    k = table.groupby("k")["p"].nunique().idxmax()
    figure, axes = plt.subplots(1, 3, figsize=(10.4, 3.4), layout="constrained")
    _radii(axes[0], table)
    _accuracy(axes[1], curves[curves["k"] == k], k)
    _neurons(axes[2], table[table["k"] == k], k)
    return figure


def _radii(ax: Axes, table: pd.DataFrame) -> None:
    ks = sorted(table["k"].unique())
    for k, colour in zip(ks, shades(len(ks)), strict=True):
        by_p = table[table["k"] == k].groupby("p")["radius"].agg(["mean", "min", "max"])
        joined = len(by_p) > 2  # between two powers nothing is known
        look = {"color": colour, "markersize": 5, "linewidth": 1.2}
        ax.plot(by_p.index, by_p["mean"], "o-" if joined else "o", **look, label=f"$K={k}$")
        if joined:
            ax.fill_between(by_p.index, by_p["min"], by_p["max"], color=colour, alpha=0.2, linewidth=0)
        ax.axhline(radius_of_sums(k), color=colour, linestyle=":", linewidth=1.0)
        ax.annotate(f"$1/\\sqrt{{{k}}}$", (table["p"].max(), radius_of_sums(k)), ha="right", va="bottom", color=colour)
    ax.axhline(radius_of_centres(), color="black", linestyle="--", linewidth=1.0)
    ax.annotate("$\\sqrt{2}/2$", (1.0, radius_of_centres()), va="bottom")
    ax.axhline(table["certified"].min(), color=GREEN, linewidth=1.0, label="Thm 3.1's, certified")
    ax.set(ylim=(0, 0.85), xlabel="power $p$", title="(a) Radius against the power")
    ax.set_ylabel("size of single perturbations\nthat halves the accuracy")
    ax.legend(fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 0.02))


def _accuracy(ax: Axes, curves: pd.DataFrame, k: int) -> None:
    for p, colour in ((1.0, ORANGE), (3.0, BLUE)):
        each = curves[curves["p"] == p]
        wide = {"color": colour, "linewidth": 4.0, "alpha": 0.4}  # z is as good as any where p = 1
        ax.plot(each["size"], each["nearest"], **wide, label=f"$p={p:g}$, single perturbations")
        ax.plot(each["size"], each["z"], color=colour, linestyle="--", label=f"$p={p:g}$, along $z$")
    first = curves[curves["p"] == curves["p"].min()]
    ax.plot(first["size"], first["certified"], color=GREEN, linewidth=1.0, label="Thm 3.1's, certified")
    for at in (radius_of_sums(k), radius_of_centres()):
        ax.axvline(at, color=GREY, linestyle=":", linewidth=1.0)
    ax.set(xlabel="size", ylabel="accuracy on fresh samples", title=f"(b) Under attack, $K={k}$", ylim=(0, 1.45))
    ax.set_yticks([0, 0.5, 1])
    ax.legend(fontsize="x-small", loc="upper right")


def _neurons(ax: Axes, table: pd.DataFrame, k: int) -> None:
    for column, colour, label in (("average", ORANGE, "average of the class"), ("centre", BLUE, "nearest centre")):
        by_p = table.groupby("p")[column].agg(["mean", "min", "max"])
        ax.plot(by_p.index, by_p["mean"], "o-", color=colour, markersize=4, label=label)
        ax.fill_between(by_p.index, by_p["min"], by_p["max"], color=colour, alpha=0.2, linewidth=0)
    ax.set(ylim=(0, 1.05), xlabel="power $p$", ylabel="cosine of neurons with", title=f"(c) Neurons, $K={k}$")
    ax.legend(fontsize="small", loc="lower right")
