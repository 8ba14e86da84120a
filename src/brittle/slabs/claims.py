"""The claims of "The Pitfalls of Simplicity Bias in Neural Networks" (SB) on synthetic data, S1–S14."""

from __future__ import annotations

import math
import re
from itertools import product

import pandas as pd

from brittle.verdicts import SB, Finding, Tables, seeds, slope, span

NETWORKS = "plots/slabs_networks.csv"
AREAS = ("auc_roc", "auc_pr")  # the authors' code uses the first, Definition 2 says the second: both must agree
RULE = "S-randomised AUC in [0.45, 0.55] and Sᶜ-randomised AUC ≥ 0.99, under either curve, for every network"


def _relies_on_s(t: pd.DataFrame, scale: str) -> Finding:
    """SB Table 1: the AUC is chance when S comes from other samples, and unchanged when the rest does."""
    if t.empty:
        return Finding(None, math.nan, "no network", scale)
    s, rest = (pd.concat([t[f"{version}_{area}"] for area in AREAS]) for version in ("s", "rest"))
    farthest = float(s.iloc[(s - 0.5).abs().argmax()])
    measured = f"S-randomised {span(s.round(3))}, Sᶜ-randomised ≥ {rest.min():.3f}, {len(t)} networks"
    unlearnt = t[t["standard_auc_roc"] < 0.99]
    if len(unlearnt):
        names = ", ".join(sorted({f"{row.model} on {row.world}" for row in unlearnt.itertuples()}))
        measured += f"; {len(unlearnt)} did not learn their task: {names}"
    holds = abs(farthest - 0.5) <= 0.05 and float(rest.min()) >= 0.99
    return Finding(holds, farthest, measured, scale)


def _missing(t: pd.DataFrame, *axes: str) -> str:
    """The cells of the grid that were left out, in words."""
    run = set(t[list(axes)].itertuples(index=False, name=None))
    absent = [cell for cell in product(*(t[axis].unique() for axis in axes)) if cell not in run]
    return f"; not run: {', '.join(' '.join(cell) for cell in absent)}" if absent else ""


def _worlds(t: pd.DataFrame) -> str:
    return ", ".join(t["world"].unique())


@SB.claim(
    "S1",
    source="Thm 1",
    says="one pass of descent on LSN data learns the linear coordinate alone",
    paper="|w₁| ≈ 2/√k (1 - c/√log d), larger than |w₂| by a factor like √d; test error ≤ 1/poly(d)",
    rule="log-log slope of |w₁|/|w₂| against d ≥ 0.4; test error ≤ 0.001 at the largest d",
    reads="plots/lsn.csv",
)
def s1(tables: Tables) -> Finding:
    t = tables["plots/lsn.csv"]
    mean = t.groupby("d").mean(numeric_only=True).reset_index()
    scale = f"d {span(t['d'])}, {t['units'].iloc[0]} units, {seeds(t)}"
    if len(mean) < 2:
        return Finding(None, math.nan, "a single d has no slope", scale)
    last = mean.iloc[-1]
    rate = slope(mean["d"], mean["linear"] / mean["slab"])
    off = 100 * abs(last["linear"] / last["predicted"] - 1)
    measured = (
        f"slope {rate:.2f}; |w₁|/|w₂| = {last['linear'] / last['slab']:.0f} at d = {last['d']:g}, where |w₁| is "
        f"{off:.2g} % from the prediction and the error {last['error']:.2g}"
    )
    return Finding(rate >= 0.4 and last["error"] <= 1e-3, rate, measured, scale)


@SB.claim(
    "S2",
    source="App. Table 2",
    says="every architecture relies on the simplest feature S alone",
    paper="S-randomised AUC 0.50 ± 0.01, Sᶜ-randomised 1.00",
    rule=RULE,
    reads=NETWORKS,
)
def s2(tables: Tables) -> Finding:
    t = tables[NETWORKS]
    t = t[t["members"] == 1]
    scale = f"{t['model'].nunique()} architectures, {_worlds(t)}, up to {seeds(t)}"
    return _relies_on_s(t, scale + _missing(t, "model", "world"))


