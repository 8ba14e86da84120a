"""Clusters and fresh samples of them: F1–F3, the claims of Frei, Vardi, Bartlett and Srebro 2023."""

from __future__ import annotations

import numpy as np
import pandas as pd

from brittle.verdicts import (
    LATER,
    Check,
    Finding,
    Tables,
    at_least,
    at_most,
    every,
    exactly,
    not_run,
    of_mean,
    of_share,
    seeds,
    slopes,
    span,
    within,
)

TABLE = "plots/unseen.csv"
CELL = ["centres", "d", "k", "per_cluster", "sigma"]
PREMISE = "centres are weakly correlated: k (max |⟨μᵢ, μⱼ⟩| + Δ + 1) ≤ (d - Δ + 1)/10 with Δ = 4σ√d ln d"
SOURCE = "Frei, Vardi, Bartlett, Srebro 2023, arXiv 2303.01456"
FEWEST = 16  # clusters from which half of √d, what Thm 3.1's network withstands, is twice √(d/k)


def _parts(tables: Tables) -> tuple[pd.DataFrame, pd.DataFrame, list[Check]]:
    """The networks for which the paper's assumption holds, the others, and the premise that there are some."""
    t = tables[TABLE]
    t = t.assign(c_over=t["c"] / t["unit"])
    applies = t["applies"] == 1
    return t[applies], t[~applies], [exactly("the assumption on the centres holds in a cell", bool(applies.any()))]


def _scale(t: pd.DataFrame) -> str:
    return f"d = {span(t['d'])}, k = {span(t['k'])}, n = {span(t['n'])}, σ = {span(t['sigma'])}, {seeds(t)}"


def _beside(words: str, others: pd.DataFrame) -> str:
    """What was found where the assumption does not hold, in words."""
    return f"; beyond the assumption ({others.groupby(CELL).ngroups} cells) {words}" if len(others) else ""


@LATER.claim(
    "F1",
    source=f"{SOURCE}, on generalisation",
    says="networks trained on clusters generalise",
    paper="“gradient flow is biased towards solutions that generalize well”",
    premise=PREMISE,
    rule="accuracy on fresh samples ≥ 0.99, every network for which the premise holds",
    reads=TABLE,
)
def f1(tables: Tables) -> Finding:
    t, others, premises = _parts(tables)
    if t.empty:
        return Finding(np.nan, "", _scale(others), premises=premises)
    worst = t.loc[t["accuracy"].idxmin()]
    spread = of_share(worst["accuracy"], worst["fresh"])
    checks = [every(t, "accuracy", at_least, 0.99, cells=CELL, name="accuracy on fresh samples", spread=spread)]
    measured = f"accuracy {t['accuracy'].min():.4f} at least, of {span(t['fresh'])} fresh samples"
    measured += _beside(f"{others['accuracy'].min():.4f} at least", others)
    return Finding(float(t["accuracy"].min()), measured, _scale(t), checks, premises)


@LATER.claim(
    "F2",
    source=f"{SOURCE}, on robustness",
    says="one vector from the training data flips fresh samples, at √(d/k)",
    paper="“susceptible to small adversarial ℓ₂-perturbations”: z = η Σ yⱼμⱼ, ‖z‖ = O(√(d/k)) for balanced labels",
    premise=PREMISE,
    rule="z of the training data flips 99 % of the fresh samples at c/√(d/k) in [0.8, 1.25], every network; the slope "
    "of log c in log k is in [-0.55, -0.45]; c moves by ≤ 10 % with the number of samples of a cluster",
    reads=TABLE,
)
def f2(tables: Tables) -> Finding:
    t, others, premises = _parts(tables)
    if t.empty:
        return Finding(np.nan, "", _scale(others), premises=premises)
    asked = {"two values of k": t["k"].nunique() > 1, "two values of n/k": t["per_cluster"].nunique() > 1}
    if missing := [name for name, there in asked.items() if not there]:
        return not_run(*missing, scale=_scale(t))
    if not np.isfinite(t["c"]).all():
        checks = [exactly("z flips 99 % of the fresh samples, every network", False, t[~np.isfinite(t["c"])])]
        return Finding(np.inf, "there are networks of which z does not flip 99 %", _scale(t), checks, premises)
    rate, spread = slopes(t, "k", "c")
    moved, moved_spread = _moved(t)
    checks = [
        every(t, "c_over", within, 0.8, 1.25, cells=CELL, name="c/√(d/k)"),
        within("slope of log c in log k", rate, -0.55, -0.45, spread),
        at_most("change of c with n/k", moved, 0.1, moved_spread),
    ]
    measured = (
        f"c/√(d/k) {span(t['c_over'])}, slope {rate:.3f}, c moves by {100 * moved:.1f} % at most with n/k; a random "
        f"direction of that size flips {100 * t['random_at_c'].max():.2g} % at most"
    )
    measured += _beside(f"c/√(d/k) {span(others['c_over'])}", others)
    return Finding(float(t["c_over"].max()), measured, _scale(t), checks, premises)


def _moved(t: pd.DataFrame) -> tuple[float, float]:
    """The largest relative change of the mean c between numbers of samples, over all other settings, and its spread."""
    found = []
    for _, cell in t.groupby([axis for axis in CELL if axis != "per_cluster"]):
        ends = [rows["c"] for _, rows in cell.groupby("per_cluster")]
        means = [c.mean() for c in ends]
        low, high = min(ends, key=np.mean), max(ends, key=np.mean)
        spread = float(np.hypot(of_mean(low), of_mean(high))) / min(means)
        found.append((max(means) / min(means) - 1, spread))
    return max(found)


@LATER.claim(
    "F3",
    source=f"{SOURCE}, on robust networks",
    says="far more robust networks exist for the same clusters",
    paper="“even though robust networks that fit the data exist”: one withstands perturbations of order √d",
    premise=PREMISE,
    rule="on fresh samples the radius certified for Thm 3.1's network on the centres is ≥ 2 × the trained one's "
    "attacked radius, in the median sample of every network with k ≥ 16: √d/2 is twice √(d/k) from there on",
    reads=TABLE,
)
def f3(tables: Tables) -> Finding:
    t, others, premises = _parts(tables)
    few, t = t[t["k"] < FEWEST], t[t["k"] >= FEWEST]
    if t.empty:
        where = "where the assumption holds" if len(few) else ""
        return not_run(f"k ≥ {FEWEST} {where}".strip(), scale=_scale(few if len(few) else others))
    checks = [every(t, "ratio", at_least, 2.0, cells=CELL, name="certified / attacked radius")]
    fewer = f", with fewer clusters {span(few['ratio'])} (√k/2 is {_half_root(few)})" if len(few) else ""
    measured = (
        f"certified {span(t['certified'] / np.sqrt(t['d']))} √d, attacked {span(t['attacked'] / t['unit'])} √(d/k): "
        f"{t['ratio'].min():.2f} × at least{fewer}; the constructed network is right on "
        f"{100 * t['robust_accuracy'].min():.4g} % of the fresh samples at least"
    )
    measured += _beside(f"{span(others['ratio'])} ×", others)
    return Finding(float(t["ratio"].min()), measured, _scale(t), checks, premises)


def _half_root(t: pd.DataFrame) -> str:
    return span(np.sqrt(t["k"]) / 2)
