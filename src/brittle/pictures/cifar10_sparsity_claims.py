"""The claims of FP §8 on CIFAR-10 about sparsity, P16–P18: of pictures in features, of activity, of perturbations."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from brittle.pictures.cifar10_tables import (
    ACCURACY,
    ACTIVITY,
    LASSO,
    PERTURBATIONS,
    by_network,
    lacks_of,
    scale_of,
    spread_in,
)
from brittle.verdicts import FP, Check, Finding, Tables, at_least, at_most, every, not_run, span

FALL = 1.5
SPARSITY = 0.0405  # FP Fig 4: the share of the coefficients
NOISE = math.sqrt(2 / math.pi)  # ‖g‖₁/(√n ‖g‖₂) of Gaussian noise g, in any orthonormal basis


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
    rule="at 4.05 % of the coefficients: error of pictures from robust < clean < random features, and from robust "
    "features that of robust_delta < clean_delta, for every network",
    reads=f"{LASSO} {ACCURACY}",
)
def p16(tables: Tables) -> Finding:
    t, words, checks = tables[LASSO], [], []
    for net, rows in t.groupby("net", sort=False):
        used = rows[(rows["target"] == "pictures") & (rows["features"] != "control") | (rows["features"] == "robust")]
        reached = used[used["sparsity"] > 0].groupby(["features", "target"])["sparsity"].agg(["min", "max"])
        short = reached[(reached["min"] > SPARSITY) | (reached["max"] < SPARSITY)].index
        if len(short):
            return not_run(*(f"{net}, {' '.join(key)} at 4.05 %" for key in short), scale=scale_of(tables))
        _, at = curves(used, np.array([SPARSITY]))
        random, clean, robust = (float(at[name, "pictures"][0]) for name in ("random", "clean", "robust"))
        deltas = [float(at["robust", f"{name}_delta"][0]) for name in ("clean", "robust")]
        checks += [
            at_least(f"{net}: error, {name}", high / low, 1.0, _paired(rows, *of) / low, used)
            for name, high, low, of in (
                ("clean / robust features", clean, robust, ("clean", "pictures")),
                ("random / clean features", random, clean, ("random", "pictures")),
                ("clean_delta / robust_delta", *deltas, ("robust", "clean_delta")),
            )
        ]
        words.append(
            f"{net}, pictures at 4.05 %: random {random:.3f}, clean {clean:.3f}, robust {robust:.3f}; clean_delta "
            f"{deltas[0]:.3f}, robust_delta {deltas[1]:.3f}"
        )
    pictures = t["pictures"].max()
    lacks = lacks_of(tables) + ([] if pictures >= 100 else [f"100 pictures (here {pictures:g})"])
    measured = "; ".join([*words, f"{100 * t['converged'].min():.0f} % of the solutions converged or more"])
    worst = min(check.value for check in checks)
    return Finding(worst, measured, f"{scale_of(tables)}, {pictures:g} pictures", checks, lacks=lacks)


def _paired(rows: pd.DataFrame, features: str, target: str) -> float:
    """The standard error of the difference to the curve that is to be below, over the same pictures, at 4.05 %."""
    if "error_spread" not in rows:
        return math.nan
    return float(rows.loc[(rows["features"] == features) & (rows["target"] == target), "error_spread"].iloc[0])


@FP.claim(
    "P17",
    source="Fig 5",
    says="activations become sparser along clean training",
    paper="sparser (WRN-28-10)",
    rule="the share of active neurons falls with the epoch: Spearman's rank correlation ≤ -0.8 without the untrained "
    "network, for every network",
    reads=f"{ACTIVITY} {ACCURACY}",
)
def p17(tables: Tables) -> Finding:
    t = tables[ACTIVITY]
    t = t[(t["network"] == "clean") & (t["epoch"] > 0)]  # the untrained network is no point of the training
    rows, words = [], []
    for (net, seed), some in t.groupby(["net", "seed"], sort=False):
        if len(some) < 3:
            return not_run("three epochs of clean training", scale=scale_of(tables))
        trend = float(some["epoch"].rank().corr(some["active"].rank()))
        rows.append({"net": net, "seed": seed, "trend": trend, "spread": _of_rank(trend, len(some))})
        first, last = some["active"].iloc[0], some["active"].iloc[-1]
        words.append(f"{net}: {first:.3f} → {last:.3f} over {len(some)} epochs")
    found = pd.DataFrame(rows)
    worst = found.loc[found["trend"].idxmax()]
    checks = [at_most("rank correlation with the epoch", worst["trend"], -0.8, worst["spread"], found)]
    measured = f"rank correlation ≤ {worst['trend']:.2f}; {'; '.join(words)}"
    return Finding(float(worst["trend"]), measured, scale_of(tables), checks, lacks=["resnet-28-10", *lacks_of(tables)])


def _of_rank(correlation: float, n: int) -> float:
    """The spread of a rank correlation over n epochs, by Fisher's transformation."""
    return (1 - correlation**2) / math.sqrt(max(n - 3, 1))


