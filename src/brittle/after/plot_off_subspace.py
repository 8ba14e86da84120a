"""Boundaries on the diagonal and around the chess board, and the laws of the gradient and of the boundary."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, ScalarFormatter

from brittle.drawing.style import BLUE, GREY, ORANGE

TITLES = {"plain": "as usual", "small": "small initial weights", "decay": "weight decay"}
LABELS = {"diagonal": ("$x_1$", "$x_2$"), "chess": ("along the board", "off the board")}


def boards(grid: pd.DataFrame, points: pd.DataFrame) -> Figure:
    """Where each network says +1 and -1, on the plane that is drawn."""
    figure, axes = plt.subplots(2, 3, figsize=(8, 5.2), layout="constrained")
    for row, board in zip(axes, grid["board"].unique(), strict=False):
        for ax, training in zip(row, TITLES, strict=True):
            _board(ax, *(t[(t["board"] == board) & (t["training"] == training)] for t in (grid, points)))
            ax.set(title=f"{board.capitalize()}: {TITLES[training]}", xlabel=LABELS[board][0])
        row[0].set_ylabel(LABELS[board][1])
    return figure


def _board(ax: Axes, grid: pd.DataFrame, points: pd.DataFrame) -> None:
    scores = grid.pivot_table(index="b", columns="a", values="score")
    edge = np.abs(scores.to_numpy()).max() + 1
    ax.contourf(scores.columns, scores.index, scores, levels=[-edge, 0, edge], colors=[ORANGE, BLUE], alpha=0.28)
    for label, colour in ((-1, ORANGE), (1, BLUE)):
        own = points[points["y"] == label]
        ax.plot(own["a"], own["b"], "o", color=colour, markeredgecolor="black", markersize=5)


def networks(t: pd.DataFrame) -> Figure:
    """A2, A3 and A4 in three panels."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
    plain = t[(t["decay"] == 0) & (t["scale"] == t["scale"].max())]
    _law(left, plain, "codimension", "gradient", 0.5, "$\\sqrt{\\ell}$")
    left.set(title="The gradient off the subspace", xlabel="dimensions off the subspace, $\\ell$", ylabel="its length")
    undecayed = t[t["decay"] == 0]
    varied = undecayed[undecayed["codimension"] == undecayed.groupby("codimension")["scale"].nunique().idxmax()]
    _law(middle, varied, "scale", "flip_over_output", -1.0, "$1/\\beta$")
    middle.set(title="The boundary off the subspace", xlabel="initial scale $\\beta$", ylabel="flip size / output")
    _remedies(right, varied, t[t["decay"] > 0])
    return figure


def _law(ax: Axes, t: pd.DataFrame, x: str, y: str, power: float, name: str) -> None:
    means = t.groupby(x)[y].mean()
    ax.plot(t[x], t[y], "o", color=BLUE, markersize=3, alpha=0.5)
    at = means.index.to_numpy(dtype=float)
    middle = len(at) // 2
    ax.plot(
        at, means.iloc[middle] * (at / at[middle]) ** power, color="black", linestyle="--", linewidth=1.2, label=name
    )
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(at, [f"{value:.3g}" for value in at])
    ax.minorticks_off()
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(ScalarFormatter())
    ax.legend()


def _remedies(ax: Axes, scales: pd.DataFrame, decayed: pd.DataFrame) -> None:
    """Flip sizes of the network as usual, with smaller initial weights and with weight decay."""
    base = scales["scale"].max()
    bars = [("as usual", scales[scales["scale"] == base])]
    bars += [(f"$\\beta={s:g}$", scales[scales["scale"] == s]) for s in sorted(scales["scale"].unique())[::-1][1:]]
    bars += [(f"$\\lambda={decay:g}$", rows) for decay, rows in decayed.groupby("decay")]
    for n, (_, rows) in enumerate(bars):
        ax.bar(n, rows["flip"].mean(), yerr=rows["flip"].std(), color=GREY if n == 0 else ORANGE, width=0.7)
    ax.set_xticks(range(len(bars)), [name for name, _ in bars], rotation=40, ha="right")
    ax.set(title="Two remedies", yscale="log", ylabel="flip size off the subspace")
