"""The claims of FP §1 and §8 on CIFAR-10 about robustness, filters and neurons: P13–P15, P19, P20.

Every number of the robust network is compared with that of a control: as many further epochs of clean training. A table
with one seed has no spread, except where it counts pictures; then a claim is undecided. A column `NUMBER_spread`, from
resampled pictures or filters, is used where a table has it.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from brittle.pictures.cifar10_tables import (
    ACCURACY,
    FEATURES,
    LAYERS,
    PATH,
    PICTURES,
    THETA,
    absent,
    by_network,
    lacks_of,
    scale_of,
    spread_in,
)
from brittle.verdicts import FP, Finding, Tables, at_least, at_most, every, not_run, of_share, seeds, span

# FP Table 1, ResNet-34: robust and clean accuracy after clean, adversarial from random, and adversarial from clean.
TABLE = {
    "linf-4": (0.0, 0.939, 0.614, 0.823, 0.619, 0.839),
    "linf-8": (0.0, 0.939, 0.457, 0.716, 0.460, 0.737),
    "l2-0.5-0.12": (0.0, 0.939, 0.598, 0.783, 0.600, 0.792),
    "l2-1-0.25": (0.0, 0.939, 0.423, 0.643, 0.422, 0.655),
}


# --- Table 1


@FP.claim(
    "P13",
    source="Table 1",
    says="adversarial training makes networks robust, from random weights and from clean ones alike",
    paper="ResNet-34: 0 % robust (93.9 % clean) before; 42–61 % (64–82 %) from random weights, alike from clean ones",
    rule="under every attacker, our strongest and the paper's own, both adversarial trainings keep more than clean "
    "training, which keeps most without attack; from clean and from random weights within 3 points of each other; "
    "ResNet-34 on 50,000 pictures within 3 points of every entry under the paper's own",
    reads=ACCURACY,
)
def p13(tables: Tables) -> Finding:
    t = tables[ACCURACY]
    if "own" not in t:
        return not_run("the paper's own attackers", scale=scale_of(tables))
    found = _trainings(t)
    if found.empty:
        return not_run("adversarial training from random and from clean weights", scale=scale_of(tables))
    least = found.assign(cost=found["clean0"] - np.maximum(found["random0"], found["fine0"]))
    for of in ("", "_own"):
        least[f"gain{of}"] = np.minimum(found[f"random{of}"], found[f"fine{of}"]) - found[f"clean{of}"]
        least[f"apart{of}"] = (found[f"random{of}"] - found[f"fine{of}"]).abs()
    least = least.reset_index(names=["net", "seed", "attacker"])
    cells = ["net", "attacker"]
    attacked, test = float(t["attacked"].iloc[0]), float(t["test"].iloc[0])
    clean = _of_two(least["clean0"].max(), test)
    checks = [every(least, "cost", at_least, 0.0, cells=cells, name="loss of clean accuracy", spread=clean)]
    for of, whose in (("", "our strongest attacks"), ("_own", "the paper's attackers")):
        robust = _of_two(least[[f"random{of}", f"fine{of}"]].max().max(), attacked)
        name = f"gain in robust accuracy, {whose}"
        checks.append(every(least, f"gain{of}", at_least, 0.0, cells=cells, name=name, spread=robust))
        name = f"from random and from clean weights, {whose}"
        checks.append(every(least, f"apart{of}", at_most, 0.03, cells=cells, name=name, spread=robust))
    words = [
        f"{attacker}: {100 * row['clean']:.0f} ({100 * row['clean0']:.0f}) → {100 * row['random']:.0f} "
        f"({100 * row['random0']:.0f}) from random, {100 * row['fine']:.0f} ({100 * row['fine0']:.0f}) from clean; "
        f"under its own {100 * row['clean_own']:.0f} → {100 * row['random_own']:.0f}, {100 * row['fine_own']:.0f}"
        for attacker, row in found.groupby(level=2, sort=False).mean().iterrows()
    ]
    measured = f"robust (clean) accuracy in %, {'; '.join(words)}"
    wide = found[found.index.get_level_values(0) == "resnet-34"]
    if t["samples"].iloc[0] >= PICTURES and set(TABLE) <= set(wide.index.get_level_values(2)):
        entries = wide[["clean_own", "clean0", "random_own", "random0", "fine_own", "fine0"]]
        off = max(abs(row - TABLE[name]).max() for (_, _, name), row in entries.iterrows() if name in TABLE)
        checks.append(at_most("points off the paper's entries", off, 0.03, _of_two(0.5, attacked)))
    lacks = lacks_of(tables) + [f"the attacker {name}" for name in TABLE if name not in set(t["attacker"])]
    return Finding(float(least["gain"].min()), measured, scale_of(tables), checks, lacks=lacks)


def _of_two(share: float, samples: float) -> float:
    """The spread of the difference of two shares."""
    return math.sqrt(2) * of_share(share, samples)


def _trainings(t: pd.DataFrame) -> pd.DataFrame:
    """One row per net, seed and attacker: robust and clean accuracy of the three trainings of Table 1.

    Robust accuracy is under our strongest attack and, `_own`, under the attacker as the paper has it.
    """
    main = t["attacker"].iloc[0]
    rows = {}
    for (net, seed, attacker), group in t.groupby(["net", "seed", "attacker"], sort=False):
        by = group.set_index("network")
        names = ("clean", f"{attacker}.random", "robust" if attacker == main else f"{attacker}.clean")
        if set(names) <= set(by.index):
            rows[net, seed, attacker] = {
                f"{training}{of}": by.loc[name, kind]
                for training, name in zip(("clean", "random", "fine"), names, strict=True)
                for of, kind in (("", "robust"), ("0", "accuracy"), ("_own", "own"))
            }
    return pd.DataFrame(rows).T


# --- Filters and features


@FP.claim(
    "P14",
    source="Fig 1",
    says="adversarial training purifies the filters of the first layer",
    paper="purer to the eye",
    rule="the share of the filters' energy at high frequencies falls from clean to robust, and below the control's "
    "(AlexNet; filters of 3 × 3 have no low frequencies)",
    reads=FEATURES,
)
def p14(tables: Tables) -> Finding:
    own = tables[FEATURES]
    own = own[(own["of"] == "filters") & (own["net"] == "alexnet")]
    t = by_network(own, "high_frequency") if len(own) else pd.DataFrame()
    needs = absent(t, "clean", "robust", "control")
    if needs:
        return not_run(*(["AlexNet"] if own.empty else needs))
    gap = (t[["clean", "control"]].min(axis=1) - t["robust"]).rename("gap").reset_index()
    name, spread = "fall of the share of energy at high frequencies", spread_in(own, "high_frequency", math.sqrt(2))
    checks = [every(gap, "gap", at_least, 0.0, cells=["net"], name=name, spread=spread)]
    measured = (
        f"{span(t['clean'].round(3))} → {span(t['robust'].round(3))} (control {span(t['control'].round(3))}, "
        f"random weights {span(t['init'].round(3))})"
    )
    return Finding(float(gap["gap"].min()), measured, f"AlexNet, {seeds(own)}", checks)


@FP.claim(
    "P20",
    source="Fig 10, 11, 13",
    says="plain gradient ascent shows meaningful features of robust networks only",
    paper="meaningful to the eye only when robust",
    rule="the total variation of the visualised features falls from clean to robust, and below the control's, in every "
    "layer",
    reads=f"{FEATURES} {ACCURACY}",
)
def p20(tables: Tables) -> Finding:
    own = tables[FEATURES]
    own = own[own["of"] == "visualised"]
    t = own.pivot_table(index=["net", "layer", "seed"], columns="network", values="variation", sort=False)
    needs = absent(t, "clean", "robust", "control")
    words = [
        f"{net}'s layer {layer}: {row['init']:.2f} → {row['clean']:.2f} → {row['robust']:.2f}"
        for (net, layer), row in (t.groupby(level=[0, 1], sort=False).mean().iterrows() if len(needs) < 3 else [])
        if {"init", "clean", "robust"} <= set(row.index)
    ]
    measured = f"random → clean → robust, {'; '.join(words)}" if words else ""
    if needs:
        missing = [f"{name}, visualised" for name in needs]
        return not_run(*missing, measured=measured, scale=scale_of(tables))
    gap = (t[["clean", "control"]].min(axis=1) - t["robust"]).rename("gap").reset_index()
    name, spread = "total variation, clean or control - robust", spread_in(own, "variation", math.sqrt(2))
    checks = [every(gap, "gap", at_least, 0.0, cells=["net", "layer"], name=name, spread=spread)]
    return Finding(float(gap["gap"].min()), measured, scale_of(tables), checks, lacks=lacks_of(tables))


# --- Locality


@FP.claim(
    "P15",
    source="Fig 2, §8.2",
    says="purification is local: neurons leave their random weights in clean training, and hardly change after it",
    paper="θ(random, clean), θ(random, robust) ≤ 0.2, θ(clean, robust) ≥ 0.8 for most neurons, layer by layer",
    premise="the adversarial phase of the layer alone reaches stage 1's robust accuracy (§8.2's stopping rule)",
    rule="the medians meet these, in every layer that was looked at",
    reads=f"{THETA} {LAYERS} {ACCURACY}",
)
def p15(tables: Tables) -> Finding:
    own, layers, t = tables[THETA], tables[LAYERS], tables[ACCURACY]
    wide = own.pivot_table(index=["net", "layer", "seed"], columns="of", values="median", sort=False)
    names = ("init, clean", "init, robust", "clean, robust")
    needs = [f"θ({name})" for name in names if name not in wide]
    if needs:
        return not_run(*needs, scale=scale_of(tables))
    wide, spread = wide.reset_index(), spread_in(own, "median")
    cells = ["net", "layer"]
    checks = [
        every(wide, name, at_most, 0.2, cells=cells, name=f"median θ({name})", spread=spread) for name in names[:2]
    ]
    checks.append(every(wide, names[2], at_least, 0.8, cells=cells, name=f"median θ({names[2]})", spread=spread))
    words = [
        f"{row['net']}'s layer {row['layer']}: {row[names[0]]:.2f}, {row[names[1]]:.2f}, {row[names[2]]:.2f} "
        f"(control {row['clean, control']:.2f}, different neurons {row['different neurons']:.2f})"
        for _, row in wide.groupby(cells, sort=False).mean(numeric_only=True).reset_index().iterrows()
    ]
    lacks = lacks_of(tables) + [f"layer {n}" for n in (1, 3) if n not in set(own["layer"])]
    third = layers[layers["network"] == "robust"]
    premises = []
    if len(third):
        # §8.2: "(stage 1) perform T epochs of adversarial training", of the whole network from random weights.
        main = t["attacker"].iloc[0]
        stage1 = t.loc[(t["network"] == f"{main}.random") & (t["attacker"] == main), "robust"].mean()
        worst, attacked = third["robust"].min(), float(t["attacked"].iloc[0])
        asked = max(stage1, 1 / attacked)  # of a stage 1 that no picture survives, one picture
        name = "robust accuracy of a layer's adversarial phase / stage 1's"
        premises.append(at_least(name, worst / asked, 1.0, _of_two(stage1, attacked) / asked, third))
        words.append(f"robust accuracy above frozen robust layers {worst:.2f}, stage 1 {stage1:.2f}")
    value = float(wide[list(names[:2])].max().max())
    return Finding(value, "; ".join(words), scale_of(tables), checks, premises, lacks=lacks)


@FP.claim(
    "P19",
    source="Fig 8, 9",
    says="filters win their form in clean training, keep it in adversarial training, grow mixtures again without it",
    paper="as said, in pictures",
    rule="median θ of the first layer: with its random weights ≤ 0.2 at the end of clean training, with the clean ones "
    "≥ 0.8 at the end of adversarial training; after clean training from there nearer to the clean ones again, and "
    "rougher (total variation) than the robust ones",
    reads=f"{PATH} {ACCURACY}",
)
def p19(tables: Tables) -> Finding:
    last = tables[PATH].sort_values("epoch").groupby(["net", "seed", "network"], sort=False).last().reset_index()
    by = {name: by_network(last, name) for name in ("theta_init", "theta_clean", "variation")}
    needs = absent(by["variation"], "clean", "robust", "again", "control")
    if needs:
        return not_run(*needs, scale=scale_of(tables))
    t = pd.DataFrame({"init": by["theta_init"]["clean"], "robust": by["theta_clean"]["robust"]})
    t["again"], rough = by["theta_clean"]["again"], by["variation"]
    t = t.assign(back=t["again"] - t["robust"], rougher=rough["again"] - rough["robust"]).reset_index()
    checks = [
        every(t, column, check, bound, cells=["net"], name=name, spread=spread_in(last, of, times))
        for column, check, bound, name, of, times in (
            ("init", at_most, 0.2, "median θ(random, clean)", "theta_init", 1.0),
            ("robust", at_least, 0.8, "median θ(clean, robust)", "theta_clean", 1.0),
            ("back", at_least, 0.0, "θ(clean, again) - θ(clean, robust)", "theta_clean", math.sqrt(2)),
            ("rougher", at_least, 0.0, "total variation, again - robust", "variation", math.sqrt(2)),
        )
    ]
    measured = (
        f"θ(random, clean) {span(t['init'].round(3))}, θ(clean, robust) {span(t['robust'].round(3))}, then back to "
        f"{span(t['again'].round(3))}; total variation {span(rough['clean'].round(3))} → "
        f"{span(rough['robust'].round(3))} → {span(rough['again'].round(3))} "
        f"(control {span(rough['control'].round(3))})"
    )
    again = tables[PATH].query("network == 'again'")["epoch"].max()
    lacks = lacks_of(tables) + ([] if again >= 20 else [f"20 epochs of clean training again (here {again:g})"])
    return Finding(float(t["init"].max()), measured, scale_of(tables), checks, lacks=lacks)
