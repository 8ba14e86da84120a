"""The three papers side by side: one vector in every world, and what each remedy buys."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from brittle.cross.tables import EVERYWHERE
from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE

PINK = "#CC79A7"  # also from Okabe and Ito
COLUMNS = 3  # panels per row

STYLES = {
    "ascent": {"color": "black", "linewidth": 2.4, "label": "found by ascent on the network"},
    "z": {"color": BLUE, "linestyle": "--", "label": "$z=\\sum y_ix_i$, from the data alone"},
    "moment": {"color": GREEN, "linestyle": "--", "label": "the lowest moment that tells labels"},
    "other": {"color": ORANGE, "linestyle": ":", "label": "found on a network of another seed"},
    "random": {"color": GREY, "linewidth": 1.0, "label": "random"},
}


def one_vector(curves: pd.DataFrame, vectors: pd.DataFrame) -> Figure:
    """X1: accuracy against the size of one perturbation of all samples, in every world."""
    vectors = vectors[
        vectors["net"] == vectors.groupby("world")["net"].transform("first")
    ]  # user-supplied ones are only in the table
    worlds = list(dict.fromkeys(vectors["world"]))
    figure, axes = _panels(len(worlds), 2.35)
    for ax, world in zip(axes, worlds, strict=True):
        known = vectors[vectors["world"] == world].set_index("vector")
        here = curves[(curves["world"] == world) & (curves["net"] == known["net"].iloc[0])]
        told = next((name for name in known.index[known["told"] > 0] if name != "z"), None)
        drawn = {"random": "random", "ascent": "ascent", "other": "other", "moment": told, "z": "z"}
        for style, vector in drawn.items():
            line = here[here["vector"] == vector].groupby("size")["accuracy"].mean()
            if len(line):
                ax.plot(line.index, line, **STYLES[style])
        end = min(2.5 * known["uap_half"].iloc[0], here["size"].max()) or here["size"].max()
        ax.set(title=world, ylim=(0, 1.03), xlim=(0, end))
        words = [f"$z$ {known.loc['z', 'cosine']:.2f}"]
        words += [f"$T_{told[1:]}$ {known.loc[told, 'cosine']:.2f}"] if told else []
        ax.set_title("cosine of " + ", ".join(words), loc="right", fontsize="small", fontweight="normal")
    _label(figure, axes, "$\\ell_2$ size of the perturbation", "accuracy")
    _legend(figure, axes, ncols=3)
    return figure


def remedies(table: pd.DataFrame) -> Figure:
    """X3: clean accuracy and accuracy under attack of every remedy in every world, beside what is possible there."""
    table = table[(table["world"] != EVERYWHERE) & (table["own"] == 1)]
    worlds, names = (list(dict.fromkeys(table[key])) for key in ("world", "remedy"))
    order = table.groupby("remedy")["robust"].mean().reindex(names).sort_values(ascending=False, kind="stable").index
    figure, axes = _panels(len(worlds), 0.7 + 0.19 * len(names), sharey=True)
    at = pd.Series(np.arange(len(order))[::-1], index=order)
    for ax, world in zip(axes, worlds, strict=True):
        here = table[table["world"] == world].set_index("remedy")
        rows = at[here.index]
        ax.hlines(rows, here["robust"], here["accuracy"], color=GREY, linewidth=0.8, alpha=0.6)
        ax.plot(here["accuracy"], rows, "o", markerfacecolor="white", color=GREY, markersize=4.5, label="accuracy")
        span = here["spread"] / 2
        ax.errorbar(here["robust"], rows, xerr=span, fmt="o", color=BLUE, markersize=5.5, label="under attack")
        ax.plot(here["certified"], rows, "|", color=GREEN, markersize=9, markeredgewidth=2, label="certified")
        if here["best"].notna().any():
            ax.axvline(here["best"].iloc[0], color=PINK, linestyle="--", linewidth=1.3)
        ax.plot([], [], color=PINK, linestyle="--", label="the best classifier known, certified")
        ax.set(title=f"{world}, radius {here['radius'].iloc[0]:.3g}", xlim=(-0.04, 1.04), ylim=(-0.6, len(order) - 0.4))
        ax.set_yticks(at, [name.replace("_", " ") for name in at.index])
        ax.grid(axis="y", linewidth=0.4, alpha=0.5)
    _label(figure, axes, "share of the test samples", "")
    _legend(figure, axes, ncols=4)
    return figure


def _panels(n: int, height: float, sharey: bool = False) -> tuple[Figure, list[plt.Axes]]:
    rows = -(-n // COLUMNS)
    figure, axes = plt.subplots(
        rows, min(n, COLUMNS), figsize=(8.6, height * rows + 0.5), layout="constrained", sharey=sharey, squeeze=False
    )
    for ax in axes.flat[n:]:
        ax.set_visible(False)
    return figure, list(axes.flat[:n])


def _label(figure: Figure, axes: list[plt.Axes], x: str, y: str) -> None:
    for i, ax in enumerate(axes):
        ax.set(xlabel=x if i + COLUMNS >= len(axes) else "", ylabel=y if i % COLUMNS == 0 else "")


def _legend(figure: Figure, axes: list[plt.Axes], ncols: int) -> None:
    """A legend with each line once, in whichever panel it is drawn."""
    handles = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=ncols)
