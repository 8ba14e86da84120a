"""The claims P1–P12 of FP on its own data model, sparse coding.

FP is "Feature Purification: How Adversarial Training Performs Robust Deep Learning". The paper proves these claims for
d → ∞ and runs no experiments on them.
"""

from __future__ import annotations

import math

import pandas as pd

from brittle.verdicts import FP, Finding, Tables, seeds, span

NETWORKS, ACCURACY, THETA = "plots/sparse_networks.csv", "plots/sparse_accuracy.csv", "plots/sparse_theta.csv"
GRID, LOW, TRANSFER = "plots/sparse_grid.csv", "plots/sparse_low.csv", "plots/sparse_transfer.csv"


def _absent() -> Finding:
    return Finding(None, math.nan, "no network from random weights", "")


def _networks(tables: Tables, name: str) -> pd.DataFrame:
    t = tables[NETWORKS]
    return t[t["network"] == name]


def _scale(t: pd.DataFrame) -> str:
    first = t.iloc[0]
    filtered = f"filter {first['margin']:g}" if first["margin"] else "no filter"
    starts = [
        f"{seeds(rows)} from {start} weights ({span(rows['neurons'])} of {span(rows['drawn'])} neurons are alive)"
        for start, rows in t.groupby("start", sort=False)
    ]
    return (
        f"d {first['d']:g}, k {first['k']:g}, {filtered}, {first['attacked']:g} samples attacked, {', '.join(starts)}"
    )


def _at_tau(tables: Tables, name: str) -> pd.DataFrame:
    """Accuracy at the radius of adversarial training, one row per network and one column per attack."""
    t, tau = tables[ACCURACY], tables[NETWORKS]["tau"].iloc[0]
    t = t[(t["network"] == name) & (t["tau"] == tau)]
    return t.pivot_table(index=["start", "seed"], columns="attack", values="accuracy")


@FP.claim(
    "P1",
    source="Thm 5.1(a)",
    says="features move away from their beginning and from each other",
    paper="Σ⟨w, w⁰⟩² = o(1) Σ‖w‖²‖w⁰‖² and Σ⟨w_i, w_j⟩² = o(1) (Σ‖w‖²)²",
    rule="from random weights, both ratios are ≤ 0.1 at the largest d, and fall with d",
    reads=f"{NETWORKS} {GRID}",
)
def p1(tables: Tables) -> Finding:
    t, grid = _networks(tables, "clean"), tables[GRID]
    t, grid = t[t["start"] == "random"], grid[(grid["start"] == "random") & (grid["of"] == "d")]
    if t.empty:
        return _absent()
    small = grid.rename(columns={"clean_moved": "moved", "clean_correlated": "correlated"})
    every = pd.concat([t, small[small["d"] != t["d"].iloc[0]]])[["d", "moved", "correlated"]]
    by_d = every.groupby("d").max().sort_index()
    words = ", ".join(f"{row.moved:.3f} and {row.correlated:.4f} at d {d:g}" for d, row in by_d.iterrows())
    last = by_d.iloc[-1]
    small_enough = bool((last <= 0.1).all())
    if len(by_d) < 2:
        return Finding(None, float(last["moved"]), f"{words}; a single d cannot fall", _scale(t))
    falls = bool((by_d.diff().iloc[1:] < 0).all().all())
    return Finding(small_enough and falls, float(last["moved"]), words, _scale(t))


@FP.claim(
    "P2",
    source="Thm 5.1(b)",
    says="clean training classifies well",
    paper="accuracy 1 - o(1)",
    rule="clean test accuracy ≥ 0.97 for every network",
    reads=NETWORKS,
)
def p2(tables: Tables) -> Finding:
    t = _networks(tables, "clean")
    least = float(t["accuracy"].min())
    others = f"; {span(t['runaway'])} of the neurons near M w*, {span(t['covered'])} of the words covered"
    return Finding(least >= 0.97, least, f"{span(t['accuracy'])}{others}", _scale(t))


@FP.claim(
    "P3",
    source="Thm 5.1(c)",
    says="the dense perturbation -τ y M w*/‖M w*‖, which needs no network, defeats clean training",
    paper="accuracy o(1) for τ ≥ 1/k^(0.5 + 10c); random perturbations are harmless",
    rule="dense ≤ 0.1 where random perturbations of the same size keep ≥ 0.9, for every network",
    reads=f"{ACCURACY} {NETWORKS}",
)
def p3(tables: Tables) -> Finding:
    t = _at_tau(tables, "clean")
    worst, rest = float(t["dense"].max()), float(t["random"].min())
    others = ", ".join(f"{name.upper()} {span(t[name])}" for name in ("fgm", "pgd"))
    tau = tables[NETWORKS]["tau"].iloc[0]
    measured = f"dense {span(t['dense'])}, random ≥ {rest:.3f}, {others} at τ = {tau:g}"
    return Finding(worst <= 0.1 and rest >= 0.9, worst, measured, _scale(_networks(tables, "clean")))


