"""Which margin an optimiser maximises, and which features its networks rely on: O1 and O2."""

from __future__ import annotations

import math

import pandas as pd

from brittle.verdicts import LATER, Check, Finding, Tables, at_least, at_most, not_run, seeds, span, spread_of

MARGINS, RELIANCE = "plots/geometry_margins.csv", "plots/geometry_reliance.csv"
OWN = {"momentum": "l2", "signum": "linf", "muon": "spectral"}  # the paper's rules, and the norm of each
CALLED = {"l2": "ℓ2", "linf": "ℓ∞", "spectral": "spectral"}
SIMPLE, LEARNT = 0.55, 0.99


@LATER.claim(
    "O1",
    source="Gronich, Vardi 2026 (arXiv 2602.16340), abstract",
    says="the optimiser decides which margin is maximised",
    paper='"algorithms like Muon (spectral norm), MomentumGD (ℓ2 norm), and Signum (ℓ∞ norm) … have a bias towards KKT '
    'points of the corresponding margin maximization problem"; "the identity of the margin maximized depends on the '
    'choice of optimizer"',
    premise="smooth homogeneous networks, to which the theorem applies (ReLU networks are reported beside them)",
    rule="in each of the three norms the rule of that norm has the largest normalised margin of the three, every seed; "
    "its KKT residual in it falls from the first level of the loss to the last",
    reads=MARGINS,
)
def o1(tables: Tables) -> Finding:
    t = tables[MARGINS]
    last = t[t["log10_loss"] == t["log10_loss"].min()]
    smooth = last[last["network"] == "smooth"]
    missing = [f"{rule} on smooth networks" for rule in OWN if rule not in set(smooth["rule"])]
    missing += [] if t["log10_loss"].nunique() > 1 else ["a second level of the loss"]
    if missing:
        return not_run(*missing)
    checks = [check for rule in OWN for check in (_larger(smooth, rule), _falls(t, rule))]
    measured = _words(smooth, "smooth")
    relu = last[last["network"] == "relu"]
    if set(OWN) <= set(relu["rule"]):
        measured += f"; outside the theorem: {_words(relu, 'ReLU')}"
    lacks = [] if t["log10_loss"].min() <= -300 else ["the loss 1e-300"]
    scale = f"d = {span(t['d'])}, m = {span(t['m'])}, width {span(t['width'])}, loss 1e{span(last['log10_loss'])}"
    return Finding(
        min(_ratios(smooth, rule).min() for rule in OWN), measured, f"{scale}, {seeds(t)}", checks, lacks=lacks
    )


def _ratios(t: pd.DataFrame, rule: str) -> pd.Series:
    """The rule's margin in its own norm over the largest of the other two rules', seed by seed."""
    margins = t.pivot_table(index="seed", columns="rule", values=f"margin_{OWN[rule]}")
    return margins[rule] / margins[[other for other in OWN if other != rule]].max(axis=1)


def _larger(t: pd.DataFrame, rule: str) -> Check:
    ratios = _ratios(t, rule)
    name = f"{CALLED[OWN[rule]]} margin of {rule} over the largest of the others'"
    return at_least(name, ratios.min(), 1.0, spread_of(ratios), t[t["seed"] == ratios.idxmin()])


def _falls(t: pd.DataFrame, rule: str) -> Check:
    t = t[(t["network"] == "smooth") & (t["rule"] == rule)]
    residuals = t.pivot_table(index="seed", columns="log10_loss", values=f"kkt_{OWN[rule]}").sort_index(axis=1)
    ratios = residuals.iloc[:, 0] / residuals.iloc[:, -1]  # at the smallest loss over that at the largest
    name = f"{CALLED[OWN[rule]]} KKT residual of {rule}, last over first"
    return at_most(name, ratios.max(), 1.0, spread_of(ratios), t[t["seed"] == ratios.idxmax()])


def _words(t: pd.DataFrame, kind: str) -> str:
    each = [
        f"{rule} has {_ratios(t, rule).min():.2g} × the others' {CALLED[norm]} margin "
        f"(KKT residual {t.loc[t['rule'] == rule, f'kkt_{norm}'].mean():.2f})"
        for rule, norm in OWN.items()
    ]
    return f"{kind} networks: {', '.join(each)}"


@LATER.question(
    "O2",
    source="Dragutinović, Ranganath 2026 (arXiv 2603.00742); SB App. Table 4",
    says="does Muon take away the simplicity bias in the slab worlds?",
    paper='"Muon optimization removes a simplicity bias that is naturally preserved by older, more thoroughly studied '
    'methods like Stochastic Gradient Descent (SGD)", in other tasks than these',
    rule="S-randomised AUC of Muon's networks that have training accuracy ≥ 0.99, beside those of SB's optimisers: "
    "above 0.55 they would rely on more than S",
    reads=RELIANCE,
)
def o2(tables: Tables) -> Finding:
    t = tables[RELIANCE]
    if "muon" not in set(t["optimiser"]):
        return not_run("Muon")
    learnt = t[t["accuracy"] >= LEARNT]
    muon = learnt[learnt["optimiser"] == "muon"]
    words = [_areas(world, rows) for world, rows in learnt.groupby("world", sort=False)]
    more = f"{(muon['auc_s'] > SIMPLE).sum()} of Muon's {len(muon)} networks that learnt are above {SIMPLE}"
    lacks = [f"Muon on {world}" for world in ("lms-5", "ms-5-7") if world not in set(muon["world"])]
    scale = f"{', '.join(t['model'].unique())}, {len(learnt)} of {len(t)} networks learnt, {seeds(t)}"
    largest = muon["auc_s"].max() if len(muon) else math.nan
    return Finding(float(largest), f"S-randomised AUC: {'; '.join([*words, more])}", scale, lacks=lacks)


def _areas(world: str, t: pd.DataFrame) -> str:
    each = t.groupby("optimiser", sort=False)["auc_s"]
    return f"{world}: " + ", ".join(f"{optimiser} {span(areas.round(3))}" for optimiser, areas in each)
