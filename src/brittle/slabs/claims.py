"""The claims of "The Pitfalls of Simplicity Bias in Neural Networks" (SB) on synthetic data, S1–S14.

Those that say which features a network relies on, S2, S4 and S9–S12, are in reliance_claims.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd

from brittle.probes.summary import resampled
from brittle.slabs.reliance_claims import ARCHITECTURES, NETWORKS, WORLDS, worlds
from brittle.verdicts import (
    SB,
    Finding,
    Tables,
    at_least,
    at_most,
    cells_missing,
    every,
    exactly,
    not_run,
    seeds,
    slopes,
    span,
    spread_of,
    within,
)

UAP, TRANSFER, VECTORS = "plots/slabs_uap.csv", "plots/slabs_transfer.csv", "plots/slabs_uap_vectors.csv"
CONFIDENCE = "plots/slabs_confidence.csv"
FCNS = ("fcn-100-1", "fcn-200-1", "fcn-300-1", "fcn-100-2", "fcn-200-2", "fcn-300-2")  # the paper's Table 2


@SB.claim(
    "S1",
    source="Thm 1",
    says="one pass of descent on LSN data learns the linear coordinate alone",
    paper="|w₁| ≈ 2/√k (1 - c/√log d), larger than |w₂| by a factor like √d; noise weights O(1/(√k log d)); test error "
    "≤ 1/poly(d)",
    rule="log-log slope of |w₁|/|w₂| against d ≥ 0.4; that of the noise weights × √k log d ≤ 0, so that they are of "
    "the theorem's order; test error ≤ 0.001 at the largest d; few units, k ~ d²/log d and each linear margin apart",
    reads="plots/lsn.csv",
)
def s1(tables: Tables) -> Finding:
    t = tables["plots/lsn.csv"]
    t = t.assign(
        margin=t.get("margin", 1.0),
        wide=t["units"] >= t["d"] ** 2 / np.log(t["d"]),
        ratio=t["linear"] / t["slab"],
        order=t["noise"] * np.sqrt(t["units"]) * np.log(t["d"]),
    )
    scale = f"d {span(t['d'])}, {span(t['units'])} units, linear coordinate ±{span(t['margin'])}, {seeds(t)}"
    if t["d"].nunique() < 2:
        return not_run("a second d", measured="a single d has no slope", scale=scale)
    # §4.1: "even for overparameterized networks", and "even when the margin in the linear coordinate … is significantly
    # smaller than the margin in the slab coordinate". Two values ± margin are 2 margins apart, those of the slab 1.
    checks, words = [], []
    for (margin, _), rows in t.groupby(["margin", "wide"], sort=False):
        if rows["d"].nunique() < 2:
            continue
        of = f"±{margin:g}, {span(rows['units'])} units: "
        (rate, spread), (noise, noise_spread) = slopes(rows, "d", "ratio"), slopes(rows, "d", "order")
        last = rows[rows["d"] == rows["d"].max()]
        checks += [
            at_least(f"{of}slope of log |w₁|/|w₂| in log d", rate, 0.4, spread, rows),
            at_most(f"{of}slope of log (noise weights × √k log d) in log d", noise, 0.0, noise_spread, rows),
            every(last, "error", at_most, 1e-3, cells=["units"], name=f"{of}test error at d = {last['d'].max():g}"),
        ]
        words.append(f"{of}slope {rate:.2f}, |w₁|/|w₂| = {last['ratio'].mean():.2g} at d = {last['d'].max():g}")
    off = 100 * (t["linear"] / t["predicted"] - 1)[t["d"] == t["d"].max()].abs().max()
    measured = (
        f"{'; '.join(words)}; |w₁| at the largest d {off:.2g} % from the prediction at most; "
        f"noise × √k log d {span(t['order'].round(3))}"
    )
    rate = min(check.value for check in checks[::3])
    lacks = [] if t["wide"].any() else ["k ~ d²/log d units"]
    lacks += [] if (t["margin"] < 0.5).any() else ["a linear margin smaller than the slab's"]
    return Finding(rate, measured, scale, checks, lacks=lacks)


@SB.claim(
    "S3",
    source="Fig 3(a)",
    says="randomising Sᶜ leaves the logits as they are, randomising S shuffles them",
    paper="(100, 1)-FCNs: unchanged; shuffled across true positives and negatives",
    rule="Kolmogorov–Smirnov distance of the positives' logits of (100, 1)-FCNs ≤ 0.05 for Sᶜ and ≥ 0.4 for S (½ is a "
    "perfect shuffle)",
    reads=NETWORKS,
)
def s3(tables: Tables) -> Finding:
    t = tables[NETWORKS]
    t, cells = t[t["members"] == 1], ["model", "world"]
    fcn, others = t[t["model"] == "fcn-100-1"], t[t["model"] != "fcn-100-1"]
    missing = cells_missing(fcn, cells, product(["fcn-100-1"], WORLDS))
    if fcn.empty:
        return not_run(*missing)
    checks = [
        every(fcn, "rest_ks", at_most, 0.05, cells=cells, name="distance with Sᶜ randomised"),
        every(fcn, "s_ks", at_least, 0.4, cells=cells, name="distance with S randomised"),
    ]
    kept, shuffled = float(fcn["rest_ks"].max()), float(fcn["s_ks"].min())
    measured = f"Sᶜ ≤ {kept:.3f}, S ≥ {shuffled:.3f}, {len(fcn)} networks"
    if len(others):
        measured += f"; other architectures ≤ {others['rest_ks'].max():.3f}, ≥ {others['s_ks'].min():.3f}"
    return Finding(kept, measured, f"{worlds(fcn)}, up to {seeds(fcn)}", checks, lacks=missing)


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
    lacks = [f"an FCN on {world}" for world in WORLDS if world not in set(fcn["world"])]
    if fcn.empty:
        return not_run(*lacks)
    name = "share of the plane that depends on Sᶜ"
    checks = [every(fcn, "boundary_changes", at_most, 0.01, cells=["model", "world"], name=name)]
    share = float(fcn["boundary_changes"].max())
    measured = (
        f"{100 * share:.2g} % at most, {100 * fcn['boundary_changes'].median():.2g} % in the median; "
        f"{100 * fcn['boundary_mixed'].max():.2g} % of the lines across S have a point of either label"
    )
    if len(others):
        measured += f"; other architectures {100 * others['boundary_changes'].max():.2g} %"
    return Finding(share, measured, f"{len(fcn)} FCNs, {worlds(fcn)}, up to {seeds(fcn)}", checks, lacks=lacks)


@SB.claim(
    "S6",
    source="Fig 4",
    says="all architectures share one universal perturbation, which attacks S alone",
    paper="99.6 % of the budget on S (LMS-5), 99.9 % (MS-(5, 7)); it nullifies performance; the same for all models",
    rule="by ascent within the authors' radius, or 0.8 of it where S has slabs, because the next slab is nearer, or by "
    "the SVD of single perturbations: share of ‖δ‖² on S ≥ 0.99; cosine between any two networks' ascents ≥ 0.95 (up "
    "to a sign where S has slabs); accuracy ≤ 0.5 under a network's own and under any other's",
    reads=f"{UAP} {TRANSFER} {VECTORS}",
)
def s6(tables: Tables) -> Finding:
    t, pairs = tables[UAP], tables[TRANSFER]
    cells = ["model", "world"]
    near = _near(t)
    either = pd.concat([near, t[t["method"] == "svd"]])
    best = either.loc[either.groupby([*cells, *_seeded(t)], sort=False)["share"].idxmax()]
    alike, others = _cosines(_near(tables[VECTORS])), pairs[pairs["of"] != pairs["on"]]
    lacks = [f"a {kind.upper()} on {world}" for kind, world in product(("fcn", "cnn", "gru"), WORLDS)
             if not (near["model"].str.startswith(kind) & (near["world"] == world)).any()]  # fmt: skip
    if near.empty or alike.empty or others.empty:
        return not_run(*lacks, *([] if lacks else ["two networks on one world, and one's perturbation on the other"]))
    pair = ["world", "of", "on"]
    # A GRU's spread is far above that of FCNs: with too few seeds of its own it is not known, whatever theirs is.
    worst = best.loc[best["share"].idxmin(), cells]
    own = spread_of(best[(best[cells] == worst).all(axis=1)]["share"])
    checks = [
        every(best, "share", at_least, 0.99, cells=cells, name="share of ‖δ‖² on S", spread=own),
        every(near, "accuracy", at_most, 0.5, cells=cells, name="accuracy under its own perturbation"),
        every(alike, "cosine", at_least, 0.95, cells=pair, name="cosine between two networks' perturbations"),
        every(others, "accuracy", at_most, 0.5, cells=pair, name="accuracy under another's perturbation"),
    ]
    share = best.groupby("world", sort=False)["share"].min()
    least = ", ".join(f"{value:.3f} ({world})" for world, value in share.items())
    far = t[t["method"] == "ascent"].groupby("world", sort=False)["share"].min()
    measured = (
        f"share ≥ {least}, |δ_S|/‖δ‖ as the authors have it ≥ {math.sqrt(share.min()):.4f}; within the authors' radius "
        f"throughout ≥ {', '.join(f'{value:.3f}' for value in far)}; cosines ≥ {alike['cosine'].min():.3f}; accuracy "
        f"falls to ≤ {near['accuracy'].max():.3f}, with another's perturbation to ≤ {others['accuracy'].max():.3f}"
    )
    scale = f"{t['model'].nunique()} architectures, {worlds(t)}, {seeds(t) if _seeded(t) else 'one seed each'}"
    return Finding(float(share.min()), measured, scale, checks, lacks=lacks)


def _seeded(t: pd.DataFrame) -> list[str]:
    return ["seed"] if "seed" in t else []


def _near(t: pd.DataFrame) -> pd.DataFrame:
    """Perturbations found by ascent in a ball that is nearer than the next slab: with a linear S there is none.

    Farther than the next slab, what is left of the budget goes to directions that hardly matter.
    """
    return t[t["method"] == np.where(t["world"].str.contains("lms"), "ascent", "short")]


def _cosines(vectors: pd.DataFrame) -> pd.DataFrame:
    """The cosine between any two networks' perturbations. To which of two slabs they point is a matter of chance."""
    rows = []
    for key, some in vectors.groupby(["world", *_seeded(vectors)], sort=False):
        wide = some.pivot(index="model", columns="feature", values="component")
        unit = wide.to_numpy() / np.linalg.norm(wide, axis=1, keepdims=True)
        for i, j in zip(*np.triu_indices(len(unit), 1), strict=True):
            cosine = float(unit[i] @ unit[j])
            cosine = cosine if "lms" in key[0] else abs(cosine)
            rows.append({"world": key[0], "of": wide.index[i], "on": wide.index[j], "cosine": cosine})
    return pd.DataFrame(rows, columns=["world", "of", "on", "cosine"])