@FP.claim(
    "P18",
    source="Fig 7",
    says="perturbations of clean networks are dense, those of robust ones are not",
    paper="dense → image-like",
    premise="clean perturbations are dense: (spread - pictures')/(noise's - pictures') ≥ ½ in Haar wavelets",
    rule="that share falls at least 1.5 times from clean to robust, and 1.5 times beyond the control's; and robust "
    "features reconstruct robust_delta with a smaller error than clean_delta, at 4.05 % of the coefficients (§8.3)",
    reads=f"{PERTURBATIONS} {LASSO} {ACCURACY}",
)
def p18(tables: Tables) -> Finding:
    own = tables[PERTURBATIONS]
    by = {name: by_network(own, name) for name in ("pixels", "dct", "haar", "variation") if name in own}
    wide = by.get("haar", pd.DataFrame())
    needs = [f"the perturbations of {name}" for name in ("clean", "robust", "control") if name not in wide]
    # A row `pictures` has the spread of the pictures themselves, in which perturbations are to be image-like.
    needs += [] if "pictures" in wide else ["the Haar spread of the pictures themselves"]
    words = [
        f"{name} {span(m['clean'].round(3))} → {span(m['robust'].round(3))} (control {span(m['control'].round(3))})"
        for name, m in by.items()
        if {"clean", "robust", "control"} <= set(m)
    ]
    if needs:
        return not_run(*needs, measured=", ".join(words), scale=scale_of(tables))
    base = wide["pictures"]
    share = wide[["clean", "robust", "control"]].sub(base, axis=0).div(NOISE - base, axis=0)
    # Not as ratios: a robust network's perturbations may be as sparse as pictures, or sparser.
    share = share.assign(fall=share["clean"] - FALL * share["robust"], beyond=share["control"] - FALL * share["robust"])
    share, unit = share.reset_index(), math.sqrt(2) / (NOISE - base.max())
    of_one, of_two = spread_in(own, "haar", unit), spread_in(own, "haar", math.hypot(1, FALL) * unit)
    premises = [
        every(share, "clean", at_least, 0.5, cells=["net"], name="density of clean perturbations", spread=of_one)
    ]
    checks: list[Check] = [
        every(share, "fall", at_least, 0.0, cells=["net"], name=f"density, clean - {FALL} × robust", spread=of_two),
        every(share, "beyond", at_least, 0.0, cells=["net"], name=f"density, control - {FALL} × robust", spread=of_two),
        *_sparser(tables[LASSO]),
    ]
    lacks = lacks_of(tables) + ([] if len(checks) > 2 else ["the Lasso of perturbations at 4.05 %"])
    told = [f"{name} {span(share[name].round(3))}" for name in ("clean", "control", "robust")]
    measured = (
        f"share between pictures and noise: {', '.join(told)}; spread {', '.join(words)}; pictures "
        f"{span(base.round(3))}, noise {NOISE:.3f}"
    )
    return Finding(float(share["fall"].min()), measured, scale_of(tables), checks, premises, lacks=lacks)


def _sparser(t: pd.DataFrame) -> list[Check]:
    """For each network, the check that robust features reconstruct its perturbations with the smaller error."""
    found = []
    for net, rows in t[t["features"] == "robust"].groupby("net", sort=False):
        reached = rows[rows["sparsity"] > 0].groupby("target")["sparsity"].agg(["min", "max"])
        if not ((reached["min"] <= SPARSITY) & (reached["max"] >= SPARSITY)).all():
            continue
        _, at = curves(rows, np.array([SPARSITY]))
        clean, robust = (float(at["robust", f"{name}_delta"][0]) for name in ("clean", "robust"))
        spread = _paired(rows, "robust", "clean_delta") / robust
        found.append(at_least(f"{net}: error, clean_delta / robust_delta", clean / robust, 1.0, spread, rows))
    return found