@SB.claim(
    "S3",
    source="Fig 3(a)",
    says="randomising Sᶜ leaves the logits as they are, randomising S shuffles them",
    paper="identical; shuffled across the labels",
    rule="Kolmogorov–Smirnov distance of the positives' logits ≤ 0.05 for Sᶜ and ≥ 0.4 for S (½ is a perfect shuffle)",
    reads=NETWORKS,
)
def s3(tables: Tables) -> Finding:
    t = tables[NETWORKS]
    t = t[t["members"] == 1]
    kept, shuffled = float(t["rest_ks"].max()), float(t["s_ks"].min())
    measured = f"Sᶜ ≤ {kept:.3f}, S ≥ {shuffled:.3f}, {len(t)} networks"
    return Finding(kept <= 0.05 and shuffled >= 0.4, kept, measured, f"{_worlds(t)}, up to {seeds(t)}")


@SB.claim(
    "S4",
    source="Fig 3(b)",
    says="more complex features change nothing",
    paper="0.5 and 1.0 up to 249 complex features, (2000, 1)-FCN",
    rule=RULE,
    reads="plots/features.csv",
)
def s4(tables: Tables) -> Finding:
    t = tables["plots/features.csv"]
    return _relies_on_s(t, f"{span(t['complex'])} complex features, {t['model'].iloc[0]}, {_worlds(t)}, {seeds(t)}")


@SB.claim(
    "S5",
    source="Fig 3(c)",
    says="the decision boundary of FCNs depends on S only",
    paper="straight lines across S",
    rule="in the plane of S and the most influential other feature ≤ 1 % lacks the label of most of its line across S",
    reads=NETWORKS,
)
def s5(tables: Tables) -> Finding:
    t = tables[NETWORKS].dropna(subset=["boundary_changes"])
    fcn, others = t[t["model"].str.startswith("fcn")], t[~t["model"].str.startswith("fcn")]
    if fcn.empty:
        return Finding(None, math.nan, "no FCN", "")
    share = float(fcn["boundary_changes"].max())
    measured = (
        f"{100 * share:.2g} % at most, {100 * fcn['boundary_changes'].median():.2g} % in the median; "
        f"{100 * fcn['boundary_mixed'].max():.2g} % of the lines across S have a point of either label"
    )
    if len(others):
        measured += f"; other architectures {100 * others['boundary_changes'].max():.2g} %"
    return Finding(share <= 0.01, share, measured, f"{len(fcn)} FCNs, {_worlds(fcn)}")


@SB.claim(
    "S6",
    source="Fig 4",
    says="all architectures share one universal perturbation, which attacks S alone",
    paper="99.6 % of the budget on S (LMS-5), 99.9 % (MS-(5, 7)); the same for all models",
    rule="by ascent within the authors' radius: share of ‖δ‖² on S ≥ 0.99; cosine between any two networks ≥ 0.95 (up "
    "to a sign where S has slabs)",
    reads="plots/slabs_uap.csv plots/slabs_transfer.csv",
)
def s6(tables: Tables) -> Finding:
    t, pairs = tables["plots/slabs_uap.csv"], tables["plots/slabs_transfer.csv"]
    ascent, short, svd = (t[t["method"] == method] for method in ("ascent", "short", "svd"))
    cosine = pairs["cosine"].where(pairs["world"].str.contains("lms"), pairs["cosine"].abs())
    share = ascent.groupby("world", sort=False)["share"].min()
    others = pairs[pairs["of"] != pairs["on"]]
    least = ", ".join(f"{value:.3f} ({world})" for world, value in share.items())
    measured = (
        f"share ≥ {least}; in a ball of 0.8 × the radius ≥ {short['share'].min():.3f}, by the singular vector of "
        f"single perturbations ≥ {svd['share'].min():.3f}; cosines ≥ {cosine.min():.3f}; accuracy falls to "
        f"≤ {ascent['accuracy'].max():.3f}"
    )
    if len(others):
        measured += f", with another network's perturbation to ≤ {others['accuracy'].max():.3f}"
    scale = f"{t['model'].nunique()} architectures, {_worlds(t)}, one seed each{_missing(t, 'model', 'world')}"
    return Finding(bool(share.min() >= 0.99 and cosine.min() >= 0.95), float(share.min()), measured, scale)


