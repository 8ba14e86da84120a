"""The claims of FP §1 and §8 on CIFAR-10, P13–P20.

Every number of the robust network is compared with that of a control: as many further epochs of clean training.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from brittle.verdicts import FP, Finding, Tables, seeds, span

ACCURACY, FEATURES, PATH = "plots/cifar10_accuracy.csv", "plots/cifar10_features.csv", "plots/cifar10_path.csv"
THETA, LAYERS, LASSO = "plots/cifar10_theta.csv", "plots/cifar10_layers.csv", "plots/cifar10_lasso.csv"
ACTIVITY, PERTURBATIONS = "plots/cifar10_activity.csv", "plots/cifar10_perturbations.csv"
PAPER_SCALE = 50_000  # training pictures
# FP Table 1, ResNet-34: robust and clean accuracy after clean, adversarial from random, and adversarial from clean.
TABLE = {
    "linf-4": (0.0, 0.939, 0.614, 0.823, 0.619, 0.839),
    "linf-8": (0.0, 0.939, 0.457, 0.716, 0.460, 0.737),
    "l2-0.5-0.12": (0.0, 0.939, 0.598, 0.783, 0.600, 0.792),
    "l2-1-0.25": (0.0, 0.939, 0.423, 0.643, 0.422, 0.655),
}


def _scale(tables: Tables) -> str:
    t = tables[ACCURACY]
    about = f"{', '.join(t['net'].unique())}, {seeds(t)}, {t['samples'].iloc[0]:g} training pictures"
    return f"{about}, {t['attacked'].iloc[0]:g} attacked"


def _trainings(t: pd.DataFrame) -> pd.DataFrame:
    """One row per net, seed and attacker: robust and clean accuracy of the three trainings of Table 1."""
    main = t["attacker"].iloc[0]
    rows = {}
    for (net, seed, attacker), group in t.groupby(["net", "seed", "attacker"], sort=False):
        by = group.set_index("network")
        names = ("clean", f"{attacker}.random", "robust" if attacker == main else f"{attacker}.clean")
        rows[net, seed, attacker] = [by.loc[name, kind] for name in names for kind in ("robust", "accuracy")]
    return pd.DataFrame(rows, index=["clean", "clean0", "random", "random0", "fine", "fine0"]).T


@FP.claim(
    "P13",
    source="Table 1",
    says="adversarial training makes networks robust, from random weights and from clean ones alike",
    paper="ResNet-34: 0 % robust (93.9 % clean) before; 42–61 % (64–82 %) from random weights, alike from clean ones",
    rule="at the paper's scale within 3 points of every entry; at a smaller scale the order: under every attacker both "
    "adversarial trainings keep more than clean training does, which keeps most without attack",
    reads=ACCURACY,
)
def p13(tables: Tables) -> Finding:
    t = tables[ACCURACY]
    found = _trainings(t)
    gain = float(np.minimum(found["random"], found["fine"]).sub(found["clean"]).min())
    words = [
        f"{attacker}: {100 * row['clean']:.0f} ({100 * row['clean0']:.0f}) → {100 * row['random']:.0f} "
        f"({100 * row['random0']:.0f}) from random, {100 * row['fine']:.0f} ({100 * row['fine0']:.0f}) from clean"
        for attacker, row in found.groupby(level=2, sort=False).mean().iterrows()
    ]
    measured = f"robust (clean) accuracy in %, {'; '.join(words)}"
    wide = found[found.index.get_level_values(0) == "resnet-34"]
    if t["samples"].iloc[0] >= PAPER_SCALE and set(TABLE) <= set(wide.index.get_level_values(2)):
        off = max(abs(row - TABLE[name]).max() for (_, _, name), row in wide.iterrows() if name in TABLE)
        return Finding(off <= 0.03, float(off), f"{measured}; at most {100 * off:.1f} points off", _scale(tables))
    ordered = gain > 0 and bool((found["clean0"] > found[["random0", "fine0"]].max(axis=1)).all())
    return Finding(ordered, gain, measured, _scale(tables))


def _by_network(t: pd.DataFrame, column: str) -> pd.DataFrame:
    return t.pivot_table(index=["net", "seed"], columns="network", values=column, sort=False)


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
    t = tables[FEATURES]
    t = _by_network(t[(t["of"] == "filters") & (t["net"] == "alexnet")], "high_frequency")
    if t.empty:
        return Finding(None, math.nan, "AlexNet is not among the networks", "")
    drop = float((t["clean"] - t["robust"]).min())
    measured = (
        f"{span(t['clean'].round(3))} → {span(t['robust'].round(3))} (control {span(t['control'].round(3))}, "
        f"random weights {span(t['init'].round(3))})"
    )
    holds = bool((t["robust"] < t[["clean", "control"]].min(axis=1)).all())
    return Finding(holds, drop, measured, f"AlexNet, {len(t)} seed{'s' if len(t) > 1 else ''}")


@FP.claim(
    "P15",
    source="Fig 2, §8.2",
    says="purification is local: neurons leave their random weights in clean training, and hardly change after it",
    paper="θ(random, clean), θ(random, robust) ≤ 0.2, θ(clean, robust) ≥ 0.8 for most neurons, layer by layer",
    rule="the medians meet these, in every layer that was looked at",
    reads=f"{THETA} {LAYERS} {ACCURACY}",
)
def p15(tables: Tables) -> Finding:
    t = tables[THETA].pivot_table(index=["net", "layer"], columns="of", values="median", sort=False)
    far, near = t[["init, clean", "init, robust"]].max(axis=1), t["clean, robust"]
    words = [
        f"{net}'s layer {layer}: {row['init, clean']:.2f}, {row['init, robust']:.2f}, {row['clean, robust']:.2f} "
        f"(control {row['clean, control']:.2f}, different neurons {row['different neurons']:.2f})"
        for (net, layer), row in t.iterrows()
    ]
    deep = tables[LAYERS].query("layer > 1")
    if len(deep):
        by = deep.groupby("network")["robust"].mean()
        words.append(f"robust accuracy above frozen robust layers {by['clean']:.2f} → {by['robust']:.2f}")
    return Finding(bool((far <= 0.2).all() and (near >= 0.8).all()), float(far.max()), "; ".join(words), _scale(tables))


def curves(t: pd.DataFrame, at: np.ndarray | None = None) -> tuple[np.ndarray, dict[tuple[str, str], np.ndarray]]:
    """The errors of all curves at the sparsities that each of them reaches, interpolated in log sparsity."""
    groups = {
        key: g[g["sparsity"] > 0].sort_values("sparsity") for key, g in t.groupby(["features", "target"], sort=False)
    }
    if at is None:
        low = max(g["sparsity"].min() for g in groups.values())
        high = min(g["sparsity"].max() for g in groups.values())
        at = np.geomspace(low, high, 9) if low < high else np.array([])
    return at, {key: np.interp(np.log(at), np.log(g["sparsity"]), g["error"]) for key, g in groups.items()}


@FP.claim(
    "P16",
    source="Fig 4, 12",
    says="robust features reconstruct pictures most sparsely, and robust perturbations are sparser than clean ones",
    paper="robust sparsest; 4.05 % of the coefficients are enough",
    rule="at every sparsity that all curves reach: error of pictures from robust < clean < random features, and from "
    "robust features that of robust_delta < clean_delta, for every network",
    reads=f"{LASSO} {ACCURACY}",
)
def p16(tables: Tables) -> Finding:
    t, words, all_hold, worst = tables[LASSO], [], True, math.inf
    for net, rows in t.groupby("net", sort=False):
        of_pictures = rows[(rows["target"] == "pictures") & (rows["features"] != "control")]
        at, error = curves(of_pictures)
        where, delta = curves(rows[(rows["features"] == "robust") & (rows["target"] != "pictures")])
        if len(at) == 0 or len(where) == 0:
            return Finding(None, math.nan, f"the curves of {net} have no sparsity in common", _scale(tables))
        random, clean, robust = (error[name, "pictures"] for name in ("random", "clean", "robust"))
        gaps = [clean / robust, random / clean, delta["robust", "clean_delta"] / delta["robust", "robust_delta"]]
        least = [float(gap.min()) for gap in gaps]
        worst = min(worst, *least)
        all_hold &= min(least) > 1
        middle = len(at) // 2
        words.append(
            f"{net}, pictures at {100 * at[middle]:.1f} %: random {random[middle]:.2f}, clean {clean[middle]:.2f}, "
            f"robust {robust[middle]:.2f}; ratios everywhere ≥ {least[1]:.2f} and {least[0]:.2f}; clean_delta to "
            f"robust_delta ≥ {least[2]:.2f}"
        )
    sure = f"{100 * t['converged'].min():.0f} % of the solutions converged or more"
    return Finding(all_hold, worst, "; ".join([*words, sure]), f"{_scale(tables)}, {t['pictures'].iloc[0]:g} pictures")


@FP.claim(
    "P17",
    source="Fig 5",
    says="activations become sparser along clean training",
    paper="sparser (WRN-28-10)",
    rule="the share of active neurons falls with the epoch: Spearman's rank correlation ≤ -0.8, for every network",
    reads=f"{ACTIVITY} {ACCURACY}",
)
def p17(tables: Tables) -> Finding:
    t = tables[ACTIVITY]
    t = t[t["network"] == "clean"]
    trends, words = [], []
    for (net, _), rows in t.groupby(["net", "seed"], sort=False):
        trends.append(float(rows["epoch"].rank().corr(rows["active"].rank())) if len(rows) > 2 else math.nan)
        first, last = rows["active"].iloc[0], rows["active"].iloc[-1]
        words.append(f"{net}: {first:.3f} → {last:.3f} over {len(rows) - 1} epochs")
    if not all(map(math.isfinite, trends)):
        return Finding(None, math.nan, "; ".join(words), _scale(tables))
    worst = max(trends)
    return Finding(worst <= -0.8, worst, f"rank correlation ≤ {worst:.2f}; {'; '.join(words)}", _scale(tables))


@FP.claim(
    "P18",
    source="Fig 7",
    says="perturbations of clean networks are dense, those of robust ones are not",
    paper="dense → image-like",
    rule="‖δ‖₁/‖δ‖₂ in Haar wavelets, in which pictures are sparse, falls at least 1.5 times",
    reads=f"{PERTURBATIONS} {ACCURACY}",
)
def p18(tables: Tables) -> Finding:
    t = tables[PERTURBATIONS]
    by = {name: _by_network(t, name) for name in ("pixels", "dct", "haar", "variation") if name in t}
    if "haar" not in by or not {"clean", "robust"} <= set(by["haar"]):
        return Finding(None, math.nan, "no perturbation changes a picture", _scale(tables))
    ratio = by["haar"]["clean"] / by["haar"]["robust"]
    words = [
        f"{name} {span(m['clean'].round(3))} → {span(m['robust'].round(3))} (control {span(m['control'].round(3))})"
        for name, m in by.items()
    ]
    return Finding(
        float(ratio.min()) >= 1.5,
        float(ratio.min()),
        f"{span(ratio.round(2))} times; {', '.join(words)}",
        _scale(tables),
    )


@FP.claim(
    "P19",
    source="Fig 8, 9",
    says="filters win their form in clean training, keep it in adversarial training, grow mixtures again without it",
    paper="as said, in pictures",
    rule="median θ of the first layer: with its random weights ≤ 0.2 at the end of clean training, with the clean ones "
    "≥ 0.8 at the end of adversarial training; after clean training from there nearer to the clean ones again and "
    "rougher (total variation) than the robust ones",
    reads=f"{PATH} {ACCURACY}",
)
def p19(tables: Tables) -> Finding:
    last = tables[PATH].sort_values("epoch").groupby(["net", "seed", "network"], sort=False).last().reset_index()
    by = {name: _by_network(last, name) for name in ("theta_init", "theta_clean", "variation")}
    init, robust, again = by["theta_init"]["clean"], by["theta_clean"]["robust"], by["theta_clean"]["again"]
    rough = by["variation"]
    measured = (
        f"θ(random, clean) {span(init.round(3))}, θ(clean, robust) {span(robust.round(3))}, then back to "
        f"{span(again.round(3))}; total variation {span(rough['clean'].round(3))} → {span(rough['robust'].round(3))} → "
        f"{span(rough['again'].round(3))} (control {span(rough['control'].round(3))})"
    )
    back = (again > robust) & (rough["again"] > rough["robust"])
    holds = bool((init <= 0.2).all() and (robust >= 0.8).all() and back.all())
    return Finding(holds, float(init.max()), measured, _scale(tables))


@FP.claim(
    "P20",
    source="Fig 10, 11, 13",
    says="plain gradient ascent shows meaningful features of robust networks only",
    paper="meaningful to the eye only when robust",
    rule="the total variation of the visualised features falls from clean to robust, in every layer",
    reads=f"{FEATURES} {ACCURACY}",
)
def p20(tables: Tables) -> Finding:
    t = tables[FEATURES]
    t = t[t["of"] == "visualised"].pivot_table(
        index=["net", "layer"], columns="network", values="variation", sort=False
    )
    if t.empty:
        return Finding(None, math.nan, "no feature was visualised", "")
    ratio = t["clean"] / t["robust"]
    words = [
        f"{net}'s layer {layer}: {row['init']:.2f} → {row['clean']:.2f} → {row['robust']:.2f}"
        for (net, layer), row in t.iterrows()
    ]
    measured = f"random → clean → robust, {'; '.join(words)}"
    return Finding(bool((ratio > 1).all()), float(ratio.min()), measured, _scale(tables))
