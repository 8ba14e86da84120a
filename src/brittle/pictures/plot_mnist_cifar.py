"""SB on real pictures, a digit (S) above a picture: the paper's Figures 3 and 4 and the appendix's Table 3.

Unchanged samples are black, those with another sample's digit (S) purple, with another sample's picture (Sᶜ) green.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from brittle.drawing import tables
from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE, PURPLE
from brittle.drawing.tables import NONE, span
from brittle.drawing.tiles import montage, photo, show, signed
from brittle.worlds.mnist_cifar import LETTERS

MODELS = {
    "mobilenet_v2": "MobileNetV2",
    "googlenet": "GoogLeNet",
    "resnet50": "ResNet50",
    "densenet121": "DenseNet121",
}
VERSIONS = {  # columns of `networks`: AUC and its standard error, then words, colour, marker
    "standard": ("auc", None, "as they are", "black", "o"),
    "rest": ("rest_auc", "rest_error", "another picture", GREEN, "s"),
    "s": ("s_auc", "s_error", "another digit", PURPLE, "D"),
}
PREMISE = 0.9  # the pictures alone tell the label if accuracy on them reaches this
EXAMPLES = 3  # samples of each label
SPACE = 8  # pixels between labels
WIDE = 3  # worlds per row
BLANK = {"facecolor": "white", "edgecolor": "none", "pad": 1}
OFFSET = {"fontsize": "small", "textcoords": "offset points"}


def world_title(world: str) -> str:
    """The world's letter in the paper, or its name."""
    return LETTERS.get(world, world)


def model_title(model: str) -> str:
    return MODELS.get(model, model)


# --- What networks look at


def overview(examples: Mapping[str, np.ndarray], networks: pd.DataFrame, logits: pd.DataFrame) -> Figure:
    """Samples of each world, what other digits and other pictures do to the AUC, and what they do to logits.

    `examples` holds pictures as bytes by world: the samples of label -1 and then as many of +1.
    """
    rows = list(_rows(networks))
    models = list(logits["model"].unique())
    deep = math.ceil(len(examples) / WIDE)
    below = max(1.0 + 0.28 * len(rows), 1.45 * len(models), 2.2)
    figure = plt.figure(figsize=(8.6, 1.45 * deep + below + 0.35), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.45 * deep, below])
    _examples(top, examples)
    grid = bottom.add_gridspec(max(1, len(models)), 2, width_ratios=[1.15, 1.0])
    ax = bottom.add_subplot(grid[:, 0])
    _areas(ax, rows)
    single = networks[(networks["kind"] != "alone")]
    ax.set_title(
        f"(b) another digit: AUC {span(single['s_auc'], '.2f')};\nanother picture: {span(single['rest_auc'], '.2f')}",
        loc="left",
    )
    axes = [bottom.add_subplot(grid[i, 1]) for i in range(len(models))]
    for i, (ax, model) in enumerate(zip(axes, models, strict=True)):
        _histograms(ax, logits[logits["model"] == model], "(c) " if i == 0 else "", model_title(model))
    if axes:
        most = logits["high"].max()
        axes[-1].set_xlabel(
            f"logit of positive samples of {world_title(networks['world'].iloc[0])}, cut at $\\pm${most:g}"
        )
    handles = [
        Line2D([], [], color=ink, marker=marker, markersize=5, markerfacecolor=_fill(ink), label=words)
        for _, _, words, ink, marker in VERSIONS.values()
    ]
    bottom.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _fill(ink: str) -> str:
    return "white" if ink == "black" else ink


def _examples(part: SubFigure, examples: Mapping[str, np.ndarray]) -> None:
    columns = min(WIDE, len(examples))
    axes = part.subplots(math.ceil(len(examples) / columns), columns, squeeze=False).ravel()
    for ax in axes:
        ax.set_axis_off()
    for ax, (world, x) in zip(axes, examples.items(), strict=False):
        ax.set_axis_on()
        half = len(x) // 2
        sides = [montage([[photo(each) for each in side[:EXAMPLES]]])[0] for side in (x[:half], x[half:])]
        space = np.ones((sides[0].shape[0], SPACE, 3))
        show(ax, [[np.concatenate([sides[0], space, sides[1]], 1)]])
        ax.tick_params(labelbottom=True)
        middles = sides[0].shape[1] / 2, sides[0].shape[1] + SPACE + sides[1].shape[1] / 2
        ax.set_xticks(middles, ["label $-1$", "label $+1$"])
        for tick, colour in zip(ax.get_xticklabels(), (ORANGE, BLUE), strict=True):
            tick.set_color(colour)
        low, high, *kinds = world.split("-")
        letter = f"{LETTERS[world]}: " if world in LETTERS else ""
        ax.set_title(f"{letter}{low} or {high}, {kinds[0]} or {kinds[1]}", fontweight="normal", loc="center")
    part.suptitle("(a) the digit and the picture both tell the label", x=0.01, ha="left", weight="bold", size="medium")