@FP.claim(
    "P4",
    source="Thm 5.2, Eq 5.1",
    says="each neuron is a word plus a small dense mixture of all others, along M w*",
    paper="mean coefficient Θ(k/d), all aligned with w*",
    rule="at least 0.8 of the coefficients have the sign of w*, for every network",
    reads=NETWORKS,
)
def p4(tables: Tables) -> Finding:
    t = _networks(tables, "clean")
    least = float(t["agreement"].min())
    size = t["ratio"] * t["d"] / t["k"]
    measured = (
        f"agreement {span(t['agreement'].round(3))}, β/α = {span(size.round(2))} × k/d "
        f"({span((t['ratio'] / t['predicted']).round(2))} × the K/d predicted), "
        f"cosine of the mean mixture with M w* {span(t['mean_cosine'].round(3))}, {span(t['pure'].round(3))} are pure"
    )
    return Finding(least >= 0.8, least, measured, _scale(t))


@FP.claim(
    "P5",
    source="Thm 5.3(a, b)",
    says="adversarial training from there is robust, to any perturbation",
    paper="robust accuracy 1 - o(1)",
    rule="accuracy under FGM and PGD, and what is certified, ≥ 0.9 at a τ at which the dense perturbation leaves "
    "clean training ≤ 0.1",
    reads=f"{ACCURACY} {NETWORKS}",
)
def p5(tables: Tables) -> Finding:
    t, before = _at_tau(tables, "robust"), _at_tau(tables, "clean")
    least = float(t[["fgm", "pgd"]].min().min())
    measured = f"FGM {span(t['fgm'])}, PGD {span(t['pgd'])}, clean training {span(before['dense'])} under the dense one"
    if "certified" in t and t["certified"].notna().any():
        proved = tables[ACCURACY].query("network == 'robust' and attack == 'certified'")
        enough = proved.groupby("tau")["accuracy"].min()
        radius = max((tau for tau, share in enough.items() if share >= 0.9), default=0.0)
        n = _networks(tables, "robust")["certified"].max()
        measured += f"; certified {span(t['certified'].dropna())}, and ≥ 0.9 up to τ = {radius:g} ({n:g} samples)"
        least = min(least, float(t["certified"].min()))
    holds = least >= 0.9 and float(before["dense"].max()) <= 0.1
    return Finding(holds, least, measured, _scale(_networks(tables, "robust")))


@FP.claim(
    "P6",
    source="Thm 5.3(c), §1",
    says="purification is local: it changes neurons little, compared with training from random weights",
    paper="Σ‖w - w'‖² = o(1) Σ‖w‖²; θ(w⁰, w), θ(w⁰, w') ≤ 0.2, θ(w, w') ≥ 0.8, θ(w_i, w_j) ≤ 0.2 for most neurons",
    rule="the medians of θ meet these, from random weights",
    reads=f"{THETA} {NETWORKS}",
)
def p6(tables: Tables) -> Finding:
    t = tables[THETA][tables[THETA]["start"] == "random"]
    if t.empty:
        return _absent()
    median = t.groupby("of")["median"]
    low, high = median.min(), median.max()
    robust = _networks(tables, "robust")
    robust = robust[robust["start"] == "random"]
    holds = low["clean, robust"] >= 0.8 and all(
        high[kind] <= 0.2 for kind in ("start, clean", "start, robust", "different neurons")
    )
    measured = (
        f"θ(w⁰, w) {high['start, clean']:.3f}, θ(w⁰, w') {high['start, robust']:.3f}, "
        f"θ(w, w') {low['clean, robust']:.3f}, θ(w_i, w_j) {high['different neurons']:.3f}; "
        f"Σ‖w - w'‖²/Σ‖w‖² {span(robust['local'].round(3))}, of which {span(robust['turned'].round(3))} is turning"
    )
    return Finding(bool(holds), float(high["start, clean"]), measured, _scale(robust))


@FP.claim(
    "P7",
    source="§5.1",
    says="what adversarial training removes is the dense mixture along M w*",
    paper="it shrinks",
    rule="the mean coefficient β shrinks at least 3 times, for every network",
    reads=NETWORKS,
)
def p7(tables: Tables) -> Finding:
    keys = ["start", "seed"]
    before, after = (_networks(tables, name).set_index(keys)["beta"].abs() for name in ("clean", "robust"))
    factor = (before / after.reindex(before.index)).round(1)
    least = float(factor.min())
    spread = [_networks(tables, name)["rest"] for name in ("clean", "robust")]
    measured = (
        f"{span(factor)} times, from {span(before)} to {span(after)}; "
        f"the r.m.s. of all these coefficients, of any sign: {span(spread[0])} to {span(spread[1])}"
    )
    return Finding(least >= 3, least, measured, _scale(_networks(tables, "clean")))


