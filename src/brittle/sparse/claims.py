"""The claims P1–P12 of FP on its own data model, sparse coding.

FP is "Feature Purification: How Adversarial Training Performs Robust Deep Learning". The paper proves these claims for
d → ∞ and runs no experiments on them.

Three rules ask for more than older tables have. P8 looks for rows of the grid in l∞ with τ = 1/k^1.75. P9 looks for
rows in l∞ with margin = 0 at τ = 1/k² and 1/k^1.75, in the table of linear and NTK models and, of the purified network,
in the grid. P11 prefers the column `winner_pot` (Lemma B.2's S_pot) to `winner`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from brittle.sparse.claim_tables import (
    ACCURACY,
    CELL,
    GRID,
    LOW,
    NETWORKS,
    THETA,
    TRANSFER,
    factors,
    falls,
    networks,
    own,
    sampled,
    scale_of,
    shares,
    tickets,
    withstood,
    worst,
)
from brittle.verdicts import (
    FP,
    Finding,
    Tables,
    at_least,
    at_most,
    every,
    not_run,
    of_share,
    span,
    within,
)

CERTIFIED = 100  # samples that P5 asks for
RADII = {"1/k²": 2.0, "1/k^1.75": 1.75}  # in l∞, by their exponent
FIXED = ("linear", "NTK")  # models that P9 judges; polynomials are beside them
NO_RANDOM = "networks from random weights"


def _random(t: pd.DataFrame) -> pd.DataFrame:
    return t[t["start"] == "random"]


# --- Theorems 5.1 and 5.2: clean training


@FP.claim(
    "P1",
    source="Thm 5.1(a)",
    says="features move away from their beginning and from each other",
    paper="Σ⟨w, w⁰⟩² = o(1) Σ‖w‖²‖w⁰‖² and Σ⟨w_i, w_j⟩² = o(1) (Σ‖w‖²)²",
    rule="from random weights, both ratios are ≤ 0.1 at the largest d, and fall from every d to the next",
    reads=f"{NETWORKS} {GRID}",
)
def p1(tables: Tables) -> Finding:
    t = _random(networks(tables))
    if t.empty:
        return not_run(NO_RANDOM)
    ds = sorted(t["d"].unique())
    by_d = t.groupby("d")[["clean_moved", "clean_correlated"]].max()
    words = ", ".join(f"{row.clean_moved:.3f} and {row.clean_correlated:.4f} at d {d:g}" for d, row in by_d.iterrows())
    value, scale = float(by_d["clean_moved"].iloc[-1]), scale_of(t)
    if len(ds) < 2:
        return not_run("a second d from random weights", measured=words, scale=scale, value=value)
    names = {"clean_moved": "Σ⟨w, w⁰⟩² ratio", "clean_correlated": "Σ⟨w_i, w_j⟩² ratio"}
    checks = [worst(t[t["d"] == ds[-1]], column, at_most, 0.1, name=name) for column, name in names.items()]
    checks += [falls(t, column, name, pair) for column, name in names.items() for pair in pairwise(ds)]
    lacks = [] if ds[-1] >= 1024 else ["d = 1024 from random weights"]
    return Finding(value, words, scale, checks, lacks=lacks)


@FP.claim(
    "P2",
    source="Thm 5.1(b)",
    says="clean training classifies well",
    paper="accuracy 1 - o(1)",
    rule="clean test accuracy ≥ 0.97 for every network",
    reads=f"{NETWORKS} {GRID}",
)
def p2(tables: Tables) -> Finding:
    t = networks(tables)
    # A test has at least as many samples as are attacked; fewer samples have the larger spread.
    check = worst(t, "clean_accuracy", at_least, 0.97, name="clean accuracy", samples="test")
    beside = f"{span(t['clean_runaway'])} of the neurons near M w*, {span(t['clean_covered'])} of the words covered"
    if GRID in tables:
        plain = tables[GRID].query("of == 'd' and norm == 'l2' and margin == 0")["clean_accuracy"]
        beside += f"; {span(plain)} without the filter" if len(plain) and t["margin"].iloc[0] else ""
    return Finding(check.value, f"{span(t['clean_accuracy'])}; {beside}", scale_of(t), [check])


@FP.claim(
    "P3",
    source="Thm 5.1(c)",
    says="the dense perturbation -τ y M w*/‖M w*‖, which needs no network, defeats clean training",
    paper="accuracy o(1) for τ ≥ 1/k^(0.5 + 10c), by a perturbation that does not depend on the network",
    rule="at the radius of adversarial training, dense ≤ 0.1 where random perturbations of the same size keep ≥ 0.9, "
    "for every network, at every d that was run",
    reads=f"{ACCURACY} {NETWORKS} {GRID}",
)
def p3(tables: Tables) -> Finding:
    t = networks(tables, ACCURACY)
    checks = [
        worst(t, "clean_dense", at_most, 0.1, name="accuracy under the dense perturbation", samples="attacked"),
        worst(t, "clean_random", at_least, 0.9, name="accuracy under random perturbations", samples="attacked"),
    ]
    by = t.groupby(list(CELL), sort=False)["clean_dense"]
    words = ", ".join(f"{span(rows)} from {start} weights at d {d:g}" for (start, d), rows in by)
    others = ", ".join(f"{name.upper()} {span(t[f'clean_{name}'])}" for name in ("fgm", "pgd"))
    measured = f"dense {words}; random ≥ {checks[1].value:.3f}, {others} at τ = {span(t['tau'])}"
    lacks = [path for path in (ACCURACY, NETWORKS, GRID) if path not in tables]
    return Finding(checks[0].value, measured, scale_of(t), checks, lacks=lacks)


@FP.claim(
    "P4",
    source="Thm 5.2, Eq 5.1",
    says="each neuron is a word plus a small dense mixture of all others, along M w*",
    paper="mean coefficient Θ(k/d), all aligned with w*",
    rule="at least 0.8 of the coefficients have the sign of w*, and β/α is K/d within a factor of 2, for every network",
    reads=f"{NETWORKS} {GRID}",
)
def p4(tables: Tables) -> Finding:
    t = networks(tables)
    t = t.assign(size=t["clean_ratio"] / t["predicted"])
    checks = [
        worst(t, "clean_agreement", at_least, 0.8, name="share of coefficients with the sign of w*"),
        worst(t, "size", within, 0.5, 2.0, name="β/α in units of K/d"),
    ]
    measured = (
        f"agreement {span(t['clean_agreement'].round(3))}, "
        f"β/α = {span((t['clean_ratio'] * t['d'] / t['k']).round(2))} × k/d "
        f"({span(t['size'].round(2))} × the K/d predicted), cosine of the mean mixture with M w* "
        f"{span(t['clean_mean_cosine'].round(3))}, {span(t['clean_pure'].round(3))} are pure"
    )
    return Finding(checks[0].value, measured, scale_of(t), checks)


# --- Theorem 5.3: adversarial training


@FP.claim(
    "P5",
    source="Thm 5.3(a, b)",
    says="adversarial training from there is robust, to any perturbation",
    paper="robust accuracy 1 - o(1), also for the worst δ with ‖δ‖ ≤ τ",
    rule="from every start there is a τ at which the dense perturbation leaves clean training ≤ 0.1 and adversarial "
    f"training keeps ≥ 0.9 under FGM and PGD, and ≥ 0.9 certified, of ≥ {CERTIFIED} samples",
    reads=f"{ACCURACY} {NETWORKS}",
)
def p5(tables: Tables) -> Finding:
    t, sizes = tables[ACCURACY], own(tables)
    t = t[t["tau"] > 0]
    if not (t["attack"] == "certified").any():
        return not_run(f"certified shares of {CERTIFIED} samples", scale=scale_of(sizes))
    checks, words, lacks = [], [], []
    for start, those in sizes.groupby("start", sort=False):
        at = {tau: withstood(rows, those) for tau, rows in t[t["start"] == start].groupby("tau")}
        at = {tau: found for tau, found in at.items() if found}
        if not at:
            return not_run(f"a τ with dense, FGM and PGD from {start} weights", scale=scale_of(sizes))
        # Thm 5.1(c) is about every τ from some power of k on, Thm 5.3 about every τ up to another: one between will do.
        tau = max(at, key=lambda tau: min(check.distance for check in at[tau]))
        checks += [replace(check, name=f"{check.name} ({start} weights, τ = {tau:g})") for check in at[tau]]
        found = ", ".join(f"{check.name} {check.value:g}" for check in at[tau])
        words.append(f"from {start} weights at τ = {tau:g}: {found}")
        few = those["certified"].max()
        lacks += [] if few >= CERTIFIED else [f"{CERTIFIED} certified samples from {start} weights ({few:g} so far)"]
    measured = f"{'; '.join(words)}; the best of {t['tau'].nunique()} radii, {span(t['tau'])}"
    least = min(check.value for check in checks if check.bound.startswith("≥"))
    return Finding(least, measured, scale_of(sizes), checks, lacks=lacks)


@FP.claim(
    "P6",
    source="Thm 5.3(c), §1",
    says="purification is local: it changes neurons little, compared with training from random weights",
    paper="Σ‖w - w'‖² = o(1) Σ‖w‖²; θ(w⁰, w), θ(w⁰, w') ≤ 0.2, θ(w, w') ≥ 0.8, θ(w_i, w_j) ≤ 0.2 for most neurons",
    rule="the medians of θ meet these, from random weights, at the largest d that was run",
    reads=f"{THETA} {NETWORKS} {GRID}",
)
def p6(tables: Tables) -> Finding:
    t = _random(networks(tables, THETA))
    if t.empty:
        return not_run(NO_RANDOM)
    t = t[t["d"] == t["d"].max()]
    asked = {"theta_start_clean": (at_most, 0.2), "theta_start_robust": (at_most, 0.2)}
    asked |= {"theta_clean_robust": (at_least, 0.8), "theta_pairs": (at_most, 0.2)}
    names = dict(zip(asked, ("θ(w⁰, w)", "θ(w⁰, w')", "θ(w, w')", "θ(w_i, w_j)"), strict=True))
    checks = [worst(t, column, *how, name=f"median {names[column]}") for column, how in asked.items()]
    measured = (
        f"{', '.join(f'{name} {span(t[column].round(3))}' for column, name in names.items())}; "
        f"Σ‖w - w'‖²/Σ‖w‖² {span(t['local'].round(3))}, of which {span(t['turned'].round(3))} is turning; "
        f"{span(t['clean_covered'].round(3))} of the words covered, {span(t['clean_runaway'].round(3))} run away"
    )
    lacks = [] if t["d"].iloc[0] >= 512 else ["d = 512 from random weights"]
    return Finding(float(t["theta_start_clean"].max()), measured, scale_of(t), checks, lacks=lacks)


@FP.claim(
    "P7",
    source="§5.1",
    says="what adversarial training removes is the dense mixture along M w*",
    paper="it shrinks",
    rule="the mean coefficient β shrinks at least 3 times, for every network of this chapter's size",
    reads=f"{NETWORKS} {GRID}",
)
def p7(tables: Tables) -> Finding:
    t, needs = factors(networks(tables), times="beta")
    others = t[t["drawn"].isna()] if NETWORKS in tables and GRID in tables else t[:0]
    t = t.drop(others.index)
    if t.empty:
        return not_run(*needs)
    check = worst(t, "times", at_least, 3.0, name="|β| before / after")
    measured = f"{span(t['times'].round(1))} times, from {span(t['clean_beta'])} to {span(t['robust_beta'])}"
    if "clean_rest" in t:
        rest = f"{span(t['clean_rest'])} to {span(t['robust_rest'])}"
        measured += f"; the r.m.s. of all these coefficients, of any sign: {rest}"
    measured += f"; {span(others['times'].round(1))} times at other d" if len(others) else ""
    return Finding(check.value, measured, scale_of(t), [check], needs=needs)


# --- Theorems 5.4 and 5.6: l∞, and models that do not learn features


def _at_radius(t: pd.DataFrame, exponent: float) -> pd.DataFrame:
    """The rows in l∞ at τ = 1/k^exponent."""
    t = t[t["norm"] == "linf"]
    return t[np.isclose(t["tau"], t["k"].astype(float) ** -exponent, rtol=0.02)]


@FP.claim(
    "P8",
    source="Thm 5.4",
    says="the same holds in l∞: clean training is not robust, adversarial training is",
    paper="clean training fails at 1/k^(2 - c₁), adversarial training withstands 1/k^(1.75 + 2c₀)",
    rule="at τ = 1/k^1.75 dense ≤ 0.1 and random ≥ 0.9 after clean training (as P3), and ≥ 0.9 under FGM and PGD after "
    "adversarial training (as P5)",
    reads=GRID,
)
def p8(tables: Tables) -> Finding:
    g = sampled(tables[GRID], GRID)
    g = g[(g["norm"] == "linf") & (g["margin"] == g["margin"].max())]
    t = _at_radius(g, 1.75)
    words = [
        f"at τ = {row.tau:.4g} dense {row.clean_dense:g}, random {row.clean_random:g} before, FGM {row.robust_fgm:g}, "
        f"PGD {row.robust_pgd:g} after"
        for row in g.itertuples()
    ]
    if t.empty:
        return not_run("a network in l∞ at τ = 1/k^1.75", measured="; ".join(words))
    asked = {"clean_dense": (at_most, 0.1), "clean_random": (at_least, 0.9)}
    asked |= {"robust_fgm": (at_least, 0.9), "robust_pgd": (at_least, 0.9)}
    checks = shares(t, {name: (*how, name.replace("_", " training, ")) for name, how in asked.items()})
    least = float(t[["robust_fgm", "robust_pgd"]].min().min())
    scale = f"d {span(t['d'])}, k {span(t['k'])}, M = I, filter {span(t['margin'])}, {span(t['attacked'])} samples"
    return Finding(least, "; ".join(words), scale, checks)


@FP.claim(
    "P9",
    source="§3, Thm 5.6",
    says="linear models and the neural tangent kernel cannot be robust where purified networks are",
    paper="robust error ≥ (1 - o(1))/2 in l∞, for every NTK; the radius 1/k^1.00 is a misprint of 1/k^100 (Thm G.1)",
    premise="trained cleanly, the models classify ≥ 0.75 without attack: what the purified network keeps under it",
    rule="in l∞ on the paper's distribution (no filter), at τ = 1/k² and 1/k^1.75: accuracy under PGD ≤ 0.6, trained "
    "cleanly and adversarially, where the purified network keeps ≥ 0.75",
    reads=f"{LOW} {GRID}",
)
def p9(tables: Tables) -> Finding:
    low, grid = sampled(tables[LOW], LOW), sampled(tables[GRID], GRID)
    missing, models, purified = [], [], []
    for name, exponent in RADII.items():
        those, nets = (_at_radius(t[t["margin"] == 0], exponent) for t in (low, grid))
        lost = [f"{model} in l∞ without filter at τ = {name}" for model in FIXED if model not in set(those["model"])]
        lost += [] if len(nets) else [f"the purified network in l∞ without filter at τ = {name}"]
        missing += lost
        if not lost:
            models.append(those[those["model"].isin(FIXED)])
            purified.append(nets)
    by = low.groupby(["norm", "margin", "model"], sort=False)["pgd"]
    words = [f"{model} {span(rows)} in {norm} with filter {margin:g}" for (norm, margin, model), rows in by]
    by = grid[(grid["norm"] == "linf") & (grid["margin"] > 0)].groupby("margin", sort=False)["robust_pgd"]
    words += [f"the purified network {span(rows)} in linf with filter {margin:g}" for margin, rows in by]
    scale = f"d {span(low['d'])}, k {span(low['k'])}, NTK of width {low['width'].max():g}"
    if not models:
        return not_run(*missing, measured=", ".join(words), scale=scale)
    t, nets, cells = pd.concat(models), pd.concat(purified), ("model", "training", "tau")
    t = t if "test" in t else t.assign(test=t["attacked"])
    how = {"name": "purified network under PGD", "samples": "attacked", "cells": ("d", "tau")}
    checks = [
        worst(t, "pgd", at_most, 0.6, name="accuracy under PGD", samples="attacked", cells=cells),
        worst(nets, "robust_pgd", at_least, 0.75, **how),
    ]
    learnt = t[t["training"] == "clean"]
    premises = [worst(learnt, "accuracy", at_least, 0.75, name="accuracy without attack", samples="test", cells=cells)]
    measured = f"{', '.join(words)}; the purified network {span(nets['robust_pgd'])} without filter"
    return Finding(checks[0].value, measured, scale, checks, premises, lacks=missing)


# --- §6 and the density of perturbations


@FP.claim(
    "P10",
    source="§6.2",
    says="adversarial examples transfer between networks trained independently",
    paper="the dense direction is the same for all",
    rule="one network's FGM succeeds on every other at least 0.8 times as often as the other's own",
    reads=f"{TRANSFER} {NETWORKS}",
)
def p10(tables: Tables) -> Finding:
    t = sampled(tables[TRANSFER], TRANSFER)
    if NETWORKS in tables:
        t = t.assign(attacked=tables[NETWORKS]["attacked"].iloc[0])
    alone = t[t["of"] == t["on"]].set_index("on")["accuracy"]
    t = t[(t["of"] != t["on"]) & t["on"].isin(alone.index)]
    scale = scale_of(own(tables)) if NETWORKS in tables else ""
    if t.empty:
        return not_run("a second network", scale=scale)
    success, its_own = 1 - t["accuracy"], 1 - alone.reindex(t["on"]).to_numpy()
    t = t.assign(share=success / its_own, own=its_own).drop(columns=["seed", "test"])
    least = every(t, "share", at_least, 0.8, cells=[], name="success of another network's FGM / of its own", spread=0.0)
    row = least.rows.iloc[0]
    parts = [of_share(x, row["attacked"]) / x if x else math.inf for x in (1 - row["accuracy"], row["own"])]
    kinds = t["of"].str.split().str[0] != t["on"].str.split().str[0]
    across = f", {span(t['share'][kinds].round(3))} between random and pure starts" if kinds.any() else ""
    measured = f"{span(t['share'].round(3))} of the other's own, {len(t)} pairs{across}"
    return Finding(least.value, measured, scale, [replace(least, spread=least.value * math.hypot(*parts))])


@FP.claim(
    "P11",
    source="§6.1",
    says="which word a neuron wins is decided by its random beginning",
    paper="a neuron that wins the lottery ticket at random initialisation keeps it",
    rule="of the neurons that end pure, ≥ 0.8 were in Lemma B.2's S_pot of their final word at the beginning; where "
    "this is not measured, ≥ 0.8 had their largest coefficient with w*'s sign there",
    reads=NETWORKS,
)
def p11(tables: Tables) -> Finding:
    t = _random(own(tables))
    if t.empty:
        return not_run(NO_RANDOM)
    pot = "clean_winner_pot" in t
    t = t.assign(lucky=t["clean_neurons"] * t["clean_pure"])  # each drew its beginning independently
    name = "share that ends with a word of S_pot" if pot else "share that ends with its largest word"
    check = worst(t, "clean_winner_pot" if pot else "clean_winner", at_least, 0.8, name=name, samples="lucky")
    after = tables[NETWORKS].query("start == 'random' and network == 'lottery'")["same_word"]
    counts = tickets(t) if pot else ""
    measured = (
        f"{counts}the largest with w*'s sign {span(t['clean_winner'].round(3))} "
        f"(of any sign {span(t['clean_winner_unsigned'].round(3))}; chance {1 / t['words'].iloc[0]:.4f}); "
        f"among the three largest {span(t['clean_winner3'].round(3))}; "
        f"decided when the bias stops growing {span(after.round(3))}"
    )
    lacks = [] if pot else ["S_pot and S_sure of Lemma B.2"]
    return Finding(check.value, measured, scale_of(t), [check], lacks=lacks)


@FP.claim(
    "P12",
    source="§5.1, Fig 7",
    says="adversarial perturbations are dense in the basis of words before, and sparse after",
    paper="dense → sparse",
    rule="‖·‖₁/‖·‖₂ of FGM's and of PGD's perturbations falls at least 1.5 times, for every network",
    reads=NETWORKS,
)
def p12(tables: Tables) -> Finding:
    columns = {"FGM": "fgm_l1_l2", "PGD": "pgd_l1_l2"}
    t, needs = factors(own(tables), **columns)
    if t.empty:
        return not_run(*needs)
    checks = [worst(t, name, at_least, 1.5, name=f"{name}: ‖δ‖₁/‖δ‖₂ before / after") for name in columns]
    words = [
        f"{name} {span(t[f'clean_{c}'].round(1))} → {span(t[f'robust_{c}'].round(1))} ({span(t[name].round(2))} times)"
        for name, c in columns.items()
    ]
    measured = f"{', '.join(words)}, between 1 and {math.sqrt(t['words'].iloc[0]):.0f}"
    return Finding(min(check.value for check in checks), measured, scale_of(t), checks, needs=needs)
