"""VYS's theory, drawn: the path to a KKT point, brackets around single samples, the √(d/m) law, other optimisers."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE, PURPLE, shades
from brittle.probes.interval import interval


def kkt(table: pd.DataFrame) -> Figure:
    """The relative KKT residual along training, with σ' fixed and with σ' free at the kinks."""
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.3), layout="constrained", sharey=True)
    scales = sorted(table["init_scale"].unique(), reverse=True)
    for ax, column, title in (
        (axes[0], "fixed", "$\\sigma'$ fixed to 0 or 1"),
        (axes[1], "free", "$\\sigma'$ free at the kinks (Clarke)"),
    ):
        for scale, colour in zip(scales, shades(len(scales)), strict=True):
            stats = table[table["init_scale"] == scale].groupby("log10_loss")[column].agg(["mean", "min", "max"])
            at = -stats.index.to_numpy()
            ax.plot(at, stats["mean"], marker="o", markersize=3.5, color=colour, label=f"initial weights × {scale:g}")
            ax.fill_between(at, stats["min"], stats["max"], color=colour, alpha=0.2, linewidth=0)
        ax.axvline(30, color=GREY, linestyle="--", linewidth=1.2)
        ax.annotate("the paper stops", (30, 0.98), xytext=(4, 0), textcoords="offset points", color=GREY, va="top")
        ax.set(xscale="log", ylim=(0, 1), xlabel="$-\\log_{10}$ loss", title=title)
    axes[0].set(ylabel="KKT residual\n$\\|\\theta-\\sum\\lambda_i y_i\\nabla N(x_i)\\|/\\|\\theta\\|$")
    axes[0].legend(loc="upper right", bbox_to_anchor=(1.0, 0.9))
    return figure


def brackets(table: pd.DataFrame) -> Figure:
    """Certified and attacked radius of each sample, the trained network beside Thm 3.1's."""
    table = table[table["seed"] == table["seed"].iloc[0]]
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.4), layout="constrained", sharey=True)
    attacked = table["attacked"]
    top = 1.08 * attacked[np.isfinite(attacked)].quantile(0.99)
    for ax, kind, title in (
        (axes[0], "trained", "The trained network"),
        (axes[1], "thm31", "Thm 3.1's network"),
    ):
        each = table[table["network"] == kind].sort_values("attacked").reset_index(drop=True)
        if kind == "trained":
            ax.plot(each.index, each["z"], ".", color=GREY, markersize=3, label="attacked by the universal $z$")
            ax.plot(
                each.index, each["crown"], ".", color=ORANGE, markersize=3, label="certified by linear bounds (CROWN)"
            )
        ax.plot(each.index, each["attacked"], color=BLUE, linewidth=2.2, label="best attack")
        ax.plot(each.index, each["certified"], color=GREEN, linewidth=1.2, linestyle="--", label="certified")
        width = 100 * (1 - (each["certified"] / each["attacked"]).median())
        ax.set(title=f"{title}: bracket {width:.2g} % wide", xlabel="training samples, sorted", ylim=(0, top))
    axes[0].set(ylabel="radius, $\\ell_2$")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, handlelength=1.5)
    return figure


def law(table: pd.DataFrame) -> Figure:
    """c against d/m where Thm 4.1 applies, beside √(d/m)."""
    table = table[(table["applies"] == 1) & (table["law"] == 1)]
    figure, ax = plt.subplots(figsize=(4.6, 3.4), layout="constrained")
    for world, marker in (("orthogonal", "o"), ("sphere", "s")):
        each = table[table["world"] == world]
        ds = sorted(each["d"].unique())
        for d, colour in zip(ds, shades(len(ds)), strict=True):
            some = each[each["d"] == d].groupby("m").mean(numeric_only=True).reset_index()
            ax.plot(some["d"] / some["m"], some["c"], marker, color=colour, markersize=5, label=f"{world}, $d={d}$")
    ratio = np.geomspace((table["d"] / table["m"]).min(), (table["d"] / table["m"]).max(), 50)
    ax.plot(ratio, np.sqrt(ratio), color="black", linestyle="--", linewidth=1.2, label="$\\sqrt{d/m}$")
    ax.set(xscale="log", yscale="log", xlabel="$d/m$", ylabel="size of $z$ that flips all samples")
    ax.set_title("Where Thm 4.1 applies, $c\\approx\\sqrt{d/m}$")
    ax.legend(fontsize="small")
    return figure


