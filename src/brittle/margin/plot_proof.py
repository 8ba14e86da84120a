"""The proof of VYS Thm 4.1, line by line: how tight each inequality is, and what the bound loses where."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brittle.drawing.style import BLUE, GREY, ORANGE

NEAR = 0.1  # the KKT residual up to which a network is taken to be a KKT point
LEAST = 1e-3  # what is smaller is drawn as this


def proof(table: pd.DataFrame) -> Figure:
    """Left: lhs/rhs of every line. Right: the factors between the size that flips all samples and the bound."""
    table = table[table["kkt"] <= NEAR]
    lines, losses = table[table["part"] == "line"], table[table["part"] == "loss"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=[1.0, 0.9])
    stats = lines.groupby("lemma", sort=False)["tightness"].agg(["median", "min", "max"]).clip(lower=LEAST)
    _bars(left, stats, BLUE, list(stats.index))
    left.axvline(1, color="black", linestyle="--", linewidth=1.2)
    left.set(xlim=(LEAST, 3), xlabel="left side / right side, where it is tightest", title="(a) Each inequality")

    network = ["world", "d", "m", "width", "init_scale", "seed"]
    whole = losses.groupby(network)["rhs"].prod().agg(["median", "min", "max"])
    keys = losses[["lemma", "says"]].drop_duplicates()
    stats = losses.groupby("lemma", sort=False)["rhs"].agg(["median", "min", "max"])
    names = [f"{lemma}\n{says}" for lemma, says in zip(keys["lemma"], keys["says"], strict=True)]
    _bars(right, pd.concat([stats, whole.to_frame("whole").T]), ORANGE, [*names, "bound / size that flips all"])
    right.patches[-1].set_color(GREY)
    right.set(xlim=(1, None), xlabel="factor", title="(b) Where the constant is lost")
    return figure


def _bars(ax: Axes, stats: pd.DataFrame, colour: str, names: list[str]) -> None:
    """Medians as bars on a logarithmic scale, with the range over networks."""
    at = np.arange(len(stats))[::-1]
    ends = np.abs(stats[["min", "max"]].to_numpy().T - stats["median"].to_numpy())
    ax.barh(at, stats["median"], xerr=ends, color=colour, height=0.6, ecolor="black", error_kw={"linewidth": 1})
    ax.set_xscale("log")
    ax.set_yticks(at, names, fontsize="small")
