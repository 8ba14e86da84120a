"""The figures of a user's network."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE

VECTORS = {
    "ascent": ("black", "-", "found by ascent on the network"),
    "z": (BLUE, "--", "$z=\\sum y_ix_i$, from the data alone"),
    "random": (GREY, "-", "random"),
}


def robust(table: pd.DataFrame) -> Figure:
    """The share of the samples that keep their class, against the radius: attacked from above, certified from below."""
    figure, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
    lines = {
        "pgd": (ORANGE, ":", "withstand PGD"),
        "nearest": (BLUE, "--", "no smaller perturbation was found"),
        "all": ("black", "-", "both"),
        "certified": (GREEN, "-", "certified: nothing within the radius flips them"),
    }
    for name, (colour, line, label) in lines.items():
        if name in table:
            ax.plot(table["radius"], 100 * table[name], color=colour, linestyle=line, label=label)
    ax.set(xlabel="$\\ell_2$ radius", ylabel="samples (%)", xlim=(0, table["radius"].iloc[-1]), ylim=(0, 103))
    ax.legend()
    return figure


def universal(curves: pd.DataFrame) -> Figure:
    """Accuracy, one class against the rest, against the size of one perturbation of all samples: mean over classes."""
    figure, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
    several = curves["class"].nunique() > 1
    for name, (colour, line, label) in VECTORS.items():
        # Classes share their sizes: each is the same multiple of one radius.
        of = curves[curves["vector"] == name].groupby("size")["accuracy"].agg(["mean", "min", "max"])
        ax.plot(of.index, 100 * of["mean"], color=colour, linestyle=line, label=label)
        if several:
            ax.fill_between(of.index, 100 * of["min"], 100 * of["max"], color=colour, alpha=0.12, linewidth=0)
    ax.axhline(50, color=GREY, linewidth=0.8, linestyle=":")
    ax.set(xlabel="$\\ell_2$ size of the perturbation", ylabel="accuracy (%)", ylim=(0, 103))
    ax.set_xlim(0, curves["size"].max())
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def bracket(samples: pd.DataFrame) -> Figure:
    """Every sample's smallest perturbation found, sorted, and below it the radius that is proved."""
    figure, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
    samples = samples.sort_values("attacked", kind="stable").reset_index(drop=True)
    share = 100 * (samples.index + 0.5) / len(samples)
    ax.plot(share, samples["attacked"], color="black", label="smallest perturbation found")
    if samples["certified"].notna().any():
        ax.plot(share, samples["certified"], color=GREEN, linewidth=0.9, label="certified radius")
    ax.set(xlabel="samples, sorted (%)", ylabel="$\\ell_2$ size", xlim=(0, 100))
    ax.set_ylim(bottom=0)
    ax.legend()
    return figure