def _rows(networks: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Name, kind and networks (all seeds) of each row; those trained on pictures alone come last."""
    ordered = networks.assign(last=networks["kind"] == "alone").sort_values("last", kind="stable")
    for (model, kind, world, members), some in ordered.groupby(["model", "kind", "world", "members"], sort=False):
        name = f"{model_title(model)}, {world_title(world)}"
        if members > 1:
            name = f"{members:.0f} × {name}, averaged"
        if kind == "adversarial":
            name = f"{name}, adversarial"
        yield f"{name}, picture alone" if kind == "alone" else name, kind, some


def _areas(ax: Axes, rows: list[tuple[str, str, pd.DataFrame]]) -> None:
    """Plot the AUCs of each network, with standard errors over draws of the other samples."""
    for i, (_, kind, some) in enumerate(rows):
        for column, error, _, ink, marker in VERSIONS.values():
            if kind == "alone" and error is not None:
                continue
            errors = some[error] if error is not None else None
            at = -i + np.linspace(0.16, -0.16, len(some)) if len(some) > 1 else [-i]
            look = {"color": ink, "markerfacecolor": _fill(ink), "markersize": 8.5 if error is None else 4.5}
            ax.errorbar(some[column], at, xerr=errors, fmt=marker, elinewidth=1.2, capsize=2, **look)
    ax.axvline(0.5, color="black", linestyle=":", linewidth=1.0)
    ax.annotate("chance", (0.5, 0.45), (3, 0), **OFFSET)
    names = [name for name, _, _ in rows]
    alone = [(i, some) for i, (_, kind, some) in enumerate(rows) if kind == "alone"]
    if alone:
        ax.axhline(0.5 - alone[0][0], color=GREY, linewidth=0.8)
        some = pd.concat([each for _, each in alone])
        ax.annotate(
            _premise(some),
            (0.02, -alone[-1][0] - 0.45),
            (0, 0),
            ("axes fraction", "data"),
            va="top",
            bbox=BLANK,
            **OFFSET,
        )
    ax.set_yticks(-np.arange(len(rows)), names)
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="area under the ROC curve", ylim=(-len(rows) - (1.1 if alone else -0.4), 0.8))
    found = pd.concat([some[["auc", "s_auc", "rest_auc"]].stack() for _, _, some in rows])
    ax.set_xlim(min(0.44, found.min() - 0.03), 1.03)


def _premise(alone: pd.DataFrame) -> str:
    """A sentence that says whether the pictures alone tell the label."""
    right = f"{100 * alone['accuracy'].mean():.0f} % right"
    size = f"{span(alone['samples'], ',.0f')} samples, {span(alone['epochs'])} epochs"
    if alone["accuracy"].min() >= PREMISE:
        return f"The picture alone can be learnt: {right}\nafter {size}."
    return f"Not yet learnt at this scale: {right} after\n{size}. The premise is not met."


def _histograms(ax: Axes, table: pd.DataFrame, letter: str, name: str) -> None:
    """Plot the logits of positive samples in three versions, as in SB's Figure 3(a)."""
    negative = {}
    for version, (_, _, _, ink, _) in VERSIONS.items():
        found = table[table["version"] == version].groupby(["low", "high"])["share"].mean()
        if found.empty:
            continue
        low, high = (found.index.get_level_values(side) for side in ("low", "high"))
        negative[version] = 100 * found[high <= 0].sum()
        edges = np.append(low, high[-1])
        if version == "standard":
            ax.stairs(100 * found, edges, fill=True, color=GREY, alpha=0.35, linewidth=0)
        ax.stairs(100 * found, edges, color=ink, linewidth=1.4)
    ax.axvline(0, color="black", linestyle=":", linewidth=1.0)
    shown = table[table["share"] > 0]
    ax.set(ylabel="share (%)", xlim=(min([-1, *shown["low"]]), max([1, *shown["high"]])))
    s, rest = (f"{negative.get(version, math.nan):.0f} %" for version in ("s", "rest"))
    ax.set_title(f"{letter}{name}: {s} negative with\nanother digit, {rest} with another picture")


# --- Universal perturbations

UAP = {  # columns of the table: words, colour, marker
    "none": ("none", "black", "o"),
    "random": ("random", GREY, "x"),
    "mean": ("class means", GREEN, "s"),
    "uap": ("universal", PURPLE, "D"),
}
PICTURES = 6  # pictures per row
PAPER_SHARE = 99.3  # % of the budget on the digit (SB §4.3, DenseNet121)


def uap(deltas: Mapping[tuple[str, str], np.ndarray], table: pd.DataFrame) -> Figure:
    """Universal perturbations by (model, world), where they spend their budget, and what they do."""
    keys = [key for key in zip(table["model"], table["world"], strict=True) if key in deltas]
    keys = list(dict.fromkeys(keys))
    names = [f"{model_title(model)}, {world_title(world)}" for model, world in keys]
    deep = math.ceil(len(keys) / PICTURES)
    heights = 0.3 + 1.9 * deep, 1.7 + 0.24 * len(keys)
    figure = plt.figure(figsize=(8.6, sum(heights)), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=heights)
    axes = top.subplots(max(1, deep), max(1, min(PICTURES, len(keys))), squeeze=False).ravel()
    for ax in axes[len(keys) :]:
        ax.set_axis_off()
    for ax, key, name in zip(axes, keys, names, strict=False):
        show(ax, [[signed(deltas[key])]])
        ax.set_title(name.replace(", ", "\n"), loc="center", fontweight="normal")
        height = deltas[key].shape[1]
        ax.axhline(height / 2 - 0.5, color="black", linestyle=(0, (4, 3)), linewidth=0.8)
        if key in keys[::PICTURES]:
            ax.set_yticks([height / 4, 3 * height / 4], ["digit", "picture"])
    share = span(100 * table["share"], ".0f")
    top.suptitle(
        f"(a) universal perturbations, each scaled by its largest value: {share} % of the budget is on the digit",
        x=0.01, ha="left", weight="bold", size="medium",
    )  # fmt: skip
    axes = bottom.subplots(1, 2, sharey=True)
    for i, (model, world) in enumerate(keys):
        some = table[(table["model"] == model) & (table["world"] == world)]
        for column, (_, ink, marker) in list(UAP.items())[2:]:
            found = 100 * some["share" if column == "uap" else "mean_share"]
            axes[0].plot(found, np.full(len(some), -i), marker, color=ink, markersize=6)
        for column, (_, ink, marker) in UAP.items():
            size = 9 if column == "none" else 6
            axes[1].plot(100 * some[column], np.full(len(some), -i), marker, color=ink, markersize=size, mfc=_fill(ink))
    axes[0].axvline(PAPER_SHARE, color=PURPLE, linestyle=":", linewidth=1.2)
    axes[0].annotate(f"paper {PAPER_SHARE:g}", (PAPER_SHARE, 0.45), (-3, 0), ha="right", color=PURPLE, **OFFSET)
    axes[0].axvline(50, color="black", linestyle=":", linewidth=1.0)
    axes[0].annotate("alike everywhere", (50, 0.45), (3, 0), **OFFSET)
    means = span(100 * table["mean_share"], ".0f")
    axes[0].set_title(f"(b) the difference of the class means\nhas {means} % there, too")
    axes[0].set(
        xlabel="squared $\\ell_2$ norm on the digit (%)",
        xlim=(min(46, 100 * table[["share", "mean_share"]].min(axis=None) - 4), 101.5),
    )
    axes[1].set(xlabel="accuracy (%) on samples it has not seen", xlim=(-3, 104))
    left, less = (span(100 * table[column], ".0f") for column in ("uap", "mean"))
    axes[1].set_title(f"(c) $\\ell_2$ radius {span(table['eps'])}: they leave {left} %,\nthe class means {less} %")
    axes[0].set_yticks(-np.arange(len(keys)), names)
    axes[0].set_ylim(0.5 - len(keys), 0.85)
    for ax in axes:
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    handles = [
        Line2D([], [], linestyle="none", marker=marker, color=ink, mfc=_fill(ink), markersize=6, label=words)
        for words, ink, marker in UAP.values()
    ]
    bottom.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


# --- The appendix's Table 3 (early version, App. C.2): standard, CIFAR- and MNIST-randomised AUC

PAPER = {
    ("mobilenet_v2", "A"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.53 ± 0.01"),
    ("mobilenet_v2", "B"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.53 ± 0.02"),
    ("mobilenet_v2", "C"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.50 ± 0.01"),
    ("googlenet", "A"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.52 ± 0.02"),
    ("googlenet", "B"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.50 ± 0.01"),
    ("googlenet", "C"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.53 ± 0.01"),
    ("resnet50", "A"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.50 ± 0.01"),
    ("resnet50", "B"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.51 ± 0.01"),
    ("resnet50", "C"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.50 ± 0.03"),
    ("densenet121", "A"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.53 ± 0.02"),
    ("densenet121", "B"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.52 ± 0.01"),
    ("densenet121", "C"): ("1.00 ± 0.00", "1.00 ± 0.00", "0.54 ± 0.01"),
}


def table3(networks: pd.DataFrame) -> str:
    """AUCs by model and world, ours and the paper's; then ensembles, adversarial training, and pictures alone."""
    plain = networks[(networks["kind"] == "standard") & (networks["members"] == 1)]
    worlds = list(dict.fromkeys([*LETTERS, *networks["world"]]))
    rows = []
    for model in dict.fromkeys([*MODELS, *networks["model"]]):
        for world in worlds:
            some = plain[(plain["model"] == model) & (plain["world"] == world)]
            paper = PAPER.get((model, world_title(world)))
            if paper is not None or len(some):
                rows.append(_line(model_title(model), world, paper, some))
    others = networks.drop(plain.index)
    for name, kind, some in _rows(others):
        world = some["world"].iloc[0]
        name = name.replace(f", {world_title(world)}", "")
        if kind == "adversarial":
            name += f" (l∞ {span(some['eps'])}; {100 * some['robust'].mean():.0f} % right under attack)"
        rows.append(_line(name, world, None, some, alone=kind == "alone"))
    header = ["Network", "MNIST-CIFAR", "standard: paper", "here", "CIFAR randomised: paper", "here"]
    header += ["MNIST randomised: paper", "here", "accuracy", "training samples", "epochs"]
    about = (
        "Table 3 of the appendix: area under the ROC curve on test samples as they are, with the pictures and with the "
        f"digits of other samples. Here: {span(networks['test'], ',.0f')} test samples, "
        f"{span(networks['permutations'])} draws of the other samples. ± is the standard error: of one network over "
        "these draws, of several over the networks. Below the paper's networks: adversarial training, ensembles, and "
        "networks that see the picture alone (paper: accuracy 0.954, GoogLeNet)."
    )
    return tables.table(about, header, rows)


def _line(name: str, world: str, paper: tuple[str, ...] | None, some: pd.DataFrame, alone: bool = False) -> list[str]:
    letter = world_title(world)
    row = [name, f"{letter}: {world}" if letter != world else world]
    for printed, (column, error, *_) in zip(paper or 3 * (NONE,), VERSIONS.values(), strict=True):
        row += [printed, _area(some, column, error) if not (alone and error) else NONE]
    if some.empty:
        return [*row, NONE, NONE, NONE]
    return [*row, f"{some['accuracy'].mean():.3f}", span(some["samples"], ",.0f"), span(some["epochs"])]


def _area(some: pd.DataFrame, column: str, error: str | None) -> str:
    """Mean ± standard error."""
    values = some[column].dropna()
    if len(values) == 0:
        return "not run"
    if len(values) > 1:
        return f"{values.mean():.3f} ± {values.std() / math.sqrt(len(values)):.3f} ({len(values)} networks)"
    return f"{values.iloc[0]:.3f}" + (f" ± {some[error].iloc[0]:.3f}" if error is not None else "")
