"""FP's theorems on its sparse coding model, drawn.

Networks before adversarial training are orange, after it blue; what is certified is green, what is random grey, and the
mixture purple. Hollow marks are of samples without the margin filter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from brittle.figures.style import BLUE, GREEN, GREY, ORANGE

PURPLE = "#8E3B8A"  # Okabe and Ito's, darkened until it can carry a thin line
NETWORKS = {"clean": ("before", ORANGE), "robust": ("after", BLUE)}
STARTS = {"random": "from random weights", "pure": "from pure features"}
WHEN = [Patch(color=colour, label=f"{when} adversarial training") for when, colour in NETWORKS.values()]
SMALL = {"fontsize": "small", "textcoords": "offset points"}


def _about(figure: Figure, row: Mapping[str, float]) -> None:
    """Above the panels: the sizes, and whether samples were filtered."""
    told = "no margin filter"
    if row["margin"]:
        told = f"margin filter $|\\langle w^\\ast,z\\rangle|\\geq{row['margin']:g}$: the $z_j$ are not independent"
    figure.suptitle(f"$d={row['d']:g}$, $k={row['k']:g}$; {told}", x=0.01, ha="left", fontsize="small", color=GREY)


def _starts(networks: pd.DataFrame) -> list[str]:
    """Those that were run, random weights first."""
    return [start for start in STARTS if start in set(networks["start"])]


def _mean(table: pd.DataFrame, column: str, **where: str) -> float:
    """Over the rows with these values; nan if there are none."""
    for name, value in where.items():
        table = table[table[name] == value]
    return float(table[column].mean())


def _number(value: float) -> str:
    return f"{value:.2g}" if math.isfinite(value) else "–"


def _edges(shares: pd.Series) -> np.ndarray:
    return np.append(shares.index.get_level_values("low"), shares.index.get_level_values("high")[-1])


def _mark(
    label: str, marker: str, line: str | tuple = "none", colour: str = "black", fill: str | None = None
) -> Line2D:
    look = {"color": colour, "markerfacecolor": fill or colour, "markersize": 4.5}
    return Line2D([], [], marker=marker, linestyle=line, label=label, **look)


# --- Accuracy

ATTACKS = {"dense": ("dense, needs no network", "o", (0, (4, 2))), "fgm": ("FGM", "s", (0, (1, 1)))}
ATTACKS |= {"pgd": ("PGD", "D", "-")}


def accuracy(curves: pd.DataFrame, networks: pd.DataFrame) -> Figure:
    """Accuracy against the radius of the attack, before and after adversarial training, and what is certified."""
    starts, trained = _starts(networks), networks["tau"].iloc[0]
    figure, axes = plt.subplots(1, len(starts), figsize=(8.2, 4.0), layout="constrained", sharey=True, squeeze=False)
    axes = axes[0]
    for ax, start, letter in zip(axes, starts, "ab", strict=False):
        some = curves[curves["start"] == start]
        _curves(ax, some, trained)
        at = some[np.isclose(some["tau"], trained)]
        left = [_number(100 * _mean(at, "accuracy", attack="pgd", network=name)) for name in NETWORKS]
        runs = f", {some['seed'].nunique()} seeds" if some["seed"].nunique() > 1 else ""
        ax.set_title(f"({letter}) {STARTS[start]}{runs}:\nPGD at {trained:g} leaves {left[0]} %, then {left[1]} %")
    axes[0].set(ylabel="test accuracy (%)", ylim=(-3, 104))
    handles = [*WHEN, *(_mark(label, marker, line) for label, marker, line in ATTACKS.values())]
    handles.append(_mark("random, before and after", "x", ":", GREY))
    if "certified" in set(curves["attack"]):
        handles.append(_mark("certified, after (few samples)", "^", "-", GREEN))
        handles.append(Patch(color=GREEN, alpha=0.18, label="between certified and PGD"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.4)
    _about(figure, networks.iloc[0])
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
    """The coefficients beside a neuron's word, and how they come and go along training from random weights."""
    figure = plt.figure(figsize=(8.2, 6.2), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.0, 1.15])
    starts, predicted = _starts(networks), networks["predicted"].iloc[0]
    axes = top.subplots(1, len(starts), sharey=True, sharex=True, squeeze=False)[0]
    for ax, start, letter in zip(axes, starts, "ab", strict=False):
        _coefficients(ax, coefficients[coefficients["start"] == start])
        ax.axvline(predicted, color="black", linestyle="--", linewidth=1.2)
        ratio = [_number(_mean(networks, "ratio", start=start, network=name)) for name in NETWORKS]
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
    _about(figure, networks.iloc[0])
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
    """Means over seeds along one training after the other, and where each begins and ends."""
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
    """FP Figure 2 on this model; where the winners of the lottery began; how dense perturbations are."""
    figure, axes = plt.subplots(1, 3, figsize=(8.6, 3.9), layout="constrained", width_ratios=[1.7, 0.8, 1.1])
    start = _starts(networks)[0]
    _thetas(axes[0], table[table["start"] == start])
    axes[0].set_title(f"(a) {STARTS[start]}:\nhow alike features are")
    first, three = (_mean(networks, name, start=start, network="clean") for name in ("winner", "winner3"))
    for i, (share, colour) in enumerate(((first, ORANGE), (three, "#E9AE80"), (1 / networks["d"].iloc[0], GREY))):
        axes[1].bar(i, 100 * share, color=colour, width=0.6)
        axes[1].annotate(_number(100 * share), (i, np.nan_to_num(100 * share)), (0, 2), ha="center", **SMALL)
    axes[1].set_xticks(range(3), ["first", "first 3", "chance\n$1/d$"])
    axes[1].set(ylabel="pure neurons (%)", ylim=(0, 112), xlabel="rank of the neuron's word\nin its first weights")
    axes[1].set_title("(b) who wins\nthe lottery")
    _densities(axes[2], networks)
    _about(figure, networks.iloc[0])
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
            found = [_mean(networks, f"{attack}_l1_l2", start=start, network=name) for name in NETWORKS]
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
    ax.legend(handles=[*handles, _mark("FGM", "s"), _mark("PGD", "D")], **BELOW)


