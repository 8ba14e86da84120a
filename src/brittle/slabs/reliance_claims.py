"""The claims of SB on synthetic data that say which features a network relies on: S2, S4 and S9–S12.

§6 refers to an appendix E that is in neither text: S11 and S12 rest on the main text's sentences.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import product

import pandas as pd

from brittle.verdicts import (
    SB,
    Check,
    Finding,
    Tables,
    at_least,
    cells_missing,
    every,
    exactly,
    not_run,
    seeds,
    span,
    within,
)

NETWORKS, FEATURES, RECIPES = "plots/slabs_networks.csv", "plots/features.csv", "plots/recipes.csv"
ADVERSARIAL, PATH = "plots/adversarial.csv", "plots/adversarial_path.csv"
AREAS = {"auc_roc": "ROC", "auc_pr": "PR"}  # the authors' code uses the first, Definition 2 says the second
RULE = "S-randomised AUC in [0.45, 0.55] and Sᶜ-randomised AUC ≥ 0.99, under either curve, for every network"

# What the paper has.
WORLDS = ("lms-5", "ms-5-7")
ARCHITECTURES = ("fcn-100-1", "fcn-100-2", "cnn-32-7-1", "cnn-32-7-2", "gru-100-10-1", "gru-100-10-2")  # App. Table 2
ACTIVATIONS, OPTIMISERS = ("relu", "leaky_relu", "prelu", "tanh"), ("sgd", "adam", "rmsprop")  # App. Table 4
DROPOUTS, DECAYS = (0.0, 0.05, 0.1), (1e-2, 1e-4)  # App. Table 5; App. C.4 has 1e-3 for the latter
GAMMA, D = 0.1, 50  # App. B: "effective margin parameter γ = 0.1, width parameter B = 1"; §3.1: "d = 50"
LOSS, DECAYED, EPOCHS = 1e-2, 1e-3, 25


def _relies_on_s(
    t: pd.DataFrame, cells: list[str], scale: str, lacks: Sequence[str], premises: Sequence[Check] = ()
) -> Finding:
    """SB Table 1: the AUC is chance when S comes from other samples, and unchanged when the rest does."""
    if t.empty:
        needs = lacks if all(premise.holds for premise in premises) else ()
        return Finding(math.nan, "no network", scale, premises=premises, needs=needs, lacks=() if needs else lacks)
    checks = []
    for area, name in AREAS.items():
        label = f"S-randomised AUC ({name})"
        checks.append(every(t, f"s_{area}", within, 0.45, 0.55, cells=cells, name=label))
        checks.append(every(t, f"rest_{area}", at_least, 0.99, cells=cells, name=label.replace("S", "Sᶜ", 1)))
    s, rest = (pd.concat([t[f"{version}_{area}"] for area in AREAS]) for version in ("s", "rest"))
    farthest = float(s.iloc[(s - 0.5).abs().argmax()])
    measured = f"S-randomised {span(s.round(3))}, Sᶜ-randomised ≥ {rest.min():.3f}, {len(t)} networks"
    unlearnt = t[t["standard_auc_roc"] < 0.99]
    if len(unlearnt):
        names = ", ".join(sorted({" ".join(map(str, row)) for row in unlearnt[cells].itertuples(index=False)}))
        measured += f"; {len(unlearnt)} did not learn their task: {names}"
    return Finding(farthest, measured, scale, checks, premises, lacks=lacks)


def worlds(t: pd.DataFrame) -> str:
    return ", ".join(t["world"].unique())


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
    scale = f"{t['model'].nunique()} architectures, {worlds(t)}, up to {seeds(t)}"
    cells = ["model", "world"]
    return _relies_on_s(t, cells, scale, cells_missing(t, cells, product(ARCHITECTURES, WORLDS)))


@SB.claim(
    "S4",
    source="Fig 3(b)",
    says="more complex features change nothing",
    paper="0.5 and 1.0 up to 249 complex features, (2000, 1)-FCN",
    premise="the same network learns the same complex features without S: test accuracy ≥ 0.9",
    rule=RULE,
    reads=FEATURES,
)
def s4(tables: Tables) -> Finding:
    # §4.2: "sample size and model architecture do not present any obstacles in learning complex features".
    t = tables[FEATURES]
    simple = t["simple"] if "simple" in t else pd.Series(1, index=t.index)  # 0: without S
    t, alone = t[simple == 1], t[simple == 0]
    name = f"{t['model'].iloc[0]} on {worlds(t)}" if len(t) else "fcn-2000-1 on lms-5"
    scale = f"{span(t['complex'])} complex features, {name}, {seeds(t)}" if len(t) else ""
    least = alone.groupby("complex")["standard_accuracy"].min()
    lacks = [f"{name} without S, {c} complex features" for c in t["complex"].unique() if c not in least.index]
    lacks += [] if (t["complex"] == 249).any() else [f"{name}, 249 complex features"]
    if t.empty or alone.empty:
        return not_run(*lacks, scale=scale)
    learnt = least.index[least >= 0.9]
    lacks += [f"{c} complex features, learnt without S (test {least[c]:.2f})" for c in least.index if c not in learnt]
    shown = alone[alone["complex"].isin(learnt)] if len(learnt) else alone
    premise = every(shown, "standard_accuracy", at_least, 0.9, cells=["complex"], name="test accuracy without S")
    return _relies_on_s(t[t["complex"].isin(learnt)], ["model", "world", "complex"], scale, lacks, [premise])


def _trained(t: pd.DataFrame) -> pd.Series:
    """Which networks were trained to the end.

    App. B: "We run all models for at most 500 epochs and stop early if the training loss goes below 10^-3". Ours stop
    at 3e-3 at the quick scale, and the loss is the mean over an epoch: 1e-2 leaves room for both. With λ = 1e-2 the
    weights cannot grow far enough for such a loss, so that in the paper, too, the number of epochs ends training; 25
    with momentum 0.9 have the length of 250 without.
    """
    return (t["loss"] <= LOSS) | ((t["weight_decay"] >= DECAYED) & (t["epochs"] >= EPOCHS))


def _recipes(t: pd.DataFrame, axes: list[str], asked: Sequence[Sequence[object]], scale: str) -> Finding:
    """The networks of a table of recipes that were trained to the end; the others are named."""
    done = _trained(t)
    there = set(t[axes].itertuples(index=False, name=None))
    lacks = [_named(axes, cell) for cell in asked if cell not in there]
    for cell, rows in t[~done].groupby(axes, sort=False):
        lacks.append(f"{_named(axes, cell)} to the end (loss {span(rows['loss'])}, epochs {span(rows['epochs'])})")
    premise = exactly(f"some networks were trained to a loss ≤ {LOSS:g}", bool(done.any()), t)
    found = _relies_on_s(t[done], axes, scale, lacks, [premise] if len(t) else [])
    if done.any() or t.empty:
        return found
    measured = f"none trained to the end: loss {span(t['loss'])}, epochs {span(t['epochs'])}"
    return Finding(math.nan, measured, scale, premises=[premise], lacks=lacks)


def _named(axes: list[str], cell: Sequence[object]) -> str:
    signs = {"dropout": "dropout ", "weight_decay": "λ "}
    words = (f"{part:g}" if isinstance(part, float) else f"{part}" for part in cell)
    return " ".join(f"{signs.get(axis, '')}{word}" for axis, word in zip(axes, words, strict=True))


@SB.claim(
    "S9",
    source="App. Table 4",
    says="so do networks with other activations and optimisers",
    paper="S-randomised AUC .495–.502, Sᶜ-randomised 1.0",
    premise="trained to the end: loss ≤ 0.01",
    rule=RULE,
    reads=RECIPES,
)
def s9(tables: Tables) -> Finding:
    t = tables[RECIPES]
    t, axes = t[t["table"] == 4], ["activation", "optimiser", "world"]
    scale = f"{t['activation'].nunique()} activations × {t['optimiser'].nunique()} optimisers, {worlds(t)}, {seeds(t)}"
    return _recipes(t, axes, list(product(ACTIVATIONS, OPTIMISERS, ("lms-7", "ms-5-7"))), scale)


@SB.claim(
    "S10",
    source="App. Table 5",
    says="so do networks with dropout and weight decay",
    paper="1.00 / 0.50 / 1.00 throughout",
    premise="trained to the end: loss ≤ 0.01, or 25 epochs where λ = 0.01 keeps the loss up",
    rule=RULE,
    reads=RECIPES,
)
def s10(tables: Tables) -> Finding:
    t = tables[RECIPES]
    t, axes = t[t["table"] == 5], ["model", "dropout", "weight_decay"]
    settings = f"dropout {span(t['dropout'])}, λ {span(t['weight_decay'])}"
    scale = f"{settings}, {t['model'].nunique()} FCNs, {worlds(t)}, {seeds(t)}"
    return _recipes(t, axes, list(product(("fcn-100-1", "fcn-100-2"), DROPOUTS, DECAYS)), scale)


@SB.claim(
    "S11",
    source="§6",
    says="ensembles do not help",
    paper='"continue to exclusively rely on the simplest feature … invariant to all complex features"',
    rule=RULE,
    reads=NETWORKS,
)
def s11(tables: Tables) -> Finding:
    t = tables[NETWORKS]
    t = t[t["members"] > 1]
    lacks = [f"an ensemble on {world}" for world in WORLDS if world not in set(t["world"])]
    scale = f"averages of {span(t['members'])} FCNs, {worlds(t)}"
    return _relies_on_s(t, ["model", "world", "members"], scale, lacks)


def _within_margin(t: pd.DataFrame) -> pd.Series:
    """Which networks were trained against perturbations that S alone survives.

    S keeps the labels γB = 0.1 away from its boundary, so in l2 those are ε ≤ γ, in whatever direction S is seen. In l∞
    a perturbation of size ε moves S by up to ε‖q‖₁, where q is S's direction after the rotation: by ε without one, but
    by up to ε√d with one (5.6 ε on average for d = 50). Whatever the rotation, S survives ε ≤ γ/√d = 0.014: the largest
    cube in the ball of radius γ.
    """
    bound = t["norm"].map({"l2": GAMMA, "linf": GAMMA / math.sqrt(D)})
    return t["eps"] <= bound * (1 + 1e-9)


def _trained_as(t: pd.DataFrame) -> list[str]:
    return [axis for axis in ("norm", "eps", "momentum") if axis in t]


@SB.claim(
    "S12a",
    source="§6",
    says="adversarial training that S alone can survive changes nothing",
    paper='"the resulting adversarially trained models remain invariant to all complex features"',
    rule=f"{RULE} trained against ε ≤ γ = 0.1 in l2 or ε ≤ γ/√d = 0.014 in l∞",
    reads=ADVERSARIAL,
)
def s12a(tables: Tables) -> Finding:
    t = tables[ADVERSARIAL]
    t = t[_within_margin(t)]
    asked = {"l2": f"l2, ε ≤ {GAMMA:g}", "linf": f"l∞, ε ≤ {GAMMA / math.sqrt(D):.2g}"}
    lacks = [words for norm, words in asked.items() if not (t["norm"] == norm).any()]
    return _relies_on_s(t, [*_trained_as(t)], _radii(t), lacks)


@SB.question(
    "S12b",
    source="§6",
    says="does adversarial training that S alone cannot survive bring in the complex features?",
    paper='"increases margin … to some extent … but does not achieve the maximum possible adversarial robustness"',
    rule="the randomised AUCs of networks trained against larger ε, after how many updates Sᶜ-randomised AUC < 0.99 or "
    "S-randomised AUC > 0.55, and the share of samples that resist, beside f*'s",
    reads=f"{ADVERSARIAL} {PATH}",
)
def s12b(tables: Tables) -> Finding:
    t = tables[ADVERSARIAL]
    plain, hard = t[t["norm"] == "none"], t[(t["norm"] != "none") & ~_within_margin(t)]
    if hard.empty:
        return not_run(f"l2, ε > {GAMMA:g}", scale=_radii(t))
    reliance = ", ".join(
        f"{norm} {eps:g}: {rows['s_auc_roc'].mean():.3f} / {rows['rest_auc_roc'].mean():.3f}"
        for (norm, eps), rows in hard.groupby(["norm", "eps"], sort=False)
    )
    radius = max(float(column.split("_")[1]) for column in t.columns if re.fullmatch(r"l2_[\d.e+-]+", column))
    column = f"l2_{radius:g}"
    resist = f"{span(hard[column].round(3))} of the samples resist"
    if f"{column}_certified" in t:
        resist += f", {span(hard[f'{column}_certified'].round(3))} provably"
    without = f"{plain[column].mean():.3f} without such training, " if len(plain) else ""
    measured = (
        f"S-randomised / Sᶜ-randomised AUC after {span(hard['epochs'])} epochs: {reliance}; at l2 radius {radius:g} "
        f"{resist} ({without}f*: {t[column + '_f_star'].min():.3f} provably)"
    )
    path = tables[PATH]
    path = path[(path["norm"] != "none") & ~_within_margin(path)]
    measured += f". Sᶜ comes in, updates: {_crossovers(path)}"
    lacks = [] if path["updates"].nunique() > 1 else ["the AUCs along training: after how many updates"]
    lacks += [] if "momentum" in t and t["momentum"].nunique() > 1 else ["with and without momentum"]
    lacks += [] if hard["seed"].nunique() >= 3 else ["3 seeds"]
    return Finding(float(hard["rest_auc_roc"].min()), measured, _radii(hard), lacks=lacks)


def _crossovers(path: pd.DataFrame) -> str:
    """Between which of the updates looked at each kind of training first relies on more than S, by the seeds' mean."""
    found = []
    for cell, rows in path.groupby(_trained_as(path), sort=False):
        means = rows.groupby("updates")[["s_auc_roc", "rest_auc_roc"]].mean()
        late = means.index[(means["s_auc_roc"] > 0.55) | (means["rest_auc_roc"] < 0.99)]
        first = late.min() if len(late) else math.nan
        before = means.index[means.index < first].max() if len(late) and (means.index < first).any() else 0
        when = f"{before:g}–{first:g}" if len(late) else f"not up to {means.index.max():g}"
        found.append(f"{cell[0]} {cell[1]:g}{f', momentum {cell[2]:g}' if len(cell) > 2 else ''}: {when}")
    return "; ".join(found)


def _radii(t: pd.DataFrame) -> str:
    parts = [f"{name} {span(t[t['norm'] == norm]['eps'])}" for norm, name in (("l2", "l2"), ("linf", "l∞"))
             if (t["norm"] == norm).any()]  # fmt: skip
    return ", ".join([*parts, seeds(t)]) if parts else ""
