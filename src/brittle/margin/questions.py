"""What VYS leaves open, and what we ask beyond it: M13–M15. They are answered, not judged."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from brittle.margin.theory_claims import sizes
from brittle.probes.interval import interval
from brittle.verdicts import VYS, Finding, Tables, not_run, seeds, slope, span


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


OWN = {"gd": "l2", "normalised_gd": "l2", "momentum": "l2", "sam": "l2"}
OWN |= {"sign": "linf", "signum": "linf", "adam": "linf", "muon": "spectral"}
OPTIMISERS = "plots/optimisers.csv"


@VYS.question(
    "M14",
    source="§7 (open)",
    says="do other optimisers end in robust networks?",
    paper="open question",
    rule="c/√d of every optimiser at depth 2 and every initial scale, beside that of gradient descent, with the KKT "
    "residual of its own margin problem; the slope of log(attacked radius) in log d, with m = d: √d would be ½",
    reads=OPTIMISERS,
)
def m14(tables: Tables) -> Finding:
    t = _filled(tables[OPTIMISERS])
    return _optimisers(t[t["depth"] == 2], "depth 2")


@VYS.question(
    "M15",
    source="§7 (open)",
    says="are deeper networks as brittle, whatever the optimiser?",
    paper="open question",
    rule="that of M14 at depth 3, where the attacked radius is the best of z and PGD",
    reads=OPTIMISERS,
)
def m15(tables: Tables) -> Finding:
    t = _filled(tables[OPTIMISERS])
    return _optimisers(t[t["depth"] > 2], "depth 3")


def _filled(t: pd.DataFrame) -> pd.DataFrame:
    """The table with all columns: tables of one initial scale have no column for it, nor for the norms."""
    scale = {} if "init_scale" in t else {"init_scale": 1.0}
    absent = [f"kkt_{norm}" for norm in set(OWN.values()) if f"kkt_{norm}" not in t]
    return t.assign(**scale, **dict.fromkeys(absent, math.nan))


def _optimisers(t: pd.DataFrame, missing: str) -> Finding:
    if t.empty:
        return not_run(missing)
    most, words = _compared(t)
    grown = [said for (rule, scale), rows in t.groupby(["rule", "init_scale"]) if (said := _growth(rule, scale, rows))]
    words += [f"attacked radius against d: {', '.join(grown)}"] if grown else []
    asked = {
        f"two values of d at {missing}": bool(grown),
        "d = 400": (t["d"] == 400).any(),
        "initial weights × 1": np.isclose(t["init_scale"], 1.0).any(),
        "initial weights × 0.01": np.isclose(t["init_scale"], 0.01).any(),
        "5 seeds": t["seed"].nunique() >= 5,
    }
    lacks = [cell for cell, there in asked.items() if not there]
    scale = f"depth {span(t['depth'])}, {sizes(t)}, initial weights × {span(t['init_scale'])}"
    return Finding(most, "; ".join(words), scale, lacks=lacks)


def _compared(t: pd.DataFrame) -> tuple[float, list[str]]:
    """The largest mean c/√d, and the optimisers in words, at the d where most of them were run."""
    t = t[t["d"] == t.groupby("d")["rule"].nunique().idxmax()]
    own = [row[f"kkt_{OWN[row['rule']]}"] for _, row in t.iterrows()]
    t = t.assign(ratio=t["c"] / np.sqrt(t["d"]), own=own)
    means = t.groupby(["init_scale", "rule"], sort=False)[["ratio", "on_margin", "own"]].mean()
    ratio = means["ratio"]
    (_, brittle), (_, robust) = ratio.idxmin(), ratio.idxmax()
    words = [
        f"c/√d from {ratio.min():.2f} ({brittle}) to {ratio.max():.2f} ({robust}); each with its share on the margin "
        "and the KKT residual in its own norm"
    ]
    for scale, rows in means.groupby(level="init_scale", sort=False):
        each = [
            f"{rule} {row['ratio']:.2f} ({row['on_margin']:.2f}{_unless_nan(row['own'])})"
            for (_, rule), row in rows.iterrows()
        ]
        words.append(f"initial weights × {scale:g}: {', '.join(each)}")
    if "normalised_gd" in set(t["rule"]):
        words.append("normalised_gd goes gradient descent's own way, at another speed")
    return float(ratio.max()), words


def _unless_nan(value: float) -> str:
    return "" if math.isnan(value) else f", {value:.2f}"


def _growth(rule: str, scale: float, t: pd.DataFrame) -> str:
    """How the attacked radius grows with d where m = d, in words; "" where there are not two d."""
    t = t[(t["m"] == t["d"]) & np.isfinite(t["attacked"])]
    each = [slope(rows["d"], rows["attacked"]) for _, rows in t.groupby("seed") if rows["d"].nunique() > 1]
    if not each:
        return ""
    mean, half = interval(each)
    said = f"{rule} × {scale:g} like d^{mean:.2f}"
    if math.isnan(half):
        return f"{said} (too few seeds for an interval)"
    side = "slower than" if mean + half < 0.5 else "faster than" if mean - half > 0.5 else "not told from"
    return f"{said} [{mean - half:.2f}, {mean + half:.2f}], {side} √d"
