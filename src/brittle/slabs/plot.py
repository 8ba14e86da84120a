"""Draw SB Figures 1 to 4.

Labels are blue (+1) and orange (-1); where features are distinguished, the simple one, S, is purple and Sᶜ is green.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from contourpy import contour_generator
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE, PURPLE, shades
from brittle.slabs.titles import model_title
from brittle.worlds.slabs import title as world_title

LABELS = LinearSegmentedColormap.from_list("labels", ["#F2BFA0", "#FFFFFF", "#A6CBE3"])  # pale ORANGE to pale BLUE
SIMPLE, COMPLEX = "simple feature $S$", "a complex feature of $S^c$"
WORLDS = ("lms-5", "noisy-lms-7", "ms-5-7")  # of the paper's Figure 2
SIDE = 401  # points per side of the pictures that are computed here


# --- Figure 1


def fig1(samples: pd.DataFrame, boundary: pd.DataFrame) -> Figure:
    """What the network says in the plane of S and another feature, and what f*, which uses both, would say there."""
    shared = [world for world in boundary["world"].unique() if world in set(samples["world"])]
    world = "lms-5" if "lms-5" in shared else shared[0]
    samples, boundary = samples[samples["world"] == world], boundary[boundary["world"] == world]
    points, y = samples[["simple", "complex"]].to_numpy(), samples["label"].to_numpy()
    ticks = np.linspace(-1, 1, SIDE) * max(np.abs(points).max(), boundary["simple"].abs().max())
    simple, complex = ticks[:, None], ticks[None, :]  # the first axis of every picture is S
    g = [_classifier(points[:, i], y) for i in (0, 1)]
    f_star = (np.interp(simple, *g[0]) + np.interp(complex, *g[1])) / 2
    far = _distance(simple, complex, points, y, -1) - _distance(simple, complex, points, y, 1)

    figure, axes = plt.subplots(1, 2, figsize=(8.2, 4.5), layout="constrained", sharey=True)
    grid = _picture(boundary)
    found, widest = _zero(*grid[:2], grid[2] - 0.5), _zero(ticks, ticks, far)
    _plane(axes[0], *grid)
    _curves(axes[0], found, color="black", linewidth=2.2)
    _curves(axes[0], widest, color=GREEN, linewidth=1.4, linestyle=(0, (4, 2)))
    model = model_title(boundary["model"].iloc[0])
    axes[0].set_title(f"(a) {model} after training: margin {_margin(found, points):.3f}")
    _plane(axes[1], ticks, ticks, (f_star + 1) / 2)
    _curves(axes[1], widest, color=GREEN, linewidth=2.2)
    # Between the labels f* is 0 on a whole region: a positive sample flips at one edge, a negative one at the other.
    # From knot to knot f* is affine, so these edges are exact.
    knots = [np.unique(each[0]) for each in g]
    at_knots = (np.interp(knots[0], *g[0])[:, None] + np.interp(knots[1], *g[1])) / 2
    margin = min(_margin(_zero(*knots, sign * at_knots - 1e-9), points[y == sign]) for sign in (1, -1))
    axes[1].set_title(f"(b) both features: margin {_margin(widest, points):.3f} ($f^\\ast$: {margin:.3f})")
    for ax in axes:
        _scatter(ax, points, y, size=7)
        ax.set(xlabel=f"{SIMPLE} of {world_title(world)}", aspect="equal", xlim=ticks[[0, -1]], ylim=ticks[[0, -1]])
        ax.locator_params(nbins=5)
    axes[0].set(ylabel=COMPLEX)
    handles = [
        *_label_handles(),
        Patch(facecolor=LABELS(1.0), label="says $+1$"),
        Patch(facecolor=LABELS(0.0), label="says $-1$"),
        Patch(facecolor="white", edgecolor=GREY, linewidth=0.8, label="its features disagree, $f^\\ast=0$"),
        Line2D([], [], color="black", linewidth=2.2, label="the network's boundary"),
        Line2D([], [], color=GREEN, linewidth=2.2, label="the boundary of largest margin"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, handlelength=1.4, columnspacing=1.4)
    return figure


def _classifier(u: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A feature's own classifier, read off its samples: knots and values, ±1 on the slabs and linear across gaps."""
    order = np.argsort(u, kind="stable")
    u, y = u[order], np.sign(y[order])
    ends = np.flatnonzero(np.diff(y))  # the last sample before each change of label
    knots = np.concatenate([u[:1], np.stack([u[ends], u[ends + 1]], 1).ravel(), u[-1:]])
    values = np.concatenate([y[:1], np.stack([y[ends], y[ends + 1]], 1).ravel(), y[-1:]])
    return knots, values


