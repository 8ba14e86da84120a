"""Draw SB Theorem 1, f*, and when adversarial training goes beyond S."""

from __future__ import annotations

import re
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from brittle.drawing.style import BLUE, GREEN, GREY, PURPLE
from brittle.slabs.plot import VERSIONS, between, counted, plain_ticks
from brittle.worlds.slabs import title as world_title

# --- Theorem 1


def lsn(table: pd.DataFrame) -> Figure:
    """Weights of the linear, the slab and the noise coordinates after training on LSN data, against d (Thm 1)."""
    table = table[(table["margin"] == 1) & (table["units"] == table["units"].min())]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.6), layout="constrained")
    ds = np.sort(table["d"].unique()).astype(float)
    for column, label, colour in (
        ("linear", "linear, $|w_{1j}|$", PURPLE),
        ("noise", "noise, $\\|w_{3:d,j}\\|_2$", GREY),
        ("slab", "3-slab, $|w_{2j}|$", GREEN),
    ):
        _band(left, table, "d", column, colour, label)
    predicted = table.groupby("d")["predicted"].mean()
    look = {"color": "black", "linewidth": 1.2, "zorder": 3}
    left.plot(predicted.index, predicted, linestyle="--", label="Thm 1: $\\eta\\hat{t}/(2\\sqrt{k})$", **look)
    for column in ("slab", "noise"):
        start = table.loc[table["d"] == ds[0], column].mean()
        label = "$\\propto d^{-1/2}$" if column == "slab" else None
        left.plot(ds, start * np.sqrt(ds[0] / ds), linestyle=":", label=label, **look)
    low = table["slab"].min()
    left.set(xscale="log", yscale="log", ylim=(0.6 * low, None), ylabel="weight, mean over hidden units $j$")
    apart = 100 * np.abs(table["linear"] / table["predicted"] - 1).max()
    units, seeds = table["units"].iloc[0], table["seed"].nunique()
    left.set_title(f"(a) The linear weight is within {apart:.2g} %\nof Thm 1's")

    _band(right, table, "d", "ratio", BLUE, "$|w_{1j}|\\,/\\,|w_{2j}|$")
    ratio = table.groupby("d")["ratio"].mean()
    right.plot(ds, ratio.iloc[0] * np.sqrt(ds / ds[0]), linestyle=":", label="$\\propto d^{1/2}$", **look)
    right.set(xscale="log", yscale="log", ylabel="linear weight / slab weight")
    grows = f"grows as $d^{{\\,{np.polyfit(np.log(ds), np.log(ratio), 1)[0]:.2f}}}$" if len(ds) > 1 else "at one $d$"
    errors = 100 * table["error"].min(), 100 * table["error"].max()
    right.set_title(f"(b) Their ratio {grows};\ntest error {between(*errors, '.2g')} %")
    for ax in (left, right):
        plain_ticks(ax, ds)
        ax.set(xlabel=f"dimension $d$ ($k={units:g}$ units, {counted(seeds, 'seed')})")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, handlelength=1.8)
    right.legend(loc="lower right")
    right.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    right.yaxis.set_major_formatter("{x:g}")
    right.yaxis.set_minor_locator(NullLocator())
    return figure


def _band(ax: Axes, table: pd.DataFrame, by: str, column: str, colour: str, label: str) -> None:
    """Plot the mean, with the range from the smallest to the largest."""
    stats = table.groupby(by)[column].agg(["mean", "min", "max"])
    ax.plot(stats.index, stats["mean"], marker="o", markersize=4, color=colour, label=label)
    ax.fill_between(stats.index, stats["min"], stats["max"], color=colour, alpha=0.2, linewidth=0)


def _legends(*axes: Axes) -> tuple[list[object], list[str]]:
    handles, labels = [], []
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.append(handle)
            labels.append(label)
    return handles, labels


# --- f*


