"""FP §8 on CIFAR-10 in pictures, with numbers beside them.

Filters (Fig 1), perturbations (Fig 7), features (Fig 10), and pictures as sparse combinations of filters (Fig 4, 12).
`images` are the tensors that the stages saved, by name. Colours are those of `plot_cifar10`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE
from brittle.drawing.tiles import photo, shifted, show, signed
from brittle.pictures.plot_cifar10 import NETWORKS, about, mean, net_title, nets, number

Images = Mapping[str, np.ndarray]
LARGE = 5  # pixels per side; smaller filters show little and have no low frequencies
GRID = 8  # filters per side
SMALL = {"fontsize": "small", "textcoords": "offset points"}
PATH = ("init", "clean", "robust")  # networks whose pictures are shown


def _parts(figure: Figure, n: int) -> Sequence[SubFigure]:
    """The parts of the figure for each network, one below the other."""
    return np.atleast_1d(figure.subfigures(max(1, n), 1))


def _dots(ax: Axes, table: pd.DataFrame, columns: Mapping[str, str], names: Sequence[str]) -> None:
    """Plot a column of numbers for each of `columns`, with a mark for each network and seed."""
    for i, column in enumerate(columns):
        for name, step in zip(names, np.linspace(-0.18, 0.18, len(names)), strict=True):
            found = table.loc[table["network"] == name, column].dropna() if column in table else ()
            if len(found):
                ax.plot(np.full(len(found), i + step), found, "o", color=NETWORKS[name][1], markersize=6)
    ax.set_xticks(range(len(columns)), list(columns.values()))
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.5, len(columns) - 0.5)


def _marks(names: Sequence[str]) -> list[Line2D]:
    return [
        Line2D([], [], linestyle="none", marker="o", markersize=6, color=NETWORKS[name][1], label=NETWORKS[name][0])
        for name in names
    ]


# --- Filters


def filters(images: Images, features: pd.DataFrame, accuracy: pd.DataFrame) -> Figure:
    """FP Figure 1: the same filters of the first layer before training, after clean, and after adversarial training."""
    names = [net for net in nets(features) if f"{net}.filters.clean" in images]
    large = [net for net in names if images[f"{net}.filters.clean"].shape[-1] > LARGE]
    names = large or names
    figure = plt.figure(figsize=(8.8, 2.75 * len(names) + 0.3), layout="constrained")
    for part, net in zip(_parts(figure, len(names)), names, strict=False):
        axes = part.subplots(1, 4, width_ratios=[1, 1, 1, 0.7])
        for ax, name in zip(axes, PATH, strict=False):
            w = images.get(f"{net}.filters.{name}", np.zeros((0, 3, 1, 1)))[: GRID * GRID]
            show(ax, [[signed(each) for each in w[i : i + GRID]] for i in range(0, len(w), GRID)])
            ax.set_title(NETWORKS[name][0], loc="center", color=NETWORKS[name][1])
        column = "high_frequency" if net in large else "variation"
        words = "high-frequency share" if net in large else "total variation"
        some = features[(features["net"] == net) & (features["of"] == "filters")]
        _bars(axes[3], some, column, words)
        told = {name: number(mean(some, column, network=name)) for name in NETWORKS}
        part.suptitle(
            f"{net_title(net)}'s filters: {words} {told['init']} → {told['clean']} → {told['robust']} "
            f"(control {told['control']})",
            x=0.01, ha="left", weight="bold", size="medium",
        )  # fmt: skip
    about(figure, accuracy)
    return figure


def _bars(ax: Axes, table: pd.DataFrame, column: str, words: str) -> None:
    """Plot the mean over seeds of each network, and the single seeds if there are several."""
    for i, (name, (_, colour)) in enumerate(NETWORKS.items()):
        found = table.loc[table["network"] == name, column].dropna()
        if len(found):
            ax.barh(-i, found.mean(), color=colour, height=0.7)
            ax.plot(found, np.full(len(found), -i), ".", color="black", markersize=3 if len(found) > 1 else 0)
            ax.annotate(number(found.mean()), (found.max(), -i), (4, 0), va="center", **SMALL)
    ax.set_yticks(-np.arange(len(NETWORKS)), [name for name, _ in NETWORKS.values()])
    ax.tick_params(axis="y", length=0)
    ax.margins(x=0.22)
    ax.set_xlim(0, None)
    ax.set(xlabel=f"{words}, median")


# --- Perturbations

BASES = {"pixels": "pixels", "dct": "cosines", "haar": "Haar\nwavelets"}
PERTURBED = ("clean", "control", "robust")
NOISE = math.sqrt(2 / math.pi), math.sqrt(2)  # density and total variation of white noise


def perturbations(images: Images, table: pd.DataFrame, accuracy: pd.DataFrame) -> Figure:
    """FP Figure 7: pictures, their perturbations for the clean and the robust network, and how dense these are."""
    names = nets(table)
    figure = plt.figure(figsize=(8.8, 2.9 * len(names) + 0.2), layout="constrained")
    for part, net in zip(_parts(figure, len(names)), names, strict=False):
        ax, dense, rough = part.subplots(1, 3, width_ratios=[2.6, 1.5, 0.8])
        some = table[table["net"] == net]
        _perturbed(ax, images, net)
        told = {name: number(mean(some, "haar", network=name)) for name in PERTURBED}
        ax.set_title(f"{net_title(net)}: perturbations,\neach scaled by its largest value")
        _dots(dense, some, BASES, PERTURBED)
        dense.set_title(f"density in wavelets {told['clean']} → {told['robust']}\n(control {told['control']})")
        dense.set(ylabel="$\\|\\delta\\|_1\\,/\\,(\\sqrt{n}\\,\\|\\delta\\|_2)$, median", ylim=(0, 1))
        told = {name: number(mean(some, "variation", network=name)) for name in PERTURBED}
        _dots(rough, some, {"variation": ""}, PERTURBED)
        rough.set_title(f"total variation\n{told['clean']} → {told['robust']}")
        rough.set(ylim=(0, 1.75), ylabel="total variation, median")
        for each, level in zip((dense, rough), NOISE, strict=True):
            each.axhline(level, color=GREY, linestyle=":", linewidth=1.2)
            each.annotate("white noise", (each.get_xlim()[0], level), (2, 3), color=GREY, **SMALL)
        dense.legend(handles=_marks(PERTURBED), loc="lower left", fontsize="small", handletextpad=0.2)
    about(figure, accuracy)
    return figure


def _perturbed(ax: Axes, images: Images, net: str) -> None:
    """Show the pictures of the Lasso and their perturbations; without those, the first pictures."""
    kept = f"{net}.clean_delta" in images
    found = images.get(f"{net}.pictures" if kept else "examples", ())
    rows = {"picture": [shifted(x) if kept else photo(x) for x in found]}
    for name in ("clean", "robust"):
        deltas = images.get(f"{net}.{name}_delta" if kept else f"{net}.delta.{name}", ())
        rows[f"perturbation,\n{name} network"] = [signed(delta) for delta in deltas]
    show(ax, list(rows.values()), list(rows))
    if any(each is None for row in rows.values() for each in row):
        ax.set_xlabel("white: labelled wrong without perturbation", fontsize="small")


# --- Visualised features


def features(images: Images, table: pd.DataFrame, accuracy: pd.DataFrame) -> Figure:
    """FP Figure 10: pictures that excite the first neurons of a layer, by plain gradient ascent."""
    table = table[table["of"] == "visualised"]
    names = nets(table)
    counts = {net: table.loc[table["net"] == net, "layer"].nunique() for net in names}
    heights = [0.8 + 0.45 * max(counts[net], 3) for net in names] or [2.0]
    figure = plt.figure(figsize=(8.8, sum(heights) + 0.3), layout="constrained")
    parts = np.atleast_1d(figure.subfigures(max(1, len(names)), 1, height_ratios=heights))
    for part, net in zip(parts, names, strict=False):
        some = table[table["net"] == net]
        layers = sorted(some["layer"].unique())
        axes = part.subplots(1, 4, width_ratios=[1, 1, 1, 0.7])
        for ax, name in zip(axes, PATH, strict=False):
            seen = [images.get(f"{net}.visualised.{name}.{layer}", np.zeros((0, 3, 1, 1))) for layer in layers]
            rows = [[each.transpose(1, 2, 0).clip(0, 1) for each in row] for row in seen]
            show(ax, rows, [f"layer {layer}" for layer in layers] if name == PATH[0] else None)
            ax.set_title(NETWORKS[name][0], loc="center", color=NETWORKS[name][1])
        _roughness(axes[3], some, layers)
        by = some.groupby(["layer", "network"])["variation"].mean().unstack()
        smoother = int((by["robust"] < by["clean"]).sum()) if {"clean", "robust"} <= set(by) else 0
        part.suptitle(
            f"{net_title(net)}: visualised features, robust smoother than clean in {smoother} of {len(layers)} layers",
            x=0.01, ha="left", weight="bold", size="medium",
        )  # fmt: skip
    about(figure, accuracy)
    return figure


def _roughness(ax: Axes, table: pd.DataFrame, layers: Sequence[int]) -> None:
    for name in PATH:
        found = table[table["network"] == name].groupby("layer")["variation"].mean().reindex(layers)
        ax.plot(range(len(layers)), found, "-o", color=NETWORKS[name][1], markersize=4.5)
    ax.axhline(NOISE[1], color=GREY, linestyle=":", linewidth=1.2)
    ax.annotate("white noise", (len(layers) - 1, NOISE[1]), (0, -6), ha="right", va="top", color=GREY, **SMALL)
    ax.set_xticks(range(len(layers)), [f"{layer:g}" for layer in layers])
    ax.set(xlabel="layer", ylabel="total variation, median", ylim=(0, 1.75), xlim=(-0.3, len(layers) - 0.7))


# --- The Lasso

FEATURES = {"random": GREY, "clean": ORANGE, "control": GREEN, "robust": BLUE}
TARGETS = {"clean_delta": ("perturbations of the clean network", ORANGE, "--")}
TARGETS |= {"robust_delta": ("perturbations of the robust network", BLUE, "--"), "pictures": ("pictures", "black", "-")}


def lasso(images: Images, table: pd.DataFrame, accuracy: pd.DataFrame) -> Figure:
    """FP Figures 4 and 12: pictures as sparse combinations of filters, and error against sparsity."""
    names = nets(table)
    figure = plt.figure(figsize=(8.8, 4.9 * len(names) + 0.2), layout="constrained")
    for part, net in zip(_parts(figure, len(names)), names, strict=False):
        some = table[table["net"] == net]
        grid = part.add_gridspec(2, 2, width_ratios=[1.15, 1.0])
        _reconstructions(part.add_subplot(grid[:, 0]), images, net, some)
        above, below = part.add_subplot(grid[0, 1]), part.add_subplot(grid[1, 1])
        of_pictures = {f: some[(some["target"] == "pictures") & (some["features"] == f)] for f in FEATURES}
        for name, colour in FEATURES.items():
            _curve(above, of_pictures[name], f"{name} features", colour, "--" if name == "control" else "-")
        del of_pictures["control"]
        above.set_title(f"pictures, from the features of each network:\n{_told(of_pictures)}")
        robust = some[some["features"] == "robust"]
        of_targets = {target: robust[robust["target"] == target] for target in TARGETS}
        for target, (label, colour, line) in TARGETS.items():
            _curve(below, of_targets[target], label, colour, line)
        del of_targets["pictures"]
        told = _told(of_targets, {"clean_delta": "clean", "robust_delta": "robust"})
        below.set_title(f"perturbations, from robust features:\n{told}")
        for ax in (above, below):
            ax.set(xscale="log", ylabel="$\\|Wy-x\\|^2/\\|x\\|^2$", ylim=(0, 1.02))
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.xaxis.set_major_formatter("{x:g}")
            ax.xaxis.set_minor_locator(NullLocator())
            ax.legend(fontsize="small", handlelength=1.6, loc="upper right")
        below.set_xlabel("coefficients that are not 0 (%)")
    about(figure, accuracy)
    return figure


def _kept(table: pd.DataFrame) -> float:
    """The Lasso weight whose reconstructions were saved: the middle one."""
    weights = np.sort(table["lam"].unique())
    return float(weights[len(weights) // 2]) if len(weights) else math.nan


def _reconstructions(ax: Axes, images: Images, net: str, table: pd.DataFrame) -> None:
    rows = {"original": images.get(f"{net}.pictures", [])}
    lam = _kept(table)
    for name in FEATURES:
        if f"{net}.pictures.{name}" not in images:
            continue
        at = table[(table["target"] == "pictures") & (table["features"] == name) & np.isclose(table["lam"], lam)]
        share, error = number(100 * mean(at, "sparsity"), ".1f"), number(mean(at, "error"))
        rows[f"{name}\n{share} %,\nerror {error}"] = images[f"{net}.pictures.{name}"]
    show(ax, [[shifted(x) for x in row] for row in rows.values()], list(rows))
    told = f"sums of few filters, $\\lambda={lam:g}\\,\\lambda_{{max}}$"
    ax.set_title(f"{net_title(net)}: pictures (without their mean) as\n{told}")


def _curve(ax: Axes, table: pd.DataFrame, label: str, colour: str, line: str) -> None:
    points = table[table["sparsity"] > 0].sort_values("sparsity")
    if len(points):
        ax.plot(
            100 * points["sparsity"],
            points["error"],
            color=colour,
            linestyle=line,
            marker="o",
            markersize=4,
            label=label,
        )


def _told(curves: Mapping[str, pd.DataFrame], titles: Mapping[str, str] | None = None) -> str:
    """The errors at the middle of the sparsities that all curves reach, interpolated in log sparsity."""
    some = {name: t[t["sparsity"] > 0].sort_values("sparsity") for name, t in curves.items()}
    some = {name: t for name, t in some.items() if len(t)}
    low = max((t["sparsity"].min() for t in some.values()), default=math.inf)
    high = min((t["sparsity"].max() for t in some.values()), default=0.0)
    if low > high:
        return "no sparsity in common"
    at = math.sqrt(low * high)
    errors = {name: np.interp(math.log(at), np.log(t["sparsity"]), t["error"]) for name, t in some.items()}
    words = [f"{(titles or {}).get(name, name)} {number(float(error))}" for name, error in errors.items()]
    return f"error at {100 * at:.2g} %: {', '.join(words)}"
