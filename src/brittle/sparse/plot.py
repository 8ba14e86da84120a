"""Figures of FP's theorems on its sparse coding model.

Networks before adversarial training are orange, those after it blue; what is certified is green, what is random is
grey, and the mixture is purple. Hollow marks are for samples without the margin filter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE, PURPLE

NETWORKS = {"clean": ("before", ORANGE), "robust": ("after", BLUE)}
STARTS = {"random": "from random weights", "pure": "from pure features"}
WHEN = [Patch(color=colour, label=f"{when} adversarial training") for when, colour in NETWORKS.values()]
SMALL = {"fontsize": "small", "textcoords": "offset points"}


def about(figure: Figure, row: Mapping[str, float]) -> None:
    """Write the sizes above the panels, and whether samples were filtered."""
    told = "no margin filter"
    if row["margin"]:
        told = f"margin filter $|\\langle w^\\ast,z\\rangle|\\geq{row['margin']:g}$: the $z_j$ are not independent"
    figure.suptitle(f"$d={row['d']:g}$, $k={row['k']:g}$; {told}", x=0.01, ha="left", fontsize="small", color=GREY)


def starts_of(networks: pd.DataFrame) -> list[str]:
    """The kinds of start that were run, random weights first."""
    return [start for start in STARTS if start in set(networks["start"])]


def mean(table: pd.DataFrame, column: str, **where: str) -> float:
    """The mean over the rows with these values; nan if there are none."""
    for name, value in where.items():
        table = table[table[name] == value]
    return float(table[column].mean())


def number(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "–"


def _edges(shares: pd.Series) -> np.ndarray:
    return np.append(shares.index.get_level_values("low"), shares.index.get_level_values("high")[-1])


def mark(label: str, marker: str, line: str | tuple = "none", colour: str = "black", fill: str | None = None) -> Line2D:
    look = {"color": colour, "markerfacecolor": fill or colour, "markersize": 4.5}
    return Line2D([], [], marker=marker, linestyle=line, label=label, **look)


# --- Accuracy

ATTACKS = {"dense": ("dense, needs no network", "o", (0, (4, 2))), "fgm": ("FGM", "s", (0, (1, 1)))}
ATTACKS |= {"pgd": ("PGD", "D", "-")}


def accuracy(curves: pd.DataFrame, networks: pd.DataFrame) -> Figure:
    """Accuracy against the radius of the attack, before and after adversarial training, and what is certified."""
    starts, trained = starts_of(networks), networks["tau"].iloc[0]
    figure, axes = plt.subplots(1, len(starts), figsize=(8.2, 4.0), layout="constrained", sharey=True, squeeze=False)
    axes = axes[0]
    for ax, start, letter in zip(axes, starts, "ab", strict=False):
        some = curves[curves["start"] == start]
        _curves(ax, some, trained)
        at = some[np.isclose(some["tau"], trained)]
        left = [number(100 * mean(at, "accuracy", attack="pgd", network=name)) for name in NETWORKS]
        runs = f", {some['seed'].nunique()} seeds" if some["seed"].nunique() > 1 else ""
        ax.set_title(f"({letter}) {STARTS[start]}{runs}:\nPGD at {trained:g} leaves {left[0]} %, then {left[1]} %")
    axes[0].set(ylabel="test accuracy (%)", ylim=(-3, 104))
    handles = [*WHEN, *(mark(label, marker, line) for label, marker, line in ATTACKS.values())]
    handles.append(mark("random, before and after", "x", ":", GREY))
    if "certified" in set(curves["attack"]):
        handles.append(mark("certified, after (few samples)", "^", "-", GREEN))
        handles.append(Patch(color=GREEN, alpha=0.18, label="between certified and PGD"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.4)
    about(figure, networks.iloc[0])
    return figure


def _curves(ax: Axes, table: pd.DataFrame, trained: float) -> None:
    means = table.groupby(["network", "attack", "tau"])["accuracy"].mean() * 100
    ax.axvline(trained, color="black", linestyle=":", linewidth=1.0)
    ax.annotate("training", (trained, 0), xytext=(3, 14), **SMALL)
    looks = ATTACKS | {"random": ("", "x", ":")}
    for name, (_, colour) in NETWORKS.items():
        for attack, (_, marker, line) in looks.items():
            curve = pd.concat([means[name, "none"], means[name, attack]])
            ink, width = GREY if attack == "random" else colour, 2.0 if attack == "pgd" else 1.4
            ax.plot(curve.index, curve, marker=marker, markersize=4, linestyle=line, color=ink, linewidth=width)
    if ("robust", "certified") in means.index.droplevel("tau"):
        sure = means["robust", "certified"]
        most = means["robust", "pgd"].loc[sure.index]
        ax.fill_between(sure.index, sure, most, where=sure <= most, color=GREEN, alpha=0.18, linewidth=0)
        ax.plot(sure.index, sure, marker="^", markersize=5, color=GREEN)
    ax.set(xlabel="radius $\\tau$ of the perturbation, $\\ell_2$", xlim=(0, 1.03 * table["tau"].max()))
    ax.locator_params(axis="x", nbins=5)


# --- The mixture


def mixture(coefficients: pd.DataFrame, growth: pd.DataFrame, networks: pd.DataFrame) -> Figure:
    """The coefficients of words other than a neuron's own, and how they change in training from random weights."""
    figure = plt.figure(figsize=(8.2, 6.2), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.0, 1.15])
    starts, predicted = starts_of(networks), networks["predicted"].iloc[0]
    axes = top.subplots(1, len(starts), sharey=True, sharex=True, squeeze=False)[0]
    for ax, start, letter in zip(axes, starts, "ab", strict=False):
        _coefficients(ax, coefficients[coefficients["start"] == start])
        ax.axvline(predicted, color="black", linestyle="--", linewidth=1.2)
        ratio = [number(mean(networks, "ratio", start=start, network=name)) for name in NETWORKS]
        ax.set_title(f"({letter}) {STARTS[start]}:\nmedian mixture $\\beta/\\alpha$ {ratio[0]}, then {ratio[1]}")
    axes[0].set(ylabel="share of the coefficients (%)", yscale="log", ylim=(0.02, 100))
    axes[0].set_xlim(-max(0.06, predicted), max(0.12, 2 * predicted))
    axes[0].locator_params(axis="x", nbins=5)
    line = Line2D([], [], color="black", linestyle="--", label=f"predicted, $K/d={predicted:.2g}$")
    top.legend(handles=[*WHEN, line], loc="outside lower center", ncols=3)
    axes = bottom.subplots(1, 2)
    path, borders = _path(growth)
    _sizes(axes[0], path, starts[0])
    axes[1].plot(path["at"], 100 * path["accuracy"], color="black", label="no perturbation")
    label = f"dense perturbation, $\\tau={networks['tau'].iloc[0]:g}$"
    axes[1].plot(path["at"], 100 * path["dense"], color=PURPLE, linestyle=(0, (4, 2)), label=label)
    axes[1].set(ylabel="test accuracy (%)", ylim=(-3, 104))
    axes[1].set_title("(d) accuracy along the same training", pad=26)
    for ax in axes:
        _stretches(ax, borders)
        ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=3, fontsize="small", handlelength=1.6)
    about(figure, networks.iloc[0])
    return figure