def f_star(table: pd.DataFrame, adversarial: pd.DataFrame) -> Figure:
    """The distance to the boundary of f* against d; and, at fixed d, its robustness beside networks', in each norm."""
    figure, axes = plt.subplots(1, 3, figsize=(9.0, 4.2), layout="constrained", width_ratios=[1.2, 1, 1])
    _distances(axes[0], table)
    if "momentum" in adversarial:  # with it training comes farther
        adversarial = adversarial[adversarial["momentum"] == adversarial["momentum"].max()]
    for ax, norm, symbol in ((axes[1], "l2", "\\ell_2"), (axes[2], "linf", "\\ell_\\infty")):
        _robust(ax, adversarial, norm, symbol)
    axes[1].set(ylabel="robust test accuracy (%)")
    axes[2].sharey(axes[1])
    axes[2].tick_params(labelleft=False)
    figure.legend(*_legends(*axes[:2]), loc="outside lower center", ncols=4, columnspacing=1.2, fontsize="small")
    return figure


def _distances(ax: Axes, table: pd.DataFrame) -> None:
    by = table.groupby("d")
    middle = by["upper"].median()
    ax.fill_between(middle.index, by["lower"].min(), by["upper"].max(), color=BLUE, alpha=0.2, linewidth=0)
    ax.plot(middle.index, by["lower"].median(), color=BLUE, linewidth=2.6, label="(a) $f^\\ast$: at least")
    ax.plot(middle.index, middle, "--o", color="black", markersize=4, linewidth=1, label="(a) $f^\\ast$: at most")
    ax.plot(
        middle.index,
        by["certified"].min(),
        "-s",
        color=GREEN,
        markersize=3.5,
        label="(a) $f^\\ast$: Lipschitz certificate",
    )
    simple = by["simple"]
    ax.fill_between(middle.index, simple.min(), simple.max(), color=PURPLE, alpha=0.15, linewidth=0)
    ax.plot(middle.index, simple.median(), "-o", color=PURPLE, markersize=4, label="(a) $S$ alone: $|x_S|$")
    ds = middle.index.to_numpy(dtype=float)
    ax.plot(
        ds, middle.iloc[-1] * np.sqrt(ds / ds[-1]), ":", color="black", linewidth=1.6, label="(a) $\\propto\\sqrt{d}$"
    )
    ax.set(xscale="log", yscale="log", xlabel="dimension $d$", ylabel="distance to the boundary, $\\ell_2$")
    grows = f"grows as $d^{{\\,{np.polyfit(np.log(ds), np.log(middle), 1)[0]:.2f}}}$" if len(ds) > 1 else "at one $d$"
    ax.set_title(f"(a) {world_title(table['world'].iloc[0])}: $f^\\ast$'s median\ndistance {grows}")
    plain_ticks(ax, ds)


def _robust(ax: Axes, table: pd.DataFrame, norm: str, symbol: str) -> None:
    """Accuracy of every network at every radius under the attack, beside what is certified for f*."""
    found = {float(m[1]): m[0] for m in (re.fullmatch(rf"{norm}_([\d.e+-]+)", column) for column in table) if m}
    radii = sorted(found)
    for (trained, eps), colour, style in zip(*_looks(table), strict=True):
        some = table[(table["norm"] == trained) & (table["eps"] == eps)]
        means = [some["standard_accuracy"].mean(), *(some[found[radius]].mean() for radius in radii)]
        label = "standard training" if trained == "none" else f"{_NORMS[trained]}, $\\epsilon={eps:g}$"
        ax.plot([0, *radii], 100 * np.array(means), style, color=colour, marker="o", markersize=3.5, label=label)
    best = [100 * table[f"{found[radius]}_f_star"].min() for radius in radii]
    ax.plot(radii, best, "-", color=BLUE, marker="D", markersize=5, linewidth=2.4, label="$f^\\ast$, certified")
    told = ""
    if radii:
        networks = 100 * table.groupby(["norm", "eps"])[found[radii[-1]]].mean()
        told = f", at {radii[-1]:g}: $f^\\ast$ {best[-1]:.3g} %,\n"
        told += f"networks {between(networks.min(), networks.max(), '.3g')} %"
    panel = "(b)" if norm == "l2" else "(c)"
    ax.set(title=f"{panel} ${symbol}${told}", xlabel=f"radius, ${symbol}$", ylim=(-3, 106))
    ax.axhline(0, color="black", linewidth=0.5)