def _distance(simple: np.ndarray, complex: np.ndarray, points: np.ndarray, y: np.ndarray, label: int) -> np.ndarray:
    """The distance from every point to the nearest rectangle, slab × slab, that holds samples of this label."""
    slabs = []
    for i in (0, 1):
        knots, values = _classifier(points[:, i], y)
        slabs.append([(a, b) for a, b, v in zip(knots[::2], knots[1::2], values[::2], strict=True) if v == label])
    nearest = np.full(np.broadcast_shapes(simple.shape, complex.shape), np.inf)
    for a, b in slabs[0]:
        for c, d in slabs[1]:
            across, along = simple - np.clip(simple, a, b), complex - np.clip(complex, c, d)
            nearest = np.minimum(nearest, np.hypot(across, along))
    return nearest


def _zero(simple: np.ndarray, complex: np.ndarray, values: np.ndarray) -> list[np.ndarray]:
    """The polygons on which values, (simple, complex), are zero, with columns simple, complex."""
    return contour_generator(simple, complex, values.T).lines(0.0)


def _margin(lines: Sequence[np.ndarray], points: np.ndarray) -> float:
    """The smallest distance between a boundary and a sample; infinite if there is no boundary."""
    nearest = np.inf
    for line in lines:
        start, way = line[:-1], np.diff(line, axis=0)  # (n, 2)
        length = np.maximum((way**2).sum(1), 1e-30)
        offset = points[:, None] - start  # (m, n, 2)
        t = np.clip((offset * way).sum(2) / length, 0, 1)  # (m, n), how far along each piece
        nearest = min(nearest, np.linalg.norm(offset - t[..., None] * way, axis=2).min(initial=np.inf))
    return nearest