def _coefficients(ax: Axes, table: pd.DataFrame) -> None:
    ax.axvline(0, color=GREY, linewidth=0.8)
    for name, (_, colour) in NETWORKS.items():
        found = table[table["network"] == name].groupby(["low", "high"])["share"].mean()
        if len(found):
            ax.stairs(100 * found, _edges(found), fill=True, color=colour, alpha=0.25)
            ax.stairs(100 * found, _edges(found), color=colour, linewidth=1.4)
    ax.set(xlabel="coefficient of another word / of the neuron's word")


def _path(growth: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, tuple[float, float]]]:
    """Means over seeds along the consecutive trainings, and where each training begins and ends."""
    parts, borders, begin = [], {}, 0.0
    for name in ("lottery", *NETWORKS):
        part = growth[growth["network"] == name].groupby("step").mean(numeric_only=True).reset_index()
        if len(part):
            borders[name] = begin, begin + part["step"].max()
            parts.append(part.assign(at=begin + part["step"]))
            begin = borders[name][1]
    return pd.concat(parts), borders


def _sizes(ax: Axes, path: pd.DataFrame, start: str) -> None:
    for column, label, look in (
        ("alpha", "largest, $\\alpha$", {"color": "black", "linewidth": 2.0}),
        ("b", "bias", {"color": "black", "linestyle": ":"}),
        ("second", "second largest", {"color": GREY}),
        ("rest", "others, r.m.s.", {"color": GREY, "linestyle": (0, (3, 1))}),
        ("beta", "mixture, mean $\\beta$", {"color": PURPLE, "linewidth": 2.0}),
    ):
        ax.plot(path["at"], path[column].where(path[column] > 0), label=label, **look)
    ax.set(yscale="log", ylabel="coefficient of a neuron")
    ax.set_title(f"(c) {STARTS[start]}: a neuron's coefficients", pad=26)


