"""Figures of FP's o(1) terms: the prediction of the mixture, how terms scale, models of low complexity, transfer."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from brittle.drawing.style import BLUE, GREY, ORANGE, PURPLE
from brittle.sparse.plot import SMALL, STARTS, about, mark, mean, number, starts_of

# --- The prediction β/α = K/d

VARIED = {"d": ("$d$ varied", "o"), "k": ("$k$ varied", "s"), "spikes": ("spike noise", "^")}
VARIED |= {"incoherent": ("more words than $d$", "P"), "spread": ("uneven $w^\\ast$", "v"), "linf": ("$M=I$", "X")}


def prediction(grid: pd.DataFrame, networks: pd.DataFrame) -> Figure:
    """The mixture after clean training, against the prediction K/d."""
    figure, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    own = networks[networks["network"] == "clean"].rename(columns={"ratio": "clean_ratio"}).assign(of="own")
    # With more words than dimensions, a neuron's coefficients are not unique.
    points = pd.concat([grid[(grid["start"] == "pure") & (grid["words"] <= grid["d"])], own])[
        ["of", "start", "d", "k", "margin", "predicted", "clean_ratio"]
    ]
    points = points.groupby(["of", "start", "d", "k", "margin"], sort=False).mean().reset_index()  # over seeds
    points = points[points["clean_ratio"] > 0]  # others cannot be shown on a logarithmic axis
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
    ax.set_title(f"$\\beta/\\alpha$ and $K/d$ are within a factor of {number(off)}")
    ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize="small", labelspacing=0.6)
    about(figure, networks.iloc[0])
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
    """The terms that are o(1) in the theorems, against d."""
    figure, axes = plt.subplots(2, 3, figsize=(8.6, 5.0), layout="constrained", sharey=True)
    grid, table = grid[grid["of"] == "d"], pd.DataFrame()
    if "random" in starts_of(networks):
        table = pd.DataFrame([_own(networks, curves, alike)])
        grid = grid[~((grid["start"] == "random") & (grid["d"] == table["d"].iloc[0]))]
    grid = grid.assign(robust_error=1 - grid["robust_pgd"])
    grid = grid.groupby(["start", "d", "margin"])[list(TERMS)].mean().reset_index()  # over seeds
    table = pd.concat([grid, table]).sort_values("d")
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
        handles.append(mark(f"{STARTS[start]}, {told}", marker, line, GREY if start == "random" else "black", fill))
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
        "clean_dense": mean(at, "accuracy", network="clean", attack="dense"),
        "robust_error": 1 - mean(at, "accuracy", network="robust", attack="pgd"),
        "clean_correlated": mean(mine, "correlated", network="clean"),
        "clean_runaway_energy": mean(mine, "runaway_energy", network="clean"),
        "local": mean(mine, "local", network="robust"),
        "theta_pairs": mean(alike, "median", start="random", of="different neurons"),
    }


# --- Models whose features are not trained

TRAININGS = {"clean": ("clean", ORANGE), "fgm": ("FGM", BLUE), "pgd": ("PGD", BLUE)}
BALLS = {"l2": "\\ell_2", "linf": "\\ell_\\infty"}


def low(table: pd.DataFrame, networks: pd.DataFrame, curves: pd.DataFrame, grid: pd.DataFrame) -> Figure:
    """Accuracy and robust accuracy of models with fixed features, beside the networks' (Theorem 5.6, Corollary 5.7).

    One column a norm and radius; with the margin filter above, without it, the paper's distribution, below.
    """
    points = pd.DataFrame([*_models(table), *_grown(table, grid), *_from_random(networks, curves)])
    balls = table[["norm", "tau"]].drop_duplicates().sort_values(["norm", "tau"]).to_numpy().tolist()
    margins, rows = sorted(table["margin"].unique(), reverse=True), list(points["label"].unique())
    shape = len(margins), len(balls)
    size = (2.6 + 2.0 * shape[1], 0.9 + shape[0] * (0.7 + 0.2 * len(rows)))
    figure, axes = plt.subplots(*shape, figsize=size, layout="constrained", sharey=True, sharex=True, squeeze=False)
    letters = iter("abcdefghijkl")
    for line, margin in zip(axes, margins, strict=True):
        for ax, (norm, tau) in zip(line, balls, strict=True):
            here = points[(points["norm"] == norm) & np.isclose(points["tau"], tau) & (points["margin"] == margin)]
            _dumbbells(ax, here, rows)
            told = f"filter {margin:g}" if margin else "no filter"
            ax.set_title(f"({next(letters)}) {told}\n${BALLS[norm]}$, $\\tau={tau:.3g}$")
        line[0].set_yticks(-np.arange(len(rows)), rows)
        line[0].set(ylabel="model, training", ylim=(0.6 - len(rows), 0.6))
    for ax in axes[-1]:
        ax.set(xlim=(-4, 104), xlabel="test accuracy (%)")
    handles = [mark("no perturbation", "o", fill="white"), mark("under PGD", "o")]
    handles += [Patch(color=ORANGE, label="clean training"), Patch(color=BLUE, label="adversarial training")]
    handles.append(Line2D([], [], color="black", linestyle=":", label="1/2 (Thm 5.6)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.4, handlelength=1.4)
    sizes = f"$d={table['d'].iloc[0]:g}$, $k={table['k'].iloc[0]:g}$"
    figure.suptitle(sizes, x=0.01, ha="left", fontsize="small", color=GREY)
    return figure


def _dumbbells(ax: Axes, points: pd.DataFrame, rows: list[str]) -> None:
    for row in points.itertuples():
        at, colour = -rows.index(row.label), TRAININGS[row.training][1]
        ax.plot([100 * row.pgd, 100 * row.accuracy], [at, at], color=colour, linewidth=1.0, zorder=1)
        ax.plot([100 * row.accuracy], [at], "o", color=colour, markerfacecolor="white", markersize=7)
        ax.plot([100 * row.pgd], [at], "o", color=colour, markersize=4.5)
    ax.axvline(50, color="black", linestyle=":", linewidth=1.0)
    ax.tick_params(axis="y", length=0)


SHOWN = ["label", "training", "norm", "tau", "margin", "accuracy", "pgd"]


def _models(table: pd.DataFrame) -> list[dict[str, object]]:
    labels = [f"{row.model}, {TRAININGS[row.training][0]}" for row in table.itertuples()]
    order = ["model", "training"]
    ordered = table.assign(label=labels).sort_values(order, key=lambda names: names.str.lower(), kind="stable")
    return ordered[SHOWN].to_dict("records")


PHASES = (("clean", "clean", "clean"), ("robust", "fgm", "clean, then FGM"))


def _grown(table: pd.DataFrame, grid: pd.DataFrame) -> Iterator[dict[str, object]]:
    """The networks from pure features in the grid, of the same size, in either norm."""
    same = grid[(grid["d"] == table["d"].iloc[0]) & (grid["start"] == "pure") & grid["of"].isin(["d", "linf"])]
    for name, training, told in PHASES:
        means = same.groupby(["norm", "tau", "margin"])[[f"{name}_accuracy", f"{name}_pgd"]].mean().reset_index()
        means = means.rename(columns={f"{name}_accuracy": "accuracy", f"{name}_pgd": "pgd"})
        yield from means.assign(label=f"network {STARTS['pure']}, {told}", training=training)[SHOWN].to_dict("records")


def _from_random(networks: pd.DataFrame, curves: pd.DataFrame) -> Iterator[dict[str, object]]:
    """The networks from random weights, in l2."""
    sizes = networks.iloc[0]
    at = curves[np.isclose(curves["tau"], sizes["tau"])]
    for name, training, told in PHASES:
        about = {"label": f"network {STARTS['random']}, {told}", "training": training, "norm": "l2"}
        right = mean(networks, "accuracy", start="random", network=name)
        pgd = mean(at, "accuracy", start="random", network=name, attack="pgd")
        yield about | {"tau": sizes["tau"], "margin": sizes["margin"], "accuracy": right, "pgd": pgd}


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
    about(figure, networks.iloc[0])
    return figure