# --- The prediction β/α = K/d

VARIED = {"d": ("$d$ varied", "o"), "k": ("$k$ varied", "s"), "spikes": ("spike noise", "^")}
VARIED |= {"incoherent": ("more words than $d$", "P"), "spread": ("uneven $w^\\ast$", "v"), "linf": ("$M=I$", "X")}


def prediction(grid: pd.DataFrame, networks: pd.DataFrame) -> Figure:
    """The mixture that clean training leaves, beside K/d."""
    figure, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    own = networks[networks["network"] == "clean"].rename(columns={"ratio": "clean_ratio"}).assign(of="own")
    # With more words than dimensions a neuron's coefficients are not unique.
    points = pd.concat([grid[(grid["start"] == "pure") & (grid["words"] <= grid["d"])], own])[
        ["of", "start", "d", "k", "margin", "predicted", "clean_ratio"]
    ]
    points = points[points["clean_ratio"] > 0]  # others are not on a logarithmic axis
    shown = pd.concat([points["predicted"], points["clean_ratio"], networks["predicted"]])
    ends = np.array([shown.min() / 1.4, shown.max() * 1.4])
    ax.fill_between(ends, ends / 2, ends * 2, color=GREY, alpha=0.12, linewidth=0, label="within a factor of 2")
    ax.plot(ends, ends, color="black", linewidth=1.0, linestyle="--", label="$\\beta/\\alpha=K/d$")
    for (of, start, bare), rows in points.groupby(["of", "start", points["margin"] == 0], sort=False):
        label, marker = VARIED.get(of, (f"other figures' networks,\n{STARTS[start]}", "*"))
        colour, size = (ORANGE, 36) if of != "own" else (GREY if start == "random" else PURPLE, 170)
        look = {"marker": marker, "s": size, "zorder": 2 if of == "own" else 3, "edgecolor": colour}
        look |= {"facecolor": "white" if bare else colour, "label": f"{label}, no filter" if bare else label}
        ax.scatter(rows["predicted"], rows["clean_ratio"], **look)
        for row in rows.to_dict("records") if of in ("d", "k") else []:
            where, side = (row["predicted"], row["clean_ratio"]), "left" if bare else "right"
            ax.annotate(f"${of}={row[of]}$", where, (6, -9) if bare else (-6, 4), ha=side, **SMALL)
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    ax.set(xlabel="predicted, $K/d$", ylabel="after clean training, $\\beta/\\alpha$")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    off = np.exp(np.abs(np.log(points["clean_ratio"] / points["predicted"])).max())
    ax.set_title(f"$\\beta/\\alpha$ and $K/d$ are within a factor of {_number(off)}")
    ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize="small", labelspacing=0.6)
    _about(figure, networks.iloc[0])
    return figure


# --- The terms that vanish

