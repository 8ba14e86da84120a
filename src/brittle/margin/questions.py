"""What VYS leaves open, and what we ask beyond it: M13–M15. They are answered, not judged."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from brittle.margin.theory_claims import sizes
from brittle.verdicts import VYS, Finding, Tables, not_run, seeds, span


@VYS.question(
    "M13",
    source="(beyond)",
    says="between which radii does every sample lie?",
    paper="not in the paper",
    rule="the bracket [certified, attacked] of every sample of the trained and of Thm 3.1's network",
    reads="plots/certify.csv",
)
def m13(tables: Tables) -> Finding:
    t = tables["plots/certify.csv"]
    ratio = (t["certified"] / t["attacked"])[t["network"] == "trained"]
    medians = t.groupby("network")[["certified", "attacked"]].median()
    bracket = {name: f"[{row['certified']:.3f}, {row['attacked']:.3f}]" for name, row in medians.iterrows()}
    measured = (
        f"median bracket {bracket['trained']} trained, {bracket['thm31']} Thm 3.1; certified/attacked "
        f"{ratio.median():.4f} in the median, {ratio.min():.4f} at worst; {t['beaten'].sum():g} certificates beaten"
    )
    return Finding(float(ratio.median()), measured, f"{len(t)} samples, d = {span(t['d'])}, {seeds(t)}")


@VYS.question(
    "M14",
    source="§7 (open)",
    says="do other optimisers end in networks as brittle?",
    paper="open question",
    rule="c/√d of every optimiser at depth 2, beside that of gradient descent",
    reads="plots/optimisers.csv",
)
def m14(tables: Tables) -> Finding:
    t = tables["plots/optimisers.csv"]
    return _optimisers(t[t["depth"] == 2], "depth 2")


@VYS.question(
    "M15",
    source="§7 (open)",
    says="are deeper networks as brittle?",
    paper="open question",
    rule="c/√d of every optimiser at depth 3",
    reads="plots/optimisers.csv",
)
def m15(tables: Tables) -> Finding:
    t = tables["plots/optimisers.csv"]
    return _optimisers(t[t["depth"] > 2], "depth 3")


def _optimisers(t: pd.DataFrame, missing: str) -> Finding:
    if t.empty:
        return not_run(missing)
    by_rule = t.assign(ratio=t["c"] / np.sqrt(t["d"])).groupby("rule", sort=False)[["ratio", "on_margin", "kkt"]].mean()
    brittle, robust = by_rule["ratio"].idxmin(), by_rule["ratio"].idxmax()
    words = ", ".join(
        f"{rule} {row['ratio']:.2f} ({row['on_margin']:.2f}{'' if math.isnan(row['kkt']) else f', {row.kkt:.2f}'})"
        for rule, row in by_rule.iterrows()
    )
    ends = f"from {by_rule['ratio'].min():.2f} ({brittle}) to {by_rule['ratio'].max():.2f} ({robust})"
    measured = f"c/√d {ends}; each with its share on the margin and KKT residual: {words}"
    return Finding(float(by_rule["ratio"].max()), measured, f"depth {span(t['depth'])}, {sizes(t)}")