def _stretches(ax: Axes, borders: Mapping[str, tuple[float, float]]) -> None:
    colours = {"lottery": "white"} | {name: colour for name, (_, colour) in NETWORKS.items()}
    titles = {"lottery": "bias\ngrows", "clean": "clean\ntraining", "robust": "adversarial\ntraining"}
    for name, (begin, end) in borders.items():
        ax.axvspan(begin, end, color=colours[name], alpha=0.09, linewidth=0)
        where = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
        ax.annotate(titles[name], ((begin + end) / 2, 1.0), xytext=(0, 1), **where, **SMALL)
    ax.set(xlabel="step", xlim=(0, max(end for _, end in borders.values())))


# --- θ, the lottery and the density of perturbations

KINDS = {
    "start, clean": ("$\\theta(w_i^{(0)}, w_i)$", {"color": ORANGE}),
    "start, robust": ("$\\theta(w_i^{(0)}, w'_i)$", {"color": BLUE, "linestyle": (0, (3, 1))}),
    "clean, robust": ("$\\theta(w_i, w'_i)$", {"color": "black"}),
    "different neurons": ("$\\theta(w_i, w_j)$", {"color": GREY, "fill": True, "alpha": 0.4}),
}
BELOW = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 2, "fontsize": "small", "handlelength": 1.4}


def theta(table: pd.DataFrame, networks: pd.DataFrame) -> Figure:
    """FP Figure 2 on this model; where the winners of the lottery started; how dense perturbations are."""
    figure, axes = plt.subplots(1, 3, figsize=(8.6, 3.9), layout="constrained", width_ratios=[1.6, 0.95, 1.1])
    start = starts_of(networks)[0]
    _thetas(axes[0], table[table["start"] == start])
    axes[0].set_title(f"(a) {STARTS[start]}:\nhow alike features are")
    names = ("winner", "winner3", "winner_pot")
    shares = [mean(networks, name, start=start, network="clean") for name in names] + [1 / networks["d"].iloc[0]]
    for i, (share, colour) in enumerate(zip(shares, (ORANGE, "#E9AE80", PURPLE, GREY), strict=True)):
        axes[1].bar(i, 100 * share, color=colour, width=0.6)
        axes[1].annotate(number(100 * share), (i, np.nan_to_num(100 * share)), (0, 2), ha="center", **SMALL)
    axes[1].set_xticks(range(4), ["first", "first\n3", "in\n$S_{pot}$", "$1/d$"])
    axes[1].set(ylabel="pure neurons (%)", ylim=(0, 112), xlabel="the neuron's word\nin its first weights")
    axes[1].set_title("(b) who wins\nthe lottery")
    _densities(axes[2], networks)
    about(figure, networks.iloc[0])
    return figure


def _thetas(ax: Axes, table: pd.DataFrame) -> None:
    for kind, (label, look) in KINDS.items():
        one = table[table["of"] == kind]
        shares = one.groupby(["low", "high"])["share"].mean()
        told = f"{label}, median {one['median'].mean():.2f}"
        ax.stairs(100 * shares, _edges(shares), label=told, linewidth=1.6, **look)
    for limit in (0.2, 0.8):
        ax.axvline(limit, color="black", linestyle=":", linewidth=1.0)
    ax.set(xlabel="$\\theta$", ylabel="neurons, or pairs of neurons (%)", xlim=(0, 1), xticks=np.arange(6) / 5)
    ax.legend(**BELOW)


def _densities(ax: Axes, networks: pd.DataFrame) -> None:
    for i, start in enumerate(STARTS):
        for x, attack, marker in ((i - 0.15, "fgm", "s"), (i + 0.15, "pgd", "D")):
            found = [mean(networks, f"{attack}_l1_l2", start=start, network=name) for name in NETWORKS]
            ax.plot([x, x], found, color=GREY, linewidth=1.0, zorder=1)
            ax.scatter([x, x], found, color=[colour for _, colour in NETWORKS.values()], marker=marker, s=28, zorder=2)
    top = math.sqrt(networks["d"].iloc[0])
    for bound, label in ((1.0, "one word: 1"), (top, f"all words alike: $\\sqrt{{d}}={top:.3g}$")):
        ax.axhline(bound, color="black", linestyle=":", linewidth=1.0)
        ax.annotate(label, (-0.5, bound), (0, 3), **SMALL)
    ax.set_xticks(range(len(STARTS)), list(STARTS))
    ax.set(xlim=(-0.6, 1.6), ylim=(0, 1.15 * top), xlabel="start")
    ax.set(ylabel="$\\|M^\\top\\delta\\|_1\\,/\\,\\|M^\\top\\delta\\|_2$")
    ax.set_title("(c) how dense\nperturbations are")
    handles = [Patch(color=colour, label=when) for when, colour in NETWORKS.values()]
    ax.legend(handles=[*handles, mark("FGM", "s"), mark("PGD", "D")], **BELOW)