TERMS = {  # column: the theorem that calls it o(1), what it is, colour
    "clean_dense": ("Thm 5.1(c)", "accuracy that the dense\nperturbation leaves", ORANGE),
    "clean_correlated": ("Thm 5.1(a)", "$\\Sigma\\langle w_i,w_j\\rangle^2/(\\Sigma\\|w_i\\|^2)^2$", ORANGE),
    "theta_pairs": ("§1", "median $\\theta(w_i,w_j)$", ORANGE),
    "robust_error": ("Thm 5.3(b)", "error under PGD after\nadversarial training", BLUE),
    "local": ("Thm 5.3(c)", "$\\Sigma\\|w_i-w'_i\\|^2/\\Sigma\\|w_i\\|^2$", BLUE),
    "clean_runaway_energy": ("runaways", "energy in neurons that\nare mostly $Mw^\\ast$", ORANGE),
}
LEAST = 1e-3  # smaller numbers, and 0, are drawn here


def scaling(grid: pd.DataFrame, networks: pd.DataFrame, curves: pd.DataFrame, alike: pd.DataFrame) -> Figure:
    """What is o(1) in the theorems, against d."""
    figure, axes = plt.subplots(2, 3, figsize=(8.6, 5.0), layout="constrained", sharey=True)
    grid, table = grid[grid["of"] == "d"], pd.DataFrame()
    if "random" in _starts(networks):
        table = pd.DataFrame([_own(networks, curves, alike)])
        grid = grid[~((grid["start"] == "random") & (grid["d"] == table["d"].iloc[0]))]
    table = pd.concat([grid.assign(robust_error=1 - grid["robust_pgd"]), table]).sort_values("d")
    ds, handles = np.sort(table["d"].unique()).astype(float), []
    for (start, bare), rows in table.groupby(["start", table["margin"] == 0]):
        line, marker, fill = "--" if bare else "-", "D" if start == "random" else "o", "white" if bare else None
        for ax, (column, (_, _, colour)) in zip(axes.flat, TERMS.items(), strict=True):
            ink = GREY if start == "random" else colour
            look = {
                "linestyle": line,
                "marker": marker,
                "markersize": 4.5,
                "color": ink,
                "markerfacecolor": fill or ink,
            }
            ax.plot(rows["d"], rows[column].clip(lower=LEAST), **look)
        told = "no filter" if bare else f"filter $|\\langle w^\\ast,z\\rangle|\\geq{rows['margin'].iloc[0]:g}$"
        handles.append(_mark(f"{STARTS[start]}, {told}", marker, line, GREY if start == "random" else "black", fill))
    for ax, (source, what, _), letter in zip(axes.flat, TERMS.values(), "abcdef", strict=True):
        ax.set(xscale="log", yscale="log", ylim=(LEAST / 1.5, 1.5), ylabel=what, xlabel="dimension $d$")
        ax.set_title(f"({letter}) {source}")
        ax.set_xticks(ds, [f"{d:g}" for d in ds])
        ax.set_xticks([], minor=True)
        ax.set_xlim(ds[0] / 1.25, ds[-1] * 1.25)
    axes[0, 1].plot(ds, 1 / ds, ":", color="black", linewidth=1.2)
    handles.append(Line2D([], [], color="black", linestyle=":", label="(b) $1/d$, the least possible"))
    figure.legend(handles=handles, loc="outside lower center", ncols=2, columnspacing=1.4)
    told = f"FP's theorems call (a) to (e) $o(1)$. What is below {LEAST:g}, 0 too, is drawn at {LEAST:g}."
    figure.suptitle(told, x=0.01, ha="left", fontsize="small", color=GREY)
    return figure


def _own(networks: pd.DataFrame, curves: pd.DataFrame, alike: pd.DataFrame) -> dict[str, object]:
    """The networks from random weights as a row of the grid: means over seeds."""
    first, mine = networks.iloc[0], networks[networks["start"] == "random"]
    at = curves[(curves["start"] == "random") & np.isclose(curves["tau"], first["tau"])]
    return {
        "start": "random",
        "d": first["d"],
        "margin": first["margin"],
        "clean_dense": _mean(at, "accuracy", network="clean", attack="dense"),
        "robust_error": 1 - _mean(at, "accuracy", network="robust", attack="pgd"),
        "clean_correlated": _mean(mine, "correlated", network="clean"),
        "clean_runaway_energy": _mean(mine, "runaway_energy", network="clean"),
        "local": _mean(mine, "local", network="robust"),
        "theta_pairs": _mean(alike, "median", start="random", of="different neurons"),
    }


# --- Models whose features are not trained

TRAININGS = {"clean": ("clean", ORANGE), "fgm": ("FGM", BLUE), "pgd": ("PGD", BLUE)}