def optimisers(table: pd.DataFrame) -> Figure:
    """Every optimiser in one dimension, and how the radius of a single sample grows with d, at depth 2 and deeper."""
    depths = sorted(table["depth"].unique())
    figure, axes = plt.subplots(2, len(depths), figsize=(4.4 * len(depths), 6), layout="constrained", squeeze=False)
    top = 1.15 * (table["attacked"] / np.sqrt(table["d"])).max()
    for (above, below), depth in zip(axes.T, depths, strict=True):
        each = table[table["depth"] == depth]
        _by_rule(above, each, f"Depth {depth}")
        _by_dimension(below, each, top)
    axes[0, 0].legend(loc="upper right", bbox_to_anchor=(0.92, 1), fontsize="small")
    axes[1, 0].set(ylabel="attacked radius of the\nmedian sample, over $\\sqrt{d}$")
    figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _by_rule(ax: Axes, table: pd.DataFrame, title: str) -> None:
    """c of every optimiser where most of them were run, with the radii of single samples."""
    table = table[table["init_scale"] == table["init_scale"].max()]
    d = table.groupby("d")["rule"].nunique().idxmax()
    stats = table[table["d"] == d].groupby("rule", sort=False)[["c", "attacked"]].agg(["mean", "std"])
    at = np.arange(len(stats))[::-1]
    ax.barh(at, stats["c"]["mean"], xerr=stats["c"]["std"], color=GREY, height=0.55, label="$z$ flips all")
    ax.plot(stats["attacked"]["mean"], at, "|", color="black", markersize=13, markeredgewidth=2.2, linestyle="none")
    ax.plot([], [], color="black", linewidth=2.2, label="a single sample (median)")
    ax.axvline(np.sqrt(d), color="black", linestyle="--", linewidth=1.2, label="$\\sqrt{d}$")
    ax.set_yticks(at, [rule.replace("_", " ") for rule in stats.index])
    ax.set(title=f"{title}, $d={d}$", xlabel="size of the perturbation, $\\ell_2$", xlim=(0, 1.08 * np.sqrt(d)))


def _by_dimension(ax: Axes, table: pd.DataFrame, top: float) -> None:
    """The attacked radius over √d where m = d, which would not fall if networks were robust; with 95 % intervals."""
    table = table[table["m"] == table["d"]]
    table = table.assign(ratio=table["attacked"] / np.sqrt(table["d"]))
    grown = table.groupby("rule", sort=False)["d"].nunique()
    scales = sorted(table["init_scale"].unique(), reverse=True)
    for rule, colour in zip(grown.index[grown > 1], (BLUE, ORANGE, GREEN, PURPLE, GREY, "black"), strict=False):
        for n, scale in enumerate(scales):
            each = table[(table["rule"] == rule) & (table["init_scale"] == scale)].groupby("d")["ratio"]
            line, shift = ("-", "--", ":")[n % 3], 0.985 * 1.03**n  # side by side, so that all intervals are seen
            ds, (means, halves) = [*each.groups], zip(*map(interval, (values for _, values in each)), strict=True)
            name = f"{rule.replace('_', ' ')}, initial weights × {scale:g}"
            ax.errorbar(shift * np.array(ds), means, np.nan_to_num(halves), marker="o", markersize=4, capsize=2,
                        color=colour, linestyle=line, label=name)  # fmt: skip
    ds = sorted(table["d"].unique())
    ax.set(xscale="log", xlabel="$d = m$", ylim=(0, top))
    ax.set_xticks(ds, [f"{d}" for d in ds])
    ax.minorticks_off()