@SB.claim(
    "S7",
    source="Table 2",
    says="networks keep to a simple feature that is less predictive than the complex ones",
    paper="test .940–.949, Sᶜ-randomised .941–.946, S-randomised .497–.498",
    rule="test accuracy in [.93, .955], S-randomised in [.48, .52]",
    reads="plots/noisy.csv",
)
def s7(tables: Tables) -> Finding:
    t = tables["plots/noisy.csv"]
    t = t[t["world"].str.startswith("noisy")]
    holds = bool(t["test"].between(0.93, 0.955).all() and t["s"].between(0.48, 0.52).all())
    measured = (
        f"train {span(t['train'].round(3))}, test {span(t['test'].round(3))}, "
        f"Sᶜ-randomised {span(t['rest'].round(3))}, S-randomised {span(t['s'].round(3))}"
    )
    scale = f"{_worlds(t)}, {t['model'].nunique()} FCNs, at most {t['epochs'].max():g} epochs, {seeds(t)}"
    return Finding(holds, float(t["test"].max()), measured, scale)


@SB.claim(
    "S8",
    source="§4.2, §5",
    says="without S the same networks learn the complex features",
    paper="test accuracy 1.00",
    rule="test accuracy ≥ 0.99 for every network",
    reads="plots/noisy.csv",
)
def s8(tables: Tables) -> Finding:
    t = tables["plots/noisy.csv"]
    t = t[~t["world"].str.startswith("noisy")]
    if t.empty:
        return Finding(None, math.nan, "no world without S", "")
    worst = float(t["test"].min())
    measured = f"{span(t['test'].round(4))} after at most {t['epochs'].max():g} epochs"
    return Finding(worst >= 0.99, worst, measured, f"{_worlds(t)}, {t['model'].nunique()} FCNs, {seeds(t)}")


@SB.claim(
    "S9",
    source="App. Table 4",
    says="so do networks with other activations and optimisers",
    paper="S-randomised AUC .495–.502, Sᶜ-randomised 1.0",
    rule=RULE,
    reads="plots/recipes.csv",
)
def s9(tables: Tables) -> Finding:
    t = tables["plots/recipes.csv"]
    t = t[t["table"] == 4]
    scale = f"{t['activation'].nunique()} activations × {t['optimiser'].nunique()} optimisers, {_worlds(t)}, {seeds(t)}"
    return _relies_on_s(t, scale + _missing(t, "activation", "optimiser", "world"))


@SB.claim(
    "S10",
    source="App. Table 5",
    says="so do networks with dropout and weight decay",
    paper="1.00 / 0.50 / 1.00 throughout",
    rule=RULE,
    reads="plots/recipes.csv",
)
def s10(tables: Tables) -> Finding:
    t = tables["plots/recipes.csv"]
    t = t[t["table"] == 5]
    settings = f"dropout {span(t['dropout'])}, λ {span(t['weight_decay'])}"
    return _relies_on_s(t, f"{settings}, {t['model'].nunique()} FCNs, {_worlds(t)}, {seeds(t)}")


@SB.claim(
    "S11",
    source="§6, App. E.1",
    says="ensembles do not help",
    paper="invariant to all complex features",
    rule=RULE,
    reads=NETWORKS,
)
def s11(tables: Tables) -> Finding:
    t = tables[NETWORKS]
    t = t[t["members"] > 1]
    return _relies_on_s(t, f"averages of {span(t['members'])} FCNs, {_worlds(t)}")