def low(table: pd.DataFrame, networks: pd.DataFrame, curves: pd.DataFrame, grid: pd.DataFrame) -> Figure:
    """Accuracy and robust accuracy of linear and NTK models, beside the network's (Theorem 5.6)."""
    points = pd.DataFrame([*_models(table), *_purified(networks, curves, grid)])
    rows = list(points["label"].unique())
    size = (8.2, 1.7 + 0.24 * len(rows))
    figure, axes = plt.subplots(1, 2, figsize=size, layout="constrained", sharey=True)
    for ax, (norm, symbol), letter in zip(axes, (("l2", "\\ell_2"), ("linf", "\\ell_\\infty")), "ab", strict=True):
        for row in points[points["norm"] == norm].itertuples():
            at, colour = -rows.index(row.label), TRAININGS[row.training][1]
            ax.plot([row.pgd, row.accuracy], [at, at], color=colour, linewidth=1.0, zorder=1)
            ax.plot([row.accuracy], [at], "o", color=colour, markerfacecolor="white", markersize=7)
            ax.plot([row.pgd], [at], "o", color=colour, markersize=4.5)
        ax.axvline(50, color="black", linestyle=":", linewidth=1.0)
        tau = table.loc[table["norm"] == norm, "tau"].iloc[0]
        ax.set(xlim=(-4, 104), xlabel="test accuracy (%)", title=f"({letter}) ${symbol}$, $\\tau={tau:.4g}$")
        ax.tick_params(axis="y", length=0)
    axes[0].set_yticks(-np.arange(len(rows)), rows)
    axes[0].set(ylabel="model, training", ylim=(0.6 - len(rows), 0.6))
    handles = [_mark("no perturbation", "o", fill="white"), _mark("under PGD", "o")]
    handles += [Patch(color=ORANGE, label="clean training"), Patch(color=BLUE, label="adversarial training")]
    handles.append(Line2D([], [], color="black", linestyle=":", label="1/2 (Thm 5.6)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.4, handlelength=1.4)
    _about(figure, table.iloc[0])
    return figure


def _models(table: pd.DataFrame) -> Iterator[dict[str, object]]:
    for row in table.sort_values("model", key=lambda names: names.str.lower(), kind="stable").itertuples():
        label = f"{row.model}, {TRAININGS[row.training][0]}"
        found = {"accuracy": 100 * row.accuracy, "pgd": 100 * row.pgd}
        yield {"label": label, "training": row.training, "norm": row.norm} | found


def _purified(networks: pd.DataFrame, curves: pd.DataFrame, grid: pd.DataFrame) -> Iterator[dict[str, object]]:
    """The same of the networks: from either start in l2; in l∞, that of the grid."""
    at = curves[np.isclose(curves["tau"], networks["tau"].iloc[0])]
    for start in STARTS:
        for name, training, told in (("clean", "clean", "clean"), ("robust", "fgm", "clean, then FGM")):
            about = {"label": f"network {STARTS[start]}, {told}", "training": training}
            right = _mean(networks, "accuracy", start=start, network=name)
            pgd = _mean(at, "accuracy", start=start, network=name, attack="pgd")
            yield about | {"norm": "l2", "accuracy": 100 * right, "pgd": 100 * pgd}
            for row in grid[(grid["of"] == "linf") & (grid["start"] == start)].to_dict("records"):
                yield about | {
                    "norm": "linf",
                    "accuracy": 100 * row[f"{name}_accuracy"],
                    "pgd": 100 * row[f"{name}_pgd"],
                }


# --- Transfer


def transfer(table: pd.DataFrame, networks: pd.DataFrame) -> Figure:
    """Accuracy of every clean network under the FGM perturbations of every other."""
    names = list(table["of"].unique())
    left = 100 * table.pivot(index="on", columns="of", values="accuracy").loc[names, names].to_numpy()
    size = 2.8 + 0.6 * len(names), 1.8 + 0.34 * len(names)
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    ax.imshow(left, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for (i, j), value in np.ndenumerate(left):
        ax.text(j, i, f"{value:.3g}", ha="center", va="center", color="white" if value > 60 else "black")
    titles = [name.replace(" ", ", seed ") for name in names]
    ax.set_xticks(range(len(names)), titles, rotation=30, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), titles)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlabel="under FGM's perturbation of", ylabel="accuracy (%) of")
    others = left[~np.eye(len(names), dtype=bool)]
    told = f"another network's leaves at most {others.max():.3g} %" if len(others) else "one network"
    ax.set_title(f"$\\tau={networks['tau'].iloc[0]:g}$: {told}")
    _about(figure, networks.iloc[0])
    return figure
