"""What Tsoy and Konstantinov (2024) say about two-layer networks where no line separates the labels: T1 and T2."""

from __future__ import annotations

import math

import pandas as pd

from brittle.probes.angles import apart
from brittle.verdicts import LATER, Finding, Tables, at_least, at_most, every, not_run, seeds, span

XOR, MIDDLE = "plots/xor.csv", "plots/mid_training.csv"
DIRECTIONS = [f"direction_{n}" for n in range(1, 5)]
EARLY = 0.8  # of ln 2, the loss at the start
MASS, NEAR = 0.95, 10.0
WIDTHS = (256, 4096)
CELL = ["angle", "width"]


@LATER.claim(
    "T1",
    source="Tsoy, Konstantinov 2024, Fig 2",
    says="on XOR, neurons cluster around a few directions early in training, whatever the width",
    paper='"in the early training phases, network features cluster around a few directions that do not depend on the '
    'size of the hidden layer" (abstract); the code: 4096 neurons, n = 512, angle π/2',
    rule="at an angle of 90°, with 256 and with 4096 neurons, for every seed: ≥ 95 % of Σ ‖wⱼ‖² within 10° of at most "
    "four directions while the loss is still ≥ 0.8 ln 2, and at the end; and the directions of both widths on the same "
    "data within 10° of each other (numbers of ours: the paper shows the angles)",
    reads=XOR,
)
def t1(tables: Tables) -> Finding:
    t = tables[XOR]
    t = t[t["angle"] == 90]
    missing = [f"{width} neurons" for width in WIDTHS if width not in set(t["width"])]
    if missing:
        return not_run(*missing)
    early, end = at(t[t["loss"] >= EARLY * math.log(2)]), at(t)
    if len(early) < len(end):
        return not_run("every network while its loss is ≥ 0.8 ln 2")
    between = distances(end)
    checks = (
        every(early, "mass", at_least, MASS, cells=CELL, name="mass near four directions early"),
        every(end, "mass", at_least, MASS, cells=CELL, name="mass near four directions at the end"),
        every(between, "apart", at_most, NEAR, cells=["angle"], name="degrees between the widths' directions"),
    )
    measured = f"{100 * early['mass'].min():.4g} % or more early (loss {span(early['loss'])}), "
    measured += f"{100 * end['mass'].min():.4g} % at the end (loss {span(end['loss'])}); the widths' directions differ "
    measured += f"by {between['apart'].max():.2g}° at most; at the start four directions have "
    start = t[t["step"] == 0]
    measured += f"{100 * start['mass'].max():.3g} %"
    return Finding(float(early["mass"].min()), measured, f"width {span(t['width'])}, {seeds(t)}", checks)


def at(t: pd.DataFrame) -> pd.DataFrame:
    """The last measurement of each network."""
    return t.sort_values("step").groupby([*CELL, "seed"], as_index=False).last()


def distances(t: pd.DataFrame) -> pd.DataFrame:
    """For each seed, how far the directions of the narrowest network are from those of the widest."""
    rows = []
    for (angle, seed), each in t.groupby(["angle", "seed"]):
        by_width = each.sort_values("width")[DIRECTIONS].to_numpy().tolist()
        rows.append({"angle": angle, "seed": seed, "apart": apart(by_width[0], by_width[-1])})
    return pd.DataFrame(rows)


@LATER.question(
    "T2",
    source="Tsoy, Konstantinov 2024 (on pictures); SB's LMS-5",
    says="are complex features learnt in mid-training and lost again?",
    paper='"features learned in the middle stages of training may be more useful for OOD transfer"',
    rule="the accuracy of a linear probe of the last hidden layer, on LMS-5 with S taken from other samples, along "
    "training: a peak that is above the start and the end by more than the seeds' range would say yes",
    reads=MIDDLE,
)
def t2(tables: Tables) -> Finding:
    t = tables[MIDDLE]
    if t["epoch"].nunique() < 3:
        return not_run("three epochs")
    parts, gains = [], []
    for d, cell in t.groupby("d"):
        by = cell.groupby("epoch")["rest"].agg(["mean", "min", "max"]).sort_index()
        middle = by.iloc[1:-1]
        peak = middle.loc[middle["mean"].idxmax()]
        gains.append(peak["min"] - max(by["max"].iloc[0], by["max"].iloc[-1]))
        parts.append(
            f"d = {d}: {by['mean'].iloc[0]:.3f} at first, {peak['mean']:.3f} at most on the way (after "
            f"{middle['mean'].idxmax()} epochs), {by['mean'].iloc[-1]:.3f} at the end"
        )
    yes = sum(gain > 0 for gain in gains)
    measured = f"a peak in {yes} of {len(gains)} dimensions; {'; '.join(parts)}"
    return Finding(max(gains), measured, f"{t['world'].iloc[0]}, width {span(t['width'])}, {seeds(t)}")
