"""VYS Figures 1 and 2, from the grids."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from brittle.drawing.style import GREY, shades


def _lines(ax: Axes, table: pd.DataFrame, by: str, column: str, colours: dict[float, str], layer: bool) -> None:
    """Mean ± std over seeds against d, one line per value of `by`; that of long runs is drawn lighter."""
    look = {"marker": "o", "markersize": 2.5, "linewidth": 0.9, "markerfacecolor": "white", "alpha": 0.75}
    if not layer:
        look = {"marker": "o", "markersize": 4, "linewidth": 1.6}
    for value, cell in table.groupby(by):
        stats = cell.groupby("d")[column].agg(["mean", "std"]).reset_index()
        ax.plot(stats["d"], stats["mean"], color=colours[value], **look)
        low, high = stats["mean"] - stats["std"], stats["mean"] + stats["std"]
        ax.fill_between(stats["d"], low, high, color=colours[value], alpha=0.12 if layer else 0.25, linewidth=0)


def _keys(ax: Axes, colours: dict[float, str], name: Callable[[float], str], layered: bool) -> None:
    handles = [Line2D([], [], color=colour, marker="o", markersize=4, label=name(v)) for v, colour in colours.items()]
    if layered:
        handles.append(Line2D([], [], color=GREY, marker="o", markersize=4, label="this run"))
        look = {"markersize": 2.5, "linewidth": 0.9, "markerfacecolor": "white"}
        handles.append(Line2D([], [], color=GREY, marker="o", label="evidence", **look))
    ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1.6)


def _colours(*columns: pd.Series) -> dict[float, str]:
    values = sorted(set().union(*(set(column) for column in columns)))
    return dict(zip(values, shades(len(values)), strict=True))


def _root(ax: Axes, tables: list[pd.DataFrame]) -> None:
    ds = pd.concat([table["d"] for table in tables])
    d = np.linspace(ds.min(), ds.max(), 200)
    ax.plot(d, np.sqrt(d), color="black", linestyle="--", linewidth=1.2)
    ax.annotate("$\\sqrt{d}$", (d[-1], d[-1] ** 0.5), xytext=(-4, 3), textcoords="offset points", ha="right")


def fig1(sweep: pd.DataFrame, widths: pd.DataFrame, long_sweep: pd.DataFrame, long_widths: pd.DataFrame) -> Figure:
    """The smallest size at which z flips all margin samples, against d: (a) for m = d^α, (b) for several widths."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
    for ax, mine, theirs, by, name in (
        (left, sweep, long_sweep, "alpha", lambda a: f"$m=d^{{{a:g}}}$"),
        (right, widths, long_widths, "width", lambda w: f"width {w:g}"),
    ):
        colours = _colours(mine[by], theirs[by])
        _lines(ax, theirs, by, "c", colours, layer=True)
        _lines(ax, mine, by, "c", colours, layer=False)
        _root(ax, [mine, theirs])
        _keys(ax, colours, name, layered=len(theirs) > 0)
        ax.set(xlabel="input dimension $d$", ylim=(0, None))
    left.set(ylabel="size of $z$ that flips all\nmargin samples, $\\ell_2$", title="(a) Number of samples")
    right.set(title="(b) Width, $m=d$")
    return figure


def fig2(sweep: pd.DataFrame, long: pd.DataFrame) -> Figure:
    """How many samples are on the margin, against d: (a) their share, (b) how many are not."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.2), layout="constrained")
    colours = _colours(sweep["alpha"], long["alpha"])
    for ax, column in ((left, "on_margin"), (right, "off_margin")):
        _lines(ax, long, "alpha", column, colours, layer=True)
        _lines(ax, sweep, "alpha", column, colours, layer=False)
        ax.set(xlabel="input dimension $d$")
    left.set(ylabel="share of samples on the margin", title="(a) On the margin", ylim=(0.88, 1.005))
    left.axhline(0.92, color="black", linestyle="--", linewidth=1.2)
    left.annotate("0.92", (left.get_xlim()[1], 0.92), xytext=(-2, 3), textcoords="offset points", ha="right")
    right.set(ylabel="samples not on the margin", title="(b) Not on the margin", yscale="symlog", ylim=(-0.3, None))
    _keys(right, colours, lambda a: f"$m=d^{{{a:g}}}$", layered=len(long) > 0)
    return figure
