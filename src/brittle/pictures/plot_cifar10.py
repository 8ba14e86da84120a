"""FP §8 on CIFAR-10 in numbers: how similar features stay (Fig 2), how they change (Fig 5, 8, 9), and Table 1.

Random weights are grey, clean training is orange, adversarial training is blue, and its control (as long, but without
an attacker) is green.
"""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from brittle.drawing import tables
from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE, shades
from brittle.drawing.tables import NONE

NETWORKS = {"init": ("random", GREY), "clean": ("clean", ORANGE)}
NETWORKS |= {"control": ("control", GREEN), "robust": ("robust", BLUE)}
SMALL = {"fontsize": "small", "textcoords": "offset points"}


def net_title(net: str) -> str:
    return "AlexNet" if net == "alexnet" else net.replace("resnet", "ResNet")


def attacker_title(name: str) -> str:
    """An attacker's name as in the paper: ℓ∞(8/255), ℓ2(1, 0.25)."""
    norm, *sizes = name.split("-")
    return f"ℓ∞({sizes[0]}/255)" if norm == "linf" else f"ℓ2({', '.join(sizes)})"


def nets(table: pd.DataFrame) -> list[str]:
    return list(table["net"].unique()) if len(table) else []


def mean(table: pd.DataFrame, column: str, **where: object) -> float:
    """The mean over the rows with these values; nan if there are none, or no such column."""
    for name, value in where.items():
        table = table[table[name] == value]
    return float(table[column].mean()) if column in table else float("nan")


def number(value: float, form: str = ".2f") -> str:
    return format(value, form) if np.isfinite(value) else NONE


def about(figure: Figure, accuracy: pd.DataFrame) -> None:
    """Write the sizes above the panels."""
    first = accuracy.iloc[0]
    seeds = accuracy["seed"].nunique()
    runs = f", {seeds} seeds" if seeds > 1 else ""
    told = (
        f"{first['samples']:,.0f} training pictures{runs}; robust: trained against {attacker_title(first['attacker'])}"
    )
    told += "; control: as long without an attacker"
    figure.suptitle(told, x=0.01, ha="left", fontsize="small", color=GREY)


# --- θ

KINDS = {
    "init, clean": ("$\\theta$(random, clean)", {"color": ORANGE, "marker": "o"}),
    "init, robust": ("$\\theta$(random, robust)", {"color": BLUE, "marker": "D"}),
    "clean, robust": ("$\\theta$(clean, robust)", {"color": "black", "marker": "o"}),
    "clean, control": ("$\\theta$(clean, control)", {"color": GREEN, "marker": "s"}),
    "different neurons": ("different neurons", {"color": GREY, "marker": "x"}),
}
LIMITS = 0.2, 0.8  # FP's: θ is at most the first for neurons that moved away, at least the second for those that stayed


