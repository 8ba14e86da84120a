"""Powers of ReLU: V1–V4, the claims of Min and Vidal 2024, and what follows from their networks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from brittle.verdicts import (
    LATER,
    Check,
    Finding,
    Tables,
    at_least,
    cells_missing,
    every,
    not_run,
    of_share,
    seeds,
    span,
    within,
)

TABLE, REMEDIES = "plots/powers.csv", "plots/cross_remedies.csv"
CELL = ["p", "k", "alpha", "d", "n", "width"]
SOURCE = "Min, Vidal 2024, arXiv 2405.15942"
KS = (4, 10, 20)
PREMISE = "the networks are right on ≥ 99 % of the fresh samples"
ROW = "power_relu"  # the remedy's name on the leaderboard


def _judged(tables: Tables) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The paper's two powers where noise is smallest, as in its figure of attacks, and all other networks."""
    t = tables[TABLE]
    chosen = t["p"].isin((1.0, 3.0)) & (t["alpha"] == t["alpha"].min())
    return t[chosen], t[~chosen]


def _absent(t: pd.DataFrame) -> list[str]:
    return [f"p = {p:g}" for p in (1.0, 3.0) if p not in set(t["p"])]


def _premise(t: pd.DataFrame) -> list[Check]:
    worst = t.loc[t["accuracy"].idxmin()]
    spread = of_share(worst["accuracy"], worst["fresh"])
    return [every(t, "accuracy", at_least, 0.99, cells=CELL, name="accuracy on fresh samples", spread=spread)]


def _scale(t: pd.DataFrame) -> str:
    k = ", ".join(f"{k:g}" for k in sorted(t["k"].unique()))
    return f"d = {span(t['d'])}, n = {span(t['n'])}, width {span(t['width'])}, K = {k}, {seeds(t)}"


def _power(t: pd.DataFrame, p: float) -> pd.DataFrame:
    return t[t["p"] == p]


@LATER.claim(
    "V1",
    source=f"{SOURCE}, Fig (c) and (d)",
    says="neurons turn towards the average of their class with p = 1, towards single centres with p = 3",
    paper="cosines between the dominant neurons and the centres of classes (p = 1) and of their clusters (p = 3)",
    rule="mean cosine, weighted by |vⱼ| ‖wⱼ‖, ≥ 0.95: with the average of the class (p = 1), with the nearest centre "
    "(p = 3), every network with the smallest noise; the threshold is ours",
    reads=TABLE,
)
def v1(tables: Tables) -> Finding:
    t, _ = _judged(tables)
    if absent := _absent(t):
        return not_run(*absent)
    one, three = _power(t, 1.0), _power(t, 3.0)
    checks = [
        every(one, "average", at_least, 0.95, cells=CELL, name="cosine with the class's average, p = 1"),
        every(three, "centre", at_least, 0.95, cells=CELL, name="cosine with the nearest centre, p = 3"),
    ]
    measured = (
        f"p = 1: {one['average'].min():.4f} at least with the average, {one['centre'].max():.3f} at most with a "
        f"centre; p = 3: {three['centre'].min():.4f} at least with a centre, {three['average'].max():.3f} at most "
        "with the average"
    )
    value = float(min(one["average"].min(), three["centre"].min()))
    return Finding(value, measured, _scale(t), checks, lacks=_lacking(t))


@LATER.claim(
    "V2",
    source=f"{SOURCE}, Fig (e)",
    says="p = 3 makes a network as robust as the distance of the clusters allows, p = 1 does not",
    paper="“not only generalizes well but is also robust”: accuracy under attack falls at 1/√K (p = 1) and at √2/2 "
    "(p = 3)",
    premise=PREMISE,
    rule="the size of single perturbations that halves the accuracy on fresh samples is within 10 % of 1/√K (p = 1) "
    "and of √2/2 (p = 3), every network with the smallest noise",
    reads=TABLE,
)
def v2(tables: Tables) -> Finding:
    t, others = _judged(tables)
    if absent := _absent(t):
        return not_run(*absent)
    t = t.assign(ratio=t["radius"] / t["radius_closed"])
    names = {1.0: "radius · √K, p = 1", 3.0: "radius / (√2/2), p = 3"}
    checks = [every(_power(t, p), "ratio", within, 0.9, 1.1, cells=CELL, name=name) for p, name in names.items()]
    said = "; ".join(f"{name}: {span(_power(t, p)['ratio'])}" for p, name in names.items())
    measured = f"{said}; Thm 3.1's network on the centres is certified to {span(t['certified'])}"
    besides = [
        f"p = {p:g}, α = {alpha:g}: {rows['radius'].mean():.3f}" for (p, alpha), rows in others.groupby(["p", "alpha"])
    ]
    measured += f"; others: {', '.join(besides)}" if besides else ""
    worst = float(t["ratio"].loc[(t["ratio"] - 1).abs().idxmax()])
    return Finding(worst, measured, _scale(t), checks, _premise(t), lacks=_lacking(t))


def _lacking(t: pd.DataFrame) -> list[str]:
    cells = cells_missing(t, ["p", "k"], [(p, k) for p in (1.0, 3.0) for k in KS])
    return [f"p = {cell.split()[0]}, K = {cell.split()[1]}" for cell in cells]


@LATER.question(
    "V3",
    source=f"{SOURCE} (ours)",
    says="at which size does z flip a network with p = 3, in closed form?",
    paper="not in the paper",
    rule="the size of z that halves the accuracy on fresh samples of a label, over √K/(1 + K'^⅓), K' clusters of the "
    "other label, in the worst network with p = 3 and the smallest noise",
    reads=TABLE,
)
def v3(tables: Tables) -> Finding:
    t = _power(_judged(tables)[0], 3.0)
    if t.empty:
        return not_run("p = 3")
    ratios = [t[f"z_{label}"] / t[f"z_{label}_closed"] for label in ("positive", "negative")]
    each = pd.concat(ratios)
    worst = float(each.iloc[int(np.argmax((each - 1).abs()))])
    measured = (
        f"measured over closed form {span(ratios[0])} for positive samples, {span(ratios[1])} for negative ones: "
        f"z takes {(t['z'] / t['radius']).mean():.2f} × the radius of single perturbations"
    )
    return Finding(worst, measured, _scale(t))


@LATER.question(
    "V4",
    source=f"{SOURCE} (ours)",
    says="does p = 3 help in the worlds of the three papers?",
    paper="not in the paper",
    rule="robust accuracy of a network with p = 3, trained plainly, minus that of plain training, world by world",
    reads=REMEDIES,
)
def v4(tables: Tables) -> Finding:
    t = tables[REMEDIES]
    t = t[(t["yours"] == 0) & (t["own"] == 1) & (t["world"] != "all worlds")]
    if ROW not in set(t["remedy"]):
        return not_run(f"the remedy {ROW} on the leaderboard")
    mean = t.groupby(["world", "remedy"], sort=False)[["accuracy", "robust"]].mean().unstack()
    gain = (mean["robust"][ROW] - mean["robust"]["nothing"]).dropna()
    words = ", ".join(f"{w} {g:+.3f} (accuracy {mean['accuracy'][ROW][w]:.3f})" for w, g in gain.items())
    return Finding(float(gain.mean()), f"gain in robust accuracy: {words}", f"{len(gain)} worlds")