@FP.claim(
    "P8",
    source="Thm 5.4",
    says="the same holds in l∞: clean training is not robust, adversarial training is",
    paper="clean training fails at 1/k^(2 - c₁), adversarial training withstands 1/k^(1.75 + 2c₀)",
    rule="as P3 and P5: dense ≤ 0.1, random ≥ 0.9, and ≥ 0.9 under FGM and PGD after adversarial training",
    reads=GRID,
)
def p8(tables: Tables) -> Finding:
    t = tables[GRID][tables[GRID]["norm"] == "linf"]
    if t.empty:
        return Finding(None, math.nan, "no network in l∞", "")
    least = float(t[["robust_fgm", "robust_pgd"]].min().min())
    measured = (
        f"dense {span(t['clean_dense'])}, random {span(t['clean_random'])} before; "
        f"FGM {span(t['robust_fgm'])}, PGD {span(t['robust_pgd'])} after, at τ = {span(t['tau'])}"
    )
    holds = float(t["clean_dense"].max()) <= 0.1 and float(t["clean_random"].min()) >= 0.9 and least >= 0.9
    return Finding(holds, least, measured, f"d {span(t['d'])}, k {span(t['k'])}, M = I, filter {span(t['margin'])}")


@FP.claim(
    "P9",
    source="§3, Thm 5.6",
    says="linear models and the neural tangent kernel cannot be robust, however they are trained",
    paper="robust error ≥ (1 - o(1))/2",
    rule="accuracy under PGD ≤ 0.6 at P5's τ, trained cleanly (to ≥ 0.9 without attack) and adversarially",
    reads=LOW,
)
def p9(tables: Tables) -> Finding:
    t = tables[LOW]
    most = float(t["pgd"].max())
    groups = t.groupby(["model", "norm"], sort=False)["pgd"]
    words = ", ".join(f"{model} {span(rows)} in {norm}" for (model, norm), rows in groups)
    first = t.iloc[0]
    scale = f"d {first['d']:g}, k {first['k']:g}, NTK of width {t['width'].max():g}, filter {first['margin']:g}"
    learnt = float(t.loc[t["training"] == "clean", "accuracy"].min())
    measured = f"{words}; without attack ≥ {learnt:.3f} trained cleanly, {span(t['accuracy'])} in all"
    return Finding(most <= 0.6 and not learnt < 0.9, most, measured, scale)


@FP.claim(
    "P10",
    source="§6.2",
    says="adversarial examples transfer between networks trained independently",
    paper="the dense direction is the same for all",
    rule="one network's FGM succeeds on every other at least 0.8 times as often as the other's own",
    reads=f"{TRANSFER} {NETWORKS}",
)
def p10(tables: Tables) -> Finding:
    t = tables[TRANSFER]
    own = t[t["of"] == t["on"]].set_index("on")["accuracy"]
    others = t[t["of"] != t["on"]]
    scale = _scale(_networks(tables, "clean"))
    if others.empty:
        return Finding(None, math.nan, "a single network", scale)
    share = (1 - others["accuracy"]) / (1 - own.reindex(others["on"]).to_numpy())
    least = float(share.min())
    kinds = others["of"].str.split().str[0] != others["on"].str.split().str[0]
    across = f", {span(share[kinds].round(3))} between random and pure starts" if kinds.any() else ""
    return Finding(least >= 0.8, least, f"{span(share.round(3))} of the other's own, {len(share)} pairs{across}", scale)


@FP.claim(
    "P11",
    source="§6.1",
    says="which word a neuron wins is decided by its random beginning",
    paper="a neuron that wins the lottery ticket at random initialisation keeps it",
    rule="the largest coefficient with w*'s sign at the beginning names the final word of ≥ 0.8 of those that end pure",
    reads=NETWORKS,
)
def p11(tables: Tables) -> Finding:
    t = tables[NETWORKS]
    t = t[(t["start"] == "random") & (t["network"] == "clean")]
    if t.empty:
        return _absent()
    least = float(t["winner"].min())
    after = tables[NETWORKS].query("start == 'random' and network == 'lottery'")["same_word"]
    measured = (
        f"{span(t['winner'].round(3))} (of any sign {span(t['winner_unsigned'].round(3))}; "
        f"chance {1 / t['words'].iloc[0]:.4f}); "
        f"among the three largest {span(t['winner3'].round(3))}; "
        f"decided when the bias stops growing {span(after.round(3))}"
    )
    return Finding(least >= 0.8, least, measured, _scale(t))


@FP.claim(
    "P12",
    source="§5.1, Fig 7",
    says="adversarial perturbations are dense in the basis of words before, and sparse after",
    paper="dense → sparse",
    rule="‖·‖₁/‖·‖₂ of FGM's and of PGD's perturbations falls at least 1.5 times, for every network",
    reads=NETWORKS,
)
def p12(tables: Tables) -> Finding:
    columns = ["fgm_l1_l2", "pgd_l1_l2"]
    before, after = (_networks(tables, name).set_index(["start", "seed"])[columns] for name in ("clean", "robust"))
    factor = before / after
    least = float(factor.min().min())
    words = [
        f"{name.upper()} {span(before[column].round(1))} → {span(after[column].round(1))}"
        for name, column in zip(("fgm", "pgd"), columns, strict=True)
    ]
    top = math.sqrt(tables[NETWORKS]["words"].iloc[0])
    measured = f"{', '.join(words)} (between 1 and {top:.0f}): {span(factor.stack().round(2))} times"
    return Finding(least >= 1.5, least, measured, _scale(_networks(tables, "clean")))