def theta(table: pd.DataFrame, layers: pd.DataFrame, accuracy: pd.DataFrame) -> Figure:
    """FP Figure 2: θ of a layer's neurons between two networks; layers after the first are above frozen robust ones."""
    names = nets(table)
    counts = [table.loc[table["net"] == net, "layer"].nunique() for net in names]
    size = (max(4.8, 1.4 + (1.5 if sum(counts) < 6 else 1.1) * sum(counts) + 0.6 * len(names)), 4.4)
    figure, axes = plt.subplots(
        1, len(names), figsize=size, layout="constrained", sharey=True, squeeze=False, width_ratios=counts
    )
    for ax, net, letter in zip(axes[0], names, "abcdefgh", strict=False):
        _thetas(ax, table[table["net"] == net], layers[layers["net"] == net])
        by = table[table["net"] == net].groupby(["layer", "of"])["median"].mean().unstack()
        left, stayed, control = (
            tables.span(by.get(of), ".2f") for of in ("init, clean", "clean, robust", "clean, control")
        )
        told = f"after clean training $\\theta$ is {left}\nwith random weights; with clean weights it is\n"
        told += f"{stayed} after adversarial training (control {control})"
        ax.set_title(f"{f'({letter}) ' if len(names) > 1 else ''}{net_title(net)}: {told}")
    axes[0, 0].set(ylabel="$\\theta$: median, and 10 to 90 % of neurons", ylim=(-0.02, 1.03), yticks=np.arange(6) / 5)
    handles = [Line2D([], [], markersize=5, label=label, linewidth=2, **look) for label, look in KINDS.values()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    about(figure, accuracy)
    return figure


def _thetas(ax: Axes, table: pd.DataFrame, layers: pd.DataFrame) -> None:
    numbers = sorted(table["layer"].unique())
    for limit in LIMITS:
        ax.axhline(limit, color="black", linestyle=":", linewidth=1.0)
    for i, layer in enumerate(numbers):
        for j, (of, (_, look)) in enumerate(KINDS.items()):
            some = table[(table["layer"] == layer) & (table["of"] == of)][["low", "median", "high"]].mean()
            x = i + 0.15 * (j - 2)
            ax.plot([x, x], some[["low", "high"]], color=look["color"], linewidth=2)
            ax.plot([x], [some["median"]], markersize=6, linestyle="none", **look)
    ticks = [f"layer {layer}\n{_withstands(layers[layers['layer'] == layer])}" for layer in numbers]
    ax.set_xticks(range(len(numbers)), ticks)
    ax.tick_params(axis="x", length=0)
    ax.set(xlim=(-0.5, len(numbers) - 0.5))
    ax.set_xlabel("robust accuracy, clean → robust network\n(layers below frozen at robust weights)")


def _withstands(layer: pd.DataFrame) -> str:
    clean, robust, control = (
        number(100 * mean(layer, "robust", network=name), ".0f") for name in ("clean", "robust", "control")
    )
    return f"{clean} → {robust} %\n(control {control} %)"


# --- Along training

STRETCHES = {"clean": "clean", "robust": "robust", "again": "again"}  # consecutive trainings, with short titles


def path(table: pd.DataFrame, activity: pd.DataFrame, accuracy: pd.DataFrame) -> Figure:
    """FP Figures 5, 8 and 9: the first layer's filters along clean, adversarial and clean training; active neurons."""
    names = nets(table)
    figure, axes = plt.subplots(
        len(names),
        3,
        figsize=(8.8, 0.6 + 3.3 * len(names)),
        layout="constrained",
        squeeze=False,
        width_ratios=[1.25, 1.25, 1],
    )
    for row, net in zip(axes, names, strict=True):
        _path_row(row, table[table["net"] == net], activity[activity["net"] == net], net_title(net))
    about(figure, accuracy)
    return figure


def _path_row(axes: np.ndarray, table: pd.DataFrame, activity: pd.DataFrame, name: str) -> None:
    means = table.groupby(["network", "epoch"]).mean(numeric_only=True)
    starts, begin = {}, 0
    for network in STRETCHES:
        if network in means.index:
            starts[network] = begin
            begin += means.loc[network].index.max()
    dashed = {"linestyle": (0, (3, 1.5)), "linewidth": 1.3}
    for end in ("init", "clean", "robust"):
        words = NETWORKS[end][0]
        for network, at in starts.items():
            part = means.loc[network]
            look = {"color": NETWORKS[end][1], "label": words if network == "clean" else None}
            axes[0].plot(at + part.index, part[f"theta_{end}"], **look)
        if "control" in means.index and "robust" in starts:
            part = means.loc["control"]
            axes[0].plot(starts["robust"] + part.index, part[f"theta_{end}"], color=NETWORKS[end][1], **dashed)
    colours = {"clean": ORANGE, "robust": BLUE, "again": ORANGE}
    for network, at in starts.items():
        part = means.loc[network]
        axes[1].plot(at + part.index, part["variation"], color=colours[network])
    if "control" in means.index and "robust" in starts:
        part = means.loc["control"]
        axes[1].plot(starts["robust"] + part.index, part["variation"], color=GREEN, label="control", **dashed)
        axes[1].legend(loc="upper right", fontsize="small", handlelength=1.6)
        axes[0].plot([], [], color="black", label="control", **dashed)
    for limit in LIMITS:
        axes[0].axhline(limit, color="black", linestyle=":", linewidth=1.0)
    ends = {network: means.loc[network].iloc[-1] for network in means.index.get_level_values(0).unique()}
    told = [
        number(ends[network]["variation"], ".3f") if network in ends else NONE for network in (*STRETCHES, "control")
    ]
    theta = [number(ends[network]["theta_clean"]) if network in ends else NONE for network in ("robust", "again")]
    axes[0].set_title(f"{name}: $\\theta$ with clean filters is\n{theta[0]} when robust, {theta[1]} again", pad=17)
    axes[1].set_title(f"their total variation:\n{' → '.join(told[:3])} (control {told[3]})", pad=17)
    axes[0].set(ylabel="median $\\theta$ of the first layer", ylim=(0, 1.04))
    look = {"fontsize": "small", "title_fontsize": "small", "handlelength": 1.6}
    axes[0].legend(loc="center", bbox_to_anchor=(0.36, 0.5), title="with", **look)
    axes[1].set(ylabel="total variation of filters")
    for ax in axes[:2]:
        _stretches(ax, starts, begin)
    _activity(axes[2], activity[activity["network"] == "clean"])


def _stretches(ax: Axes, starts: Mapping[str, int], end: int) -> None:
    borders = [*starts.values(), end]
    for network, low, high in zip(starts, borders, borders[1:], strict=False):
        if low:
            ax.axvline(low, color="black", linewidth=0.8)
        where = {"ha": "center", "xycoords": ("data", "axes fraction")}
        ax.annotate(STRETCHES[network], ((low + high) / 2, 1.0), xytext=(0, 3), color=GREY, **where, **SMALL)
    ax.set(xlabel="epoch (again: cleanly)", xlim=(0, max(end, 1)))
    ax.locator_params(axis="x", integer=True)


def _activity(ax: Axes, table: pd.DataFrame) -> None:
    """The share of active neurons, in each layer and in all of them."""
    means = table.groupby("epoch").mean(numeric_only=True)
    columns = [name for name in means if name.startswith("active_") and means[name].notna().any()]
    for i, (column, colour) in enumerate(zip(columns, shades(len(columns)), strict=True)):
        label = f"layer {column.removeprefix('active_')}" if len(columns) < 7 or i in (0, len(columns) - 1) else None
        ax.plot(means.index, 100 * means[column], color=colour, linewidth=1.2, label=label)
    ax.plot(means.index, 100 * means["active"], color="black", linewidth=2.2, label="all")
    first, last = (number(100 * means["active"].iloc[i], ".0f") if len(means) else NONE for i in (0, -1))
    ax.set_title(f"active neurons {first} → {last} %\nin clean training", pad=17)
    ax.set(xlabel="epoch", ylabel="active (%)", xlim=(0, max(1, means.index.max())))
    ax.set_ylim(0, None)
    ax.locator_params(axis="x", integer=True)
    ax.legend(loc="lower left", fontsize="small", ncols=2, handlelength=1.2, columnspacing=1.0)


# --- Table 1: robust (clean) accuracy in %, ResNet-34

PAPER = {
    "linf-4": ("0.0 (93.9)", "61.4 (82.3)", "61.9 (83.9)"),
    "linf-8": ("0.0 (93.9)", "45.7 (71.6)", "46.0 (73.7)"),
    "l2-0.5-0.12": ("0.0 (93.9)", "59.8 (78.3)", "60.0 (79.2)"),
    "l2-1-0.25": ("0.0 (93.9)", "42.3 (64.3)", "42.2 (65.5)"),
}
TRAININGS = ("clean training", "adversarial training, from random weights", "adversarial training, from clean weights")


def table1(accuracy: pd.DataFrame) -> str:
    """Robust (clean) accuracy under each attacker, of networks that are trained cleanly or against it."""
    ours = list(accuracy["attacker"].unique())
    columns = [*PAPER, *(name for name in ours if name not in PAPER)]
    rows = [
        [
            "paper, ResNet-34" if i == 0 else "",
            training,
            *(PAPER[name][i] if name in PAPER else NONE for name in columns),
        ]
        for i, training in enumerate(TRAININGS)
    ]
    for net in nets(accuracy):
        t = accuracy[accuracy["net"] == net]
        for i, training in enumerate((*TRAININGS, "clean training, then as long again (control)")):
            found = [_entry(t, name, _networks(name, ours[0])[i]) for name in columns]
            rows.append([f"here, {net_title(net)}" if i == 0 else "", training, *found])
    first, seeds = accuracy.iloc[0], accuracy["seed"].nunique()
    told = (
        "Table 1: robust accuracy in % (clean accuracy in %) on CIFAR-10, by the attacker that networks are trained "
        f"and tested against. Here: {first['samples']:,.0f} training pictures (paper: 50,000), clean accuracy on "
        f"{first['test']:,.0f} test pictures, robust accuracy on {first['attacked']:,.0f} of them, "
        f"{'one network each' if seeds == 1 else f'means over {seeds} seeds'}. ℓ2(ε, σ) is with noise, ℓ2(ε) without."
    )
    return tables.table(told, ["", "Training", *map(attacker_title, columns)], rows)


def _networks(attacker: str, main: str) -> tuple[str, ...]:
    return "clean", f"{attacker}.random", "robust" if attacker == main else f"{attacker}.clean", "control"


def _entry(table: pd.DataFrame, attacker: str, network: str) -> str:
    right = [100 * mean(table, kind, attacker=attacker, network=network) for kind in ("robust", "accuracy")]
    return f"{right[0]:.1f} ({right[1]:.1f})" if np.isfinite(right).all() else NONE