def _picture(boundary: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first network's picture: ticks of S, ticks of the other feature, share of +1 at each pair."""
    one = _first(boundary, ["model", "seed", "members"])
    grid = one.pivot(index="simple", columns="complex", values="positive")
    return grid.index.to_numpy(), grid.columns.to_numpy(), grid.to_numpy()


def _plane(ax: Axes, simple: np.ndarray, complex: np.ndarray, share: np.ndarray) -> None:
    ends = [simple[0], simple[-1], complex[0], complex[-1]]
    ax.imshow(share.T, origin="lower", extent=ends, cmap=LABELS, vmin=0, vmax=1, aspect="auto", rasterized=True)
    ax.set(xlim=ends[:2], ylim=ends[2:])


def _curves(ax: Axes, lines: Iterable[np.ndarray], **look: object) -> None:
    for line in lines:
        ax.plot(line[:, 0], line[:, 1], zorder=3, **look)


def _scatter(ax: Axes, points: np.ndarray, y: np.ndarray, size: float) -> None:
    for label, colour, marker in ((1, BLUE, "o"), (-1, ORANGE, "s")):
        x = points[y == label]
        ax.scatter(x[:, 0], x[:, 1], s=size, color=colour, marker=marker, linewidths=0, alpha=0.8, zorder=2)


def _label_handles() -> list[Line2D]:
    look = {"linestyle": "none", "markersize": 4}
    return [
        Line2D([], [], color=BLUE, marker="o", label="$y=+1$", **look),
        Line2D([], [], color=ORANGE, marker="s", label="$y=-1$", **look),
    ]


def _first(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The rows that agree with the first one in these columns."""
    return table[(table[list(columns)] == table[list(columns)].iloc[0]).all(axis=1)]


# --- Figure 2


def fig2(samples: pd.DataFrame) -> Figure:
    """The blocks, one coordinate each, and the worlds that are made of them."""
    blocks = _blocks(samples)
    present = list(samples["world"].unique())
    worlds = [world for world in WORLDS if world in present] or present
    figure = plt.figure(figsize=(8.2, 5.2), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.0, 1.75])
    axes = top.subplots(1, len(blocks), squeeze=False, sharex=True)[0]
    for ax, (name, block) in zip(axes, blocks.items(), strict=True):
        reach = block["value"].abs().max()
        edges = np.linspace(-reach, reach, 61)
        for label, colour in ((1, BLUE), (-1, ORANGE)):
            some = block.loc[block["label"] == label, "value"]
            shares = np.histogram(some, edges)[0] / max(1, len(some))
            ax.stairs(label * 100 * shares, edges, fill=True, color=colour)
        ax.axhline(0, color="black", linewidth=0.8)
        top_share = max(map(abs, ax.get_ylim()))
        ax.set(title=f"{name}: {_simplicity(name, block)}", xlabel="coordinate", ylim=(-top_share, top_share))
        ax.yaxis.set_major_formatter(lambda share, _: f"{abs(share):g}")
    axes[0].set(ylabel="samples (%)\n$y=-1$ | $y=+1$")
    axes = bottom.subplots(1, len(worlds), squeeze=False, sharey=True)[0]
    for ax, world in zip(axes, worlds, strict=True):
        some = samples[samples["world"] == world]
        _scatter(ax, some[["simple", "complex"]].to_numpy(), some["label"].to_numpy(), size=7)
        reach = 1.05 * some[["simple", "complex"]].abs().to_numpy().max()
        ax.set(title=world_title(world), xlabel=SIMPLE, aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
        ax.locator_params(nbins=5)
    axes[0].set(ylabel=COMPLEX)
    bottom.legend(handles=_label_handles(), loc="outside lower center", ncols=2, handletextpad=0.1)
    return figure


def _simplicity(name: str, block: pd.DataFrame) -> str:
    """The number of linear pieces of the block's simplest optimal classifier (SB §3.1), or its accuracy if noisy."""
    if name == "noisy linear":
        return f"{100 * (np.sign(block['value']) == block['label']).mean():.3g} % right"
    pieces = len(_classifier(block["value"].to_numpy(), block["label"].to_numpy())[0]) // 2 - 1
    return counted(pieces, "piece")


def _blocks(samples: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All samples of each block, whichever world it is in: value, label."""
    found: dict[tuple[int, str], list[pd.DataFrame]] = {}
    for world, some in samples.groupby("world", sort=False):
        linear = "lms" in world
        ks = [int(k) for k in re.findall(r"\d+", world)]
        first = (1, "noisy linear") if world.startswith("noisy") else (0, "linear")
        for column, key in (
            ("simple", first if linear else (ks[0], f"{ks[0]}-slab")),
            ("complex", (ks[-1], f"{ks[-1]}-slab")),
        ):
            found.setdefault(key, []).append(some[[column, "label"]].rename(columns={column: "value"}))
    return {name: pd.concat(tables) for (_, name), tables in sorted(found.items(), key=lambda each: each[0])}


# --- Figure 3

VERSIONS = {
    "standard": ("as they are", GREY),
    "rest": ("$S^c$ randomised", GREEN),
    "s": ("$S$ randomised", PURPLE),
}


def fig3(logits: pd.DataFrame, features: pd.DataFrame, boundary: pd.DataFrame) -> Figure:
    """(a) Logits of the positives, (b) areas against the number of complex features, (c) decision boundaries."""
    worlds = list(logits["world"].unique())
    pictured = list(boundary["world"].unique())
    figure = plt.figure(figsize=(8.6, 5.8), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.0, 1.12])
    axes = top.subplots(1, len(worlds), squeeze=False)[0]
    for ax, world in zip(axes, worlds, strict=True):
        _logits(ax, _first(logits[logits["world"] == world], ["model", "seed", "members"]))
    axes[0].set(ylabel="positives (%)")
    top.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    axes = bottom.subplots(1, 1 + len(pictured), squeeze=False)[0]
    _areas(axes[0], features)
    for ax, world in zip(axes[1:], pictured, strict=True):
        simple, complex, share = _picture(boundary[boundary["world"] == world])
        _plane(ax, simple, complex, share)
        positive = share.mean(1)  # for each value of S, over the other feature and the base samples
        decided = 100 * np.maximum(positive, 1 - positive).mean()
        ax.set_title(f"(c) {world_title(world)}: $S$ alone decides\n{decided:.4g} % of the labels")
        ax.set(xlabel=SIMPLE, aspect="equal")
        ax.locator_params(nbins=5)
    axes[1].set(ylabel="the most influential of $S^c$")
    handles = [Patch(color=LABELS(end), label=f"says ${sign}1$") for end, sign in ((1.0, "+"), (0.0, "-"))]
    bottom.legend(handles=handles, loc="outside lower right", ncols=2, handlelength=1.4)
    return figure


def _logits(ax: Axes, table: pd.DataFrame) -> None:
    edges = np.append(table["low"], table["high"].iloc[-1])
    for name, (label, colour) in VERSIONS.items():
        look = {"fill": True, "alpha": 0.45} if name == "standard" else {"linewidth": 1.6}
        if name == "rest":
            look["linestyle"] = (0, (3, 1))
        ax.stairs(100 * table[name], edges, color=colour, label=label, **look)
    # The Kolmogorov–Smirnov distance: the largest gap between the distribution functions, at the edges of the bins.
    moved = {name: np.abs((table[name] - table["standard"]).cumsum()).max() for name in ("rest", "s")}
    first = table.iloc[0]
    ax.set_title(
        f"(a) {world_title(first['world'])}, {model_title(first['model'])}:\n"
        f"KS distance {moved['rest']:.3f} for $S^c$, {moved['s']:.3f} for $S$"
    )
    ax.set(xlabel="logit of test samples with $y=+1$", ylim=(0, None))


def _areas(ax: Axes, features: pd.DataFrame) -> None:
    ax.axhline(0.5, color="black", linestyle="--", linewidth=1.0)
    for name, marker, size in (("standard", "s", 8), ("rest", "o", 4.5), ("s", "o", 4.5)):
        label, colour = VERSIONS[name]
        stats = features.groupby("complex")[f"{name}_auc_roc"].agg(["mean", "min", "max"])
        ax.plot(stats.index, stats["mean"], color=colour, marker=marker, markersize=size, label=label)
        ax.fill_between(stats.index, stats["min"], stats["max"], color=colour, alpha=0.2, linewidth=0)
    ax.text(0.99, 0.49, "chance", transform=ax.get_yaxis_transform(), ha="right", va="top")
    seeds = features.groupby("complex").size().max()
    network = model_title(features["model"].iloc[0])
    runs = f", {seeds} seeds" if seeds > 1 else ""
    ax.set(xscale="log", ylim=(0.4, 1.05), xlabel="number of complex features $|S^c|$", ylabel="area under ROC")
    low, high = features["s_auc_roc"].min(), features["s_auc_roc"].max()
    ax.set_title(f"(b) {network}{runs}:\n$S$ randomised, area {between(low, high, '.2f')}")
    plain_ticks(ax, features["complex"].unique())


def between(low: float, high: float, form: str) -> str:
    low, high = f"{low:{form}}", f"{high:{form}}"
    return low if low == high else f"{low} to {high}"


def plain_ticks(ax: Axes, values: Iterable[float]) -> None:
    """Set ticks on a logarithmic axis at some of the values themselves, at least a factor of 1.7 apart."""
    shown: list[float] = []
    for value in sorted(values, reverse=True):
        if not shown or shown[-1] / value >= 1.7:
            shown.append(value)
    ax.set_xticks(shown, [f"{value:g}" for value in shown])
    ax.set_xticks([], minor=True)
    ax.set_xlim(min(values) / 1.25, max(values) * 1.25)


# --- Figure 4


def fig4(vectors: pd.DataFrame, curves: pd.DataFrame, uap: pd.DataFrame, transfer: pd.DataFrame) -> Figure:
    """Universal perturbations: their share on S, the accuracy they leave, and how they transfer to other networks."""
    method = "ascent" if "ascent" in set(uap["method"]) else uap["method"].iloc[0]
    vectors, uap = vectors[vectors["method"] == method], uap[uap["method"] == method]
    worlds, models = list(uap["world"].unique()), list(uap["model"].unique())
    colours = dict(zip(models, shades(len(models)), strict=True))
    size = (4.3 * max(len(worlds), 1.6), 8.8)
    heights = {"height_ratios": [1.15, 0.95, 0.9]}
    figure, axes = plt.subplots(3, len(worlds), figsize=size, layout="constrained", squeeze=False, gridspec_kw=heights)
    figure.get_layout_engine().set(hspace=0.05)
    for column, world in enumerate(worlds):
        found = uap[uap["world"] == world].set_index("model")
        _components(axes[0, column], world, vectors[vectors["world"] == world], found, colours)
        _accuracies(axes[1, column], curves[curves["world"] == world], found)
        _transfers(axes[2, column], transfer[transfer["world"] == world])
    axes[0, 0].set(ylabel="share of the length, $|\\delta_i|\\,/\\,\\|\\delta\\|_2$")
    axes[1, 0].set(ylabel="test accuracy (%)")
    axes[2, 0].set(ylabel="accuracy (%) of")
    return figure


def _components(
    ax: Axes, world: str, vectors: pd.DataFrame, found: pd.DataFrame, colours: dict[str, str], floor: float = 1e-5
) -> None:
    for model, one in vectors.groupby("model", sort=False):
        size = np.abs(one["component"]) / np.linalg.norm(one["component"])
        share = 100 * found.loc[model, "share"]
        label = f"{model_title(model)}: {share:.2f} %"
        ax.plot(one["feature"] + 1, np.maximum(size, floor), "o", color=colours[model], markersize=3, label=label)
    last = vectors["feature"].max() + 1
    ax.axvspan(0.2, 1.8, color=PURPLE, alpha=0.15, linewidth=0)
    ax.annotate(
        "$S$", (1, 1), xycoords=("data", "axes fraction"), color=PURPLE, ha="center", va="bottom", weight="bold"
    )
    lowest = 100 * found["share"].min()
    ax.set(yscale="log", ylim=(floor / 1.5, 3.0), xlim=(-0.8, last + 0.8), xlabel="feature $i$")
    ax.set_title(f"{world_title(world)}: {lowest:.2f} % of $\\|\\delta\\|_2^2$ or more on $S$", pad=15)
    small = 0.76 * plt.rcParams["font.size"]
    look = {"fontsize": small, "title_fontsize": small, "handletextpad": 0.0, "labelspacing": 0.25}
    look |= {"columnspacing": 0.4, "alignment": "left", "borderaxespad": 0.0}
    ax.legend(loc="upper left", bbox_to_anchor=(0.05, 1.0), ncols=2, title="share on $S$:", **look)


def _accuracies(ax: Axes, curves: pd.DataFrame, found: pd.DataFrame) -> None:
    eps = found["eps"].iloc[0]
    for direction, label, look in (
        ("random", "at random", {"color": GREY, "linewidth": 2.0}),
        ("own", "its own", {"color": BLUE, "linewidth": 2.0}),
        ("z", "$z=\\sum y_ix_i$", {"color": ORANGE, "linewidth": 1.2, "linestyle": (0, (3, 2))}),
    ):
        some = curves[curves["direction"] == direction]
        for i, (_, one) in enumerate(some.groupby("model", sort=False)):
            ax.plot(one["size"], 100 * one["accuracy"], label=None if i else label, **look)
    ax.axvline(eps, color="black", linestyle=":", linewidth=1.2)
    ax.annotate(f"$\\epsilon={eps:g}$", (eps, 50), xytext=(4, 0), textcoords="offset points", va="center")
    low, high = 100 * found["accuracy"].min(), 100 * found["accuracy"].max()
    ax.set(xlabel="size of the perturbation, $\\ell_2$", ylim=(-3, 106), xlim=(0, curves["size"].max()))
    ax.set_title(f"Its own perturbation leaves {between(low, high, '.2g')} % accuracy")
    ax.legend(loc="lower left", fontsize="small", handlelength=1.6)


def _transfers(ax: Axes, transfer: pd.DataFrame) -> None:
    models = list(transfer["of"].unique())
    left = 100 * transfer.pivot(index="on", columns="of", values="accuracy").loc[models, models].to_numpy()
    ax.imshow(left, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for i, row in enumerate(left):
        for j, value in enumerate(row):
            colour = "white" if value > 60 else "black"
            ax.text(j, i, f"{value:.1f}", ha="center", va="center", fontsize="small", color=colour)
    titles = [model_title(model) for model in models]
    ax.set_xticks(range(len(models)), titles, rotation=40, ha="right", rotation_mode="anchor", fontsize="small")
    ax.set_yticks(range(len(models)), titles, fontsize="small")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    others = left[~np.eye(len(models), dtype=bool)]
    told = f"another network's leaves {between(others.min(), others.max(), '.2g')} %" if len(others) else "one network"
    ax.set(title=told[0].upper() + told[1:], xlabel="under the perturbation of")


def counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