@SB.claim(
    "S12",
    source="§6, App. E.2",
    says="adversarial training does not help",
    paper="more margin, still invariant to Sᶜ, less robust than possible",
    rule="Sᶜ-randomised AUC ≥ 0.99 (ROC) for every adversarially trained network",
    reads="plots/adversarial.csv",
)
def s12(tables: Tables) -> Finding:
    t = tables["plots/adversarial.csv"]
    plain, hard = t[t["norm"] == "none"], t[t["norm"] != "none"]
    rest = float(hard["rest_auc_roc"].min())
    radius = max(float(column.split("_")[1]) for column in t.columns if re.fullmatch(r"l2_[\d.e+-]+", column))
    column = f"l2_{radius:g}"
    resist = f"{span(hard[column].round(3))} of the samples resist"
    if f"{column}_certified" in t:
        resist += f", {span(hard[f'{column}_certified'].round(3))} provably"
    along = f"{span(hard['margin_s'].round(3))} (without {plain['margin_s'].mean():.3f})"
    measured = (
        f"Sᶜ-randomised ≥ {rest:.4f}, S-randomised {span(hard['s_auc_roc'].round(3))}; at l2 radius {radius:g} "
        f"{resist} (without such training {plain[column].mean():.3f}; f*: {t[column + '_f_star'].min():.3f} provably); "
        f"distance to the boundary along S, first percentile, {along}"
    )
    scale = f"l2 {span(t[t['norm'] == 'l2']['eps'])}, l∞ {span(t[t['norm'] == 'linf']['eps'])}, {seeds(t)}"
    return Finding(rest >= 0.99, rest, measured, scale)


@SB.claim(
    "S13",
    source="§4.3",
    says="f*, which averages one classifier a feature, is right everywhere and robust to perturbations of order √d",
    paper="accuracy 1, margin O(√d)",
    rule="accuracy 1; log-log slope of its smallest perturbation against d in [0.45, 0.55], from below and from above",
    reads="plots/f_star.csv",
)
def s13(tables: Tables) -> Finding:
    t = tables["plots/f_star.csv"]
    median = t.groupby("d").median(numeric_only=True).reset_index()
    scale = f"{_worlds(t)}, d {span(t['d'])}, {t['sample'].nunique()} samples each"
    if len(median) < 2:
        return Finding(None, math.nan, "a single d has no slope", scale)
    right, last = float((t["output"] > 0).mean()), median.iloc[-1]
    below, above = slope(median["d"], median["lower"]), slope(median["d"], median["upper"])
    measured = (
        f"accuracy {right:.4g}; slope {below:.3f}; at d = {last['d']:g} the median sample needs {last['lower']:.3f}–"
        f"{last['upper']:.3f}, the simple feature alone {last['simple']:.2f}"
    )
    holds = right == 1 and all(0.45 <= each <= 0.55 for each in (below, above))
    return Finding(holds, below, measured, scale)


@SB.claim(
    "S14",
    source="§1 (ii)",
    says="a network is as sure when all complex features contradict S",
    paper="unchanged",
    rule="mean |Δ confidence| ≤ 0.01 when Sᶜ is swapped across the labels, for networks that have learnt their task",
    reads=f"plots/slabs_confidence.csv {NETWORKS}",
)
def s14(tables: Tables) -> Finding:
    t, networks = tables["plots/slabs_confidence.csv"], tables[NETWORKS]
    learnt = bool((networks["standard_auc_roc"] >= 0.99).all())  # a network that is never confident would pass
    change = float(t["rest_confidence"].max())
    measured = (
        f"{change:.2g} at most; {100 * t['rest_flips'].max():.2g} % of the labels change, and the logits by "
        f"{100 * t['rest_logit'].max():.2g} % of their size. (With S swapped {100 * t['s_flips'].min():.4g} % of the "
        f"labels change, and confidence, near 1 on either side, by {t['s_confidence'].max():.2g}.)"
    )
    return Finding(learnt and change <= 0.01, change, measured, f"{len(t)} networks, {_worlds(t)}")