@SB.claim(
    "S7",
    source="Table 2",
    says="networks keep to a simple feature that is less predictive than the complex ones",
    paper="train .984–.999, test .940–.949, Sᶜ-randomised .941–.946, S-randomised .497–.498",
    rule="training accuracy ≥ .96, test accuracy in [.93, .955], Sᶜ-randomised within .01 of it, S-randomised in [.48, "
    ".52]",
    reads="plots/noisy.csv",
)
def s7(tables: Tables) -> Finding:
    t = tables["plots/noisy.csv"]
    t, cells = t[t["world"] == "noisy-lms-7"], ["model", "world"]
    lacks = cells_missing(t, cells, product(FCNS, ["noisy-lms-7"]))
    if t.empty:
        return not_run(*lacks)
    t = t.assign(off=(t["rest"] - t["test"]).abs())
    checks = [
        every(t, "train", at_least, 0.96, cells=cells, name="training accuracy"),
        every(t, "test", within, 0.93, 0.955, cells=cells, name="test accuracy"),
        every(t, "off", at_most, 0.01, cells=cells, name="|Sᶜ-randomised - test accuracy|"),
        every(t, "s", within, 0.48, 0.52, cells=cells, name="S-randomised accuracy"),
    ]
    measured = (
        f"train {span(t['train'].round(3))}, test {span(t['test'].round(3))}, "
        f"Sᶜ-randomised {span(t['rest'].round(3))}, S-randomised {span(t['s'].round(3))}"
    )
    # The networks need up to 16 epochs to learn the complex features alone: to stop before would prove little.
    lacks += [] if t["epochs"].max() >= 30 else [f"30 epochs (here {t['epochs'].max():g})"]
    scale = f"{worlds(t)}, {t['model'].nunique()} FCNs, at most {t['epochs'].max():g} epochs, {seeds(t)}"
    return Finding(float(t["test"].max()), measured, scale, checks, lacks=lacks)


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
    t, cells = t[~t["world"].str.startswith("noisy")], ["model", "world"]
    # §5: the six FCNs on 7-slabs; §4.2: all models that learn LMS-5 and MS-(5, 7), on what is left without S.
    asked = dict.fromkeys([*product(FCNS, ["ms-7"]), *product(ARCHITECTURES, ["ms-5", "ms-7"])])
    lacks = cells_missing(t, cells, asked)
    if t.empty:
        return not_run(*lacks)
    checks = [every(t, "test", at_least, 0.99, cells=cells, name="test accuracy without S")]
    measured = f"{span(t['test'].round(4))} after at most {t['epochs'].max():g} epochs"
    scale = f"{worlds(t)}, {t['model'].nunique()} FCNs, {seeds(t)}"
    return Finding(float(t["test"].min()), measured, scale, checks, lacks=lacks)


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
    scale = f"{worlds(t)}, d {span(t['d'])}, {t['sample'].nunique()} samples each"
    if t["d"].nunique() < 2:
        return not_run("a second d", measured="a single d has no slope", scale=scale)
    wrong = t[t["output"] <= 0]
    (below, low), (above, high) = (_median_slope(t, column) for column in ("lower", "upper"))
    last = t[t["d"] == t["d"].max()].median(numeric_only=True)
    checks = [
        exactly("f* is right on every sample", wrong.empty, wrong if len(wrong) else t),
        within("slope of the smallest perturbation, from below", below, 0.45, 0.55, low, t),
        within("slope of the smallest perturbation, from above", above, 0.45, 0.55, high, t),
    ]
    measured = (
        f"accuracy {1 - len(wrong) / len(t):.4g}; slope {below:.3f}; at d = {last['d']:g} the median sample needs "
        f"{last['lower']:.3f}–{last['upper']:.3f}, the simple feature alone {last['simple']:.2f}"
    )
    return Finding(below, measured, scale, checks)


