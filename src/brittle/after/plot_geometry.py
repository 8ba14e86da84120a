"""Margins of every rule in every norm as a table in colours, and the areas of O2 beside it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE

NORMS = {"l2": "$\\ell_2$", "linf": "$\\ell_\\infty$", "spectral": "spectral"}
CALLED = {"gd": "gradient descent", "momentum": "momentum GD", "sign": "sign descent", "signum": "Signum"}
CALLED |= {"sgd": "SGD", "adam": "Adam", "rmsprop": "RMSProp", "muon": "Muon"}
TITLES = {"smooth": "Smooth networks", "relu": "ReLU networks"}


def geometry(margins: pd.DataFrame, reliance: pd.DataFrame) -> Figure:
    """O1 for either kind of network, and O2."""
    kinds = list(margins["network"].unique())
    figure, axes = plt.subplots(
        1, len(kinds) + 1, figsize=(3.1 * len(kinds) + 3.6, 3.2), layout="constrained",
        width_ratios=[1] * len(kinds) + [1.25], squeeze=False,
    )  # fmt: skip
    last = margins[margins["log10_loss"] == margins["log10_loss"].min()]
    for n, (ax, kind) in enumerate(zip(axes[0], kinds, strict=False)):
        _table(ax, last[last["network"] == kind], TITLES[kind], names=n == 0)
    _areas(axes[0, -1], reliance)
    return figure


def _table(ax: Axes, t: pd.DataFrame, title: str, names: bool) -> None:
    """Each margin as a share of the largest in its norm: the mean over seeds."""
    columns = [f"margin_{norm}" for norm in NORMS]
    means = t.groupby("rule", sort=False)[columns].mean()
    shares = (means / means.max()).to_numpy()
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1.25, aspect="auto")
    for (i, j), share in np.ndenumerate(shares):
        ax.text(j, i, f"{share:.2g}", ha="center", va="center", color="white" if share > 0.6 else "black")
    ax.set_xticks(range(len(NORMS)), NORMS.values())
    ax.set_yticks(range(len(means)), [CALLED.get(rule, rule) for rule in means.index] if names else [])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(title=title, xlabel="margin in this norm,\nas a share of the largest")


def _areas(ax: Axes, t: pd.DataFrame) -> None:
    """A dot for every network; hollow where it has not learnt its training samples."""
    optimisers, worlds = list(t["optimiser"].unique()), list(t["world"].unique())
    for n, (world, colour) in enumerate(zip(worlds, (BLUE, ORANGE, GREEN, GREY), strict=False)):
        each = t[t["world"] == world]
        at = each["optimiser"].map(optimisers.index) + 0.16 * (2 * n - len(worlds) + 1)
        learnt = each["accuracy"] >= 0.99
        ax.plot(at[learnt], each.loc[learnt, "auc_s"], "o", color=colour, markersize=4, alpha=0.8, label=world)
        ax.plot(at[~learnt], each.loc[~learnt, "auc_s"], "o", color=colour, markersize=4, markerfacecolor="white")
    ax.axhline(0.5, color=GREY, linewidth=0.8)
    ax.axhline(0.55, color=GREY, linewidth=0.8, linestyle="--")
    ax.set_xticks(range(len(optimisers)), [CALLED.get(name, name) for name in optimisers])
    low, high = min(0.47, t["auc_s"].min() - 0.01), max(0.6, t["auc_s"].max() + 0.01)
    ax.set(title="What networks rely on", ylabel="AUC with $S$ from other samples", ylim=(low, high))
    ax.legend(fontsize="small")