_NORMS = {"l2": "trained in $\\ell_2$", "linf": "trained in $\\ell_\\infty$"}


def _looks(table: pd.DataFrame) -> tuple[list[tuple[str, float]], list[object], list[str]]:
    """Every kind of training with a colour and a line style: one hue per norm, darker for a larger radius."""
    kinds = [(norm, eps) for norm, eps in table[["norm", "eps"]].drop_duplicates().itertuples(index=False)]
    colours, styles = [], []
    for norm, eps in kinds:
        radii = sorted(e for n, e in kinds if n == norm)
        share = (radii.index(eps) + 1) / len(radii)
        scale = {"none": "Greys", "l2": "Oranges", "linf": "Purples"}[norm]
        colours.append(plt.get_cmap(scale)(1.0 if norm == "none" else 0.4 + 0.5 * share))
        styles.append({"none": "-", "l2": "--", "linf": "-."}[norm])
    return kinds, colours, styles


# --- Adversarial training


def adversarial(path: pd.DataFrame) -> Figure:
    """What adversarially trained networks rely on: (a) against the l2 radius, (b, c) along training (S12b)."""
    figure, axes = plt.subplots(1, 3, figsize=(9.0, 4.0), layout="constrained", sharey=True)
    _against_radius(axes[0], path)
    for ax, name, panel in ((axes[1], "s", "b"), (axes[2], "rest", "c")):
        _along_training(ax, path, name)
        ax.set(title=f"({panel}) Along training,\n{VERSIONS[name][0]}")
    for ax in axes:
        ax.axhline(0.5, color="black", linestyle=":", linewidth=1.0)
    axes[0].set(ylim=(0.42, 1.03), ylabel="area under ROC")
    figure.legend(*_legends(*axes[:2]), loc="outside lower center", ncols=4, columnspacing=1.2, fontsize="small")
    return figure


def _against_radius(ax: Axes, path: pd.DataFrame) -> None:
    """The end of every training in l2; a radius of 0 is training without an attack."""
    last = path.loc[path.groupby(_TRAINING)["updates"].idxmax()]
    last = last[last["norm"] != "linf"]
    for (momentum, some), (name, marker) in product(last.groupby("momentum"), (("rest", "s"), ("s", "o"))):
        label, colour = VERSIONS[name]
        stats = some.groupby("eps")[f"{name}_auc_roc"].agg(["mean", "min", "max"])
        look = {"color": colour, "marker": marker, "markersize": 4, "linestyle": _style(momentum, path)}
        ax.plot(stats.index, stats["mean"], label=f"(a) {label}, momentum {momentum:g}", **look)
        ax.fill_between(stats.index, stats["min"], stats["max"], color=colour, alpha=0.2, linewidth=0)
    most, seeds = last["epochs"].max(), last["seed"].nunique()
    title = f"(a) After at most {most:g} epochs\n({counted(seeds, 'seed')})"
    ax.set(xlabel="radius of training $\\epsilon$, $\\ell_2$", title=title)


def _along_training(ax: Axes, path: pd.DataFrame, name: str) -> None:
    for (trained, eps), colour, _ in zip(*_looks(path), strict=True):
        for momentum, some in path[(path["norm"] == trained) & (path["eps"] == eps)].groupby("momentum"):
            mean = some.groupby("updates")[f"{name}_auc_roc"].mean()
            label = "no attack" if trained == "none" else f"{_NORMS[trained]}, $\\epsilon={eps:g}$"
            look = {"color": colour, "marker": ".", "linestyle": _style(momentum, path)}
            ax.plot(mean.index, mean, label=label if momentum == path["momentum"].max() else None, **look)
    ax.set(xlabel="updates")


_TRAINING = ["norm", "eps", "momentum", "seed"]


def _style(momentum: float, path: pd.DataFrame) -> str:
    """Dotted is the smaller of two momenta."""
    return "-" if momentum == path["momentum"].max() else ":"