def _median_slope(t: pd.DataFrame, column: str) -> tuple[float, float]:
    """The log-log slope of the median sample's value against d, and its spread when the samples are drawn again.

    The samples of different d are independent, and the slope is a weighted sum of the logarithms of the medians.
    """
    groups = [(math.log(d), rows[column]) for d, rows in t.groupby("d")]
    x = np.array([d for d, _ in groups]) - np.mean([d for d, _ in groups])
    weights = x / (x @ x)
    medians = np.array([_log_median(values) for _, values in groups])
    spreads = np.array([resampled(values, _log_median) for _, values in groups])
    return float(weights @ medians), float(np.linalg.norm(weights * spreads))


def _log_median(values: pd.Series | np.ndarray) -> float:
    return math.log(np.median(values))


@SB.claim(
    "S14",
    source="§1 (ii)",
    says="a network is as sure when all complex features contradict S",
    paper='"high confidence even if several complex predictive features contradict the simple feature"',
    premise="the network has learnt its task (AUC ≥ 0.99): one that is never sure stays so",
    rule="mean |Δ confidence| ≤ 0.01 when Sᶜ is swapped across the labels, for every network",
    reads=f"{CONFIDENCE} {NETWORKS}",
)
def s14(tables: Tables) -> Finding:
    cells = ["model", "world"]
    key = [*cells, "seed", "members"]
    t = tables[CONFIDENCE].merge(tables[NETWORKS][[*key, "standard_auc_roc"]], on=key)
    lacks = cells_missing(t, cells, product(ARCHITECTURES, WORLDS))
    if t.empty:
        return not_run(*lacks)
    learnt = t[t["standard_auc_roc"] >= 0.99]
    name, judged = "AUC of the networks", learnt if len(learnt) else t
    premises = [every(judged, "standard_auc_roc", at_least, 0.99, cells=cells, name=name)]
    few = t.drop(learnt.index)[cells].drop_duplicates().itertuples(index=False)
    lacks += [f"{model} {world}, learnt" for model, world in few]
    checks = [every(judged, "rest_confidence", at_most, 0.01, cells=cells, name="mean |Δ confidence|")]
    change = float(judged["rest_confidence"].max())
    measured = (
        f"{change:.2g} at most; {100 * judged['rest_flips'].max():.2g} % of the labels change, and the logits by "
        f"{100 * judged['rest_logit'].max():.2g} % of their size. (With S swapped {100 * judged['s_flips'].min():.4g} "
        f"% of the labels change, and confidence, near 1 on either side, by {judged['s_confidence'].max():.2g}.)"
    )
    scale = f"{len(judged)} networks, {worlds(judged)}, up to {seeds(judged)}"
    return Finding(change, measured, scale, checks, premises, lacks=lacks)
