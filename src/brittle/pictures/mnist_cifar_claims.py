"""The claims of SB on real pictures, S15–S18: a digit above a picture, and networks that see the digit alone."""

from __future__ import annotations

import math

import pandas as pd

from brittle.verdicts import SB, Finding, Tables, seeds, span

NETWORKS, UAP = "plots/mnist_cifar_networks.csv", "plots/mnist_cifar_uap.csv"
PAPER_SCALE = 50_000  # training samples
RULE = "digit-randomised AUC in [0.44, 0.58] and picture-randomised AUC ≥ 0.99, for every network"


def _scale(t: pd.DataFrame) -> str:
    cells = f"{t['model'].nunique()} architectures, {t['world'].nunique()} pairs of classes, up to {seeds(t)}"
    sizes = f"{span(t['samples'])} training and {span(t['test'])} test samples, {span(t['permutations'])} draws"
    return f"{cells}; {sizes}"


def _sees_digits_only(t: pd.DataFrame, none: str) -> Finding:
    if t.empty:
        return Finding(None, math.nan, none, "")
    s, rest = t["s_auc"], t["rest_auc"]
    farthest = float(s.iloc[(s - 0.5).abs().argmax()])
    measured = (
        f"digit-randomised {span(s.round(3))} (standard error ≤ {t['s_error'].max():.3f}), "
        f"picture-randomised ≥ {rest.min():.3f}, as they are ≥ {t['auc'].min():.3f}; {len(t)} networks"
    )
    holds = bool(s.between(0.44, 0.58).all() and rest.min() >= 0.99)
    return Finding(holds, farthest, measured, _scale(t))


@SB.claim(
    "S15",
    source="App. Tables 2, 3",
    says="networks trained on a digit above a picture rely on the digit alone",
    paper="AUC 1.00, digit-randomised 0.50–0.54, picture-randomised 1.00",
    rule=RULE,
    reads=NETWORKS,
)
def s15(tables: Tables) -> Finding:
    t = tables[NETWORKS]
    return _sees_digits_only(t[(t["kind"] == "standard") & (t["members"] == 1)], "no network")


@SB.claim(
    "S16",
    source="§4.2",
    says="the pictures alone tell the label almost as well",
    paper="accuracy 95.4 % (GoogLeNet)",
    rule="accuracy on the pictures alone ≥ 0.90, for every architecture, at the paper's scale (50,000 samples)",
    reads=NETWORKS,
)
def s16(tables: Tables) -> Finding:
    t = tables[NETWORKS]
    t = t[t["kind"] == "alone"]
    if t.empty:
        return Finding(None, math.nan, "no network on the pictures alone", "")
    least = float(t["accuracy"].min())
    measured = f"accuracy {span(t['accuracy'].round(3))}, AUC {span(t['auc'].round(3))}"
    if t["samples"].max() < PAPER_SCALE:
        measured += "; the premise that both halves tell the label is not met in so short a training"
        return Finding(None, least, measured, _scale(t))
    return Finding(least >= 0.9, least, measured, _scale(t))


@SB.claim(
    "S17",
    source="§4.3, Fig 4",
    says="universal perturbations attack the digit alone",
    paper="99.3 % of the l2 budget (DenseNet121)",
    rule="at least 0.95 of the budget on the digit, for every network",
    reads=f"{UAP} {NETWORKS}",
)
def s17(tables: Tables) -> Finding:
    t = tables[UAP]
    least = float(t["share"].min())
    measured = (
        f"share {span(t['share'].round(3))}, that of the class means' difference {span(t['mean_share'].round(3))}; "
        f"accuracy {span(t['uap'].round(3))} under it (class means {span(t['mean'].round(3))}, "
        f"random {span(t['random'].round(3))}, none {span(t['none'].round(3))}) at l2 radius {span(t['eps'])}"
    )
    n = tables[NETWORKS]
    return Finding(least >= 0.95, least, measured, _scale(n[(n["kind"] == "standard") & (n["members"] == 1)]))


@SB.claim(
    "S18",
    source="§4.3",
    says="neither ensembles nor adversarial training help",
    paper="AUCs as before",
    rule=RULE,
    reads=NETWORKS,
)
def s18(tables: Tables) -> Finding:
    t = tables[NETWORKS]
    t = t[(t["members"] > 1) | (t["kind"] == "adversarial")]
    found = _sees_digits_only(t, "neither an ensemble nor adversarial training")
    hard = t[t["kind"] == "adversarial"]
    if hard.empty or found.holds is None:
        return found
    right = f"accuracy {span(hard['accuracy'].round(3))}, under attack {span(hard['robust'].round(3))}"
    words = f"; trained against l∞ {span(hard['eps'])}: {right}"
    return Finding(found.holds, found.value, found.measured + words, found.scale)
