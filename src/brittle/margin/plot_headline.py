"""The figures of the headline experiment."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from brittle.drawing.style import BLUE, GREEN, GREY, ORANGE


def flipping(flipped: pd.DataFrame, seeds: pd.DataFrame) -> Figure:
    """The share of the margin samples that one perturbation flips, against its size: z, a random direction, and √d."""
    figure, ax = plt.subplots(figsize=(6.0, 3.4))
    for name, colour, label in (
        ("z", BLUE, "$z=\\sum_i y_i x_i$, one vector for all samples"),
        ("random", GREY, "a random direction"),
    ):
        share, spread = 100 * flipped[name], 100 * flipped[f"{name}_std"]
        ax.plot(flipped["size"], share, color=colour, label=label)
        low, high = (share - spread).clip(lower=0), (share + spread).clip(upper=100)
        ax.fill_between(flipped["size"], low, high, color=colour, alpha=0.2, linewidth=0)
    c, norm = seeds["c"], seeds["norm"].iloc[0]
    on_sphere = np.isclose(norm, seeds["sqrt_d"].iloc[0])
    marks = [(norm, ORANGE, f"$\\sqrt{{d}}$ = {norm:.3g}" if on_sphere else f"mean $\\|x\\|$ = {norm:.3g}")]
    if np.isfinite(c).all():
        spread = f" ± {c.std():.2g}" if len(c) > 1 else ""
        marks.append((c.mean(), BLUE, f"c = {c.mean():.3g}{spread}\nall flipped"))
    for at, colour, text in marks:
        ax.axvline(at, color=colour, linestyle="--", linewidth=1.2)
        ax.annotate(text, (at, 55), xytext=(5, 0), textcoords="offset points", color=colour, va="center", weight="bold")
    ax.set(
        xlabel="size of the perturbation, $\\ell_2$",
        ylabel="margin samples flipped (%)",
        xlim=(0, flipped["size"].iloc[-1]),
        ylim=(-3, 106),
    )
    first = seeds.iloc[0]
    runs = f"mean ± std of {len(seeds)} seeds" if len(seeds) > 1 else "one seed"
    setting = f"d = {first['d']:.0f}, m = {first['m']:.0f}, width {first['width']:.0f}, {runs}"
    ax.set_title("One small vector flips every sample on the margin", pad=18)
    ax.text(0, 1.03, setting, transform=ax.transAxes, color=GREY)
    ax.legend(loc="upper left", bbox_to_anchor=(0.22, 0.92))
    return figure


def training(curves: pd.DataFrame, samples: pd.DataFrame, slack: float) -> Figure:
    """How the networks got there: ln loss along training, and the outputs they end with."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9), layout="constrained")
    for _, curve in curves.groupby("seed"):
        left.plot(curve["step"], curve["ln_loss"], color=GREEN, alpha=0.7, linewidth=1.2)
    left.set(xlabel="step", ylabel="ln loss", title="Training, one line per seed")
    for _, each in samples.groupby("seed"):
        outputs = np.sort(each["output"])
        right.plot(np.linspace(0, 100, len(outputs)), outputs, color=GREEN, alpha=0.7, linewidth=1.2)
    right.axhline(slack, color=ORANGE, linestyle="--", linewidth=1.2)
    share = 100 * samples["on_margin"].mean()
    right.annotate(
        f"on the margin: below {slack:g} × the smallest\n({share:.3g} % of the samples)",
        (3, slack),
        xytext=(0, 5),
        textcoords="offset points",
        color=ORANGE,
        va="bottom",
    )
    right.set(
        xlabel="samples, sorted (%)",
        ylabel="$y\\,N(x)$ / smallest",
        title="Outputs after training",
        ylim=(0.98, max(1.05 * slack, 1.02 * samples["output"].max())),
    )
    return figure
