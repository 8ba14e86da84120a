"""The claims of VYS that are theorems: M1–M5, M11 and M12."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from brittle.verdicts import (
    VYS,
    Finding,
    Tables,
    at_least,
    at_most,
    every,
    exactly,
    not_run,
    of_share,
    seeds,
    slopes,
    span,
    within,
)

EXACT = "plots/theory_kkt.csv"
WIDTHS, SCALES = (2, 10, 50, 200, 1000), (1.0, 0.1, 0.01)  # for the theorem's "any width, any initialisation"
NEVER = "z flips all margin samples of every network"


def finite(c: pd.Series) -> bool:
    return bool(np.isfinite(c).all())


def sizes(t: pd.DataFrame) -> str:
    return f"d = {span(t['d'])}, m = {span(t['m'])}, {seeds(t)}"


@VYS.claim(
    "M1",
    source="Thm 3.1",
    says="a robust network of width m exists",
    paper="radius > (1-c)/4·√d",
    rule="it labels every sample; every certified radius ≥ the bound; no attack beats a certificate",
    reads="plots/theory_robust.csv",
)
def m1(tables: Tables) -> Finding:
    t = tables["plots/theory_robust.csv"]
    t = t.assign(ratio=t["certified"] / t["bound"])
    cells = ["d", "m"]
    checks = [  # of proofs: another seed has its own bound and its own certificate
        every(t, "ratio", at_least, 1.0, cells=cells, name="certified radius / bound", spread=0.0),
        every(t, "smallest_output", at_least, 0.999, cells=cells, name="smallest y N(x)", spread=0.0),
        every(t, "beaten", at_most, 0.0, cells=cells, name="samples attacked below their certificate", spread=0.0),
    ]
    ratio = float(t["ratio"].min())
    measured = (
        f"certified {ratio:.3f} × the bound at least; {t['beaten'].sum():g} samples attacked below their certificate"
    )
    alphas = np.log(t["m"]) / np.log(t["d"])
    lacks = [f"α = {a:g}" for a in (0.5, 1.0, 1.5) if not np.isclose(alphas, a, atol=0.03).any()]
    lacks += [] if t["d"].max() >= 400 else ["d = 400"]
    return Finding(ratio, measured, f"d {span(t['d'])}, m {span(t['m'])}, {seeds(t)}", checks, lacks=lacks)


@VYS.claim(
    "M2",
    source="Lemma 3.1",
    says="random points are nearly orthogonal",
    paper="|⟨x,x'⟩| ≤ ½ with probability ≥ 1 - d^(2k+1) (¾)^((d-3)/2), ≤ log d/√d with ≥ 1 - d^(2k+1-ln(d)/4), m = d^k",
    rule="in every cell the bound holds at least as often as the lemma promises (a negative promise is 0), for natural "
    "logarithm and log₂",
    reads="plots/theory_lemma.csv",
)
def m2(tables: Tables) -> Finding:
    t = tables["plots/theory_lemma.csv"]
    checks, words = [], []
    bounds = {"½": t["half"], "ln d/√d": t["log"], "log₂ d/√d": t["log"] / math.log(2)}
    for name, bound in bounds.items():
        cells = t.assign(kept=t["largest"] <= bound).groupby(["d", "m"])["kept"].agg(["mean", "size"]).reset_index()
        cells["promised"] = [_promised(d, m, name) for d, m in zip(cells["d"], cells["m"], strict=True)]
        # Where no draw is an exception, no promise is broken, however many more are drawn.
        sure = (cells["mean"] == 1) | (cells["promised"] == 0)
        cells["spread"] = [
            0.0 if safe else of_share(p, n) for safe, p, n in zip(sure, cells["mean"], cells["size"], strict=True)
        ]
        worst = (cells["mean"] - cells["promised"]).idxmin()
        row = cells.loc[worst]
        label = f"share of draws within {name}, d = {row['d']:g}, m = {row['m']:g}"
        checks.append(at_least(label, row["mean"], row["promised"], row["spread"], cells.loc[[worst]]))
        says = cells["promised"] > 0
        words.append(
            f"≤ {name} in {100 * cells['mean'].min():.3g} % at worst, {100 * cells.loc[says, 'mean'].min():.3g} % "
            f"where the lemma promises anything: {_where(cells, says)}"
        )
    scale = f"d {span(t['d'])}, m {span(t['m'])}, {t['draw'].nunique()} draws a cell"
    return Finding(min(check.room for check in checks), "; ".join(words), scale, checks)


def _where(cells: pd.DataFrame, chosen: pd.Series) -> str:
    """The chosen cells in words, or the others where those are fewer: "at (d, m) = (200, 14) alone"."""
    few = cells[chosen] if chosen.sum() <= len(cells) / 2 else cells[~chosen]
    pairs = ", ".join(f"({d:g}, {m:g})" for d, m in zip(few["d"], few["m"], strict=True))
    if chosen.all() or not chosen.any():
        return "everywhere" if chosen.all() else "nowhere, because its bound is negative"
    if chosen.sum() <= len(cells) / 2:
        return f"at (d, m) = {pairs} alone; elsewhere its bound is negative"
    return f"everywhere but at (d, m) = {pairs}, where its bound is negative"


def _promised(d: float, m: float, bound: str) -> float:
    """The probability of Lemma 3.1 for m = d^k points."""
    k = math.log(m) / math.log(d)
    fails = (2 * k + 1) * math.log(d) + (d - 3) / 2 * math.log(0.75)
    if bound != "½":
        fails = (2 * k + 1 - math.log(d) / 4) * math.log(d)
    return max(0.0, 1 - math.exp(min(fails, 0.0)))


@VYS.claim(
    "M3",
    source="Thm 4.1",
    says="every KKT point is flipped by z of the proof's own length",
    paper="y N(x - y z) ≤ -1, ‖z‖ ≤ 18√2·√(d/(c²m)), for every width and initialisation",
    premise="the theorem applies, network by network: m ≤ (d + 1)/(3(max |⟨x_i, x_j⟩| + 1)), and the loss goes to 0 "
    "(from initial weights at which every sample is seen by a neuron of its label)",
    rule="the proof's z takes all samples to -1 or beyond, and its norm is within the bound",
    reads="plots/regime.csv",
)
def m3(tables: Tables) -> Finding:
    t = tables["plots/regime.csv"]
    found = _by_proof(t, ["world", "d", "m", "width", "init_scale"])
    there = t[t["applies"] == 1]
    lacks = [f"{world} data" for world in ("orthogonal", "sphere") if world not in set(there["world"])]
    lacks += [] if ((there["world"] == "sphere") & (there["d"] >= 10_000)).any() else ["sphere, d = 10000, m = 8"]
    lacks += [f"width {k}" for k in WIDTHS if k not in set(there["width"])]
    lacks += [f"initial weights × {s:g}" for s in SCALES if not np.isclose(there["init_scale"], s).any()]
    scale = f"{found.scale}, width {span(t['width'])}, initial weights × {span(t['init_scale'])}"
    measured = f"{found.measured}; {len(t) - len(there)} of {len(t)} networks' data do not meet the assumption"
    return Finding(found.value, measured, scale, found.checks, found.premises, lacks=lacks)


def _by_proof(t: pd.DataFrame, cells: list[str]) -> Finding:
    """Thm 4.1's z on networks to whose margin set the theorem applies."""
    applies = t[t["applies"] == 1]
    premises = [exactly("the theorem applies to some of the data", len(applies) > 0)]
    scale = f"{len(applies)} networks, d {span(t['d'])}, m {span(t['m'])}, {' and '.join(t['world'].unique())} data"
    if applies.empty:
        return Finding(math.nan, "the theorem applies to none of the data", scale, premises=premises)
    t = applies.assign(within=applies["z_norm"] / applies["z_bound"])
    checks = [
        every(t, "largest_after", at_most, -1.0, cells=cells, name="largest y N(x - y z)"),
        every(t, "within", at_most, 1.0, cells=cells, name="‖z‖ / the bound"),
    ]
    measured = f"all outputs ≤ {t['largest_after'].max():.3g}; ‖z‖ ≤ {t['within'].max():.2f} × the bound"
    if "kkt" in t:
        measured += f"; KKT residual ≤ {t['kkt'].max():.2g}"
    return Finding(float(t["largest_after"].max()), measured, scale, checks, premises)


@VYS.claim(
    "M4",
    source="§5.1",
    says="orthogonal data: a biased network survives √d/2, its bias-free twin of larger margin falls to 2√2",
    paper="y N(x) = y N'(x) = 1; N survives √d/2; N'(x+z) = -1, ‖z‖ = 2√2; N' is better in margin maximisation",
    rule="all of it exact to 1e-5; the normalised margin of N' is the larger one",
    reads="plots/theory_example.csv",
)
def m4(tables: Tables) -> Finding:
    t = tables["plots/theory_example.csv"]
    t = t.assign(ratio=t["twin_margin"] / t["margin"])
    names = {
        "output_error": "y N(x) = 1 of both networks",
        "certified_error": "certified √d/2",
        "z_norm_error": "‖z‖ = 2√2",
        "twin_error": "N'(x + z) = -1",
    }
    checks = [
        every(t, column, at_most, 1e-5, cells=["d"], name=f"error of {name}", spread=0.0)
        for column, name in names.items()
    ]
    checks.append(exactly("the normalised margin of N' is larger", bool((t["ratio"] > 1).all()), t))
    error = float(t[list(names)].max().max())
    measured = f"margin 1, certified √d/2, ‖z‖ = 2√2 and N' = -1 up to {error:.1g}; "
    measured += f"the normalised margin of N' is {span(t['ratio'])} × that of N"
    return Finding(error, measured, f"d {span(t['d'])}", checks)


@VYS.claim(
    "M5",
    source="Thm 2.1",
    says="training goes to a KKT point",
    paper="residual → 0",
    rule="the residual with σ' free at the kinks falls from level to level of the loss and ends ≤ 0.1 at 1e-10000, for "
    "every scale and seed",
    reads="plots/kkt.csv",
)
def m5(tables: Tables) -> Finding:
    t = tables["plots/kkt.csv"]
    scale = f"d = {span(t['d'])}, m = {span(t['m'])}, width {span(t['width'])}, {seeds(t)}, kink {span(t['kink'])}"
    last = t["log10_loss"].min()
    if last > -10_000:
        return not_run("the loss 1e-10000", measured=f"{t['free'].min():.3f} at loss 1e{last:g}", scale=scale)
    t = t.sort_values("log10_loss", ascending=False)
    # Relative, because the residual itself falls by orders between the first levels and by percents between the last.
    before = t.groupby(["init_scale", "seed"])["free"].shift()
    fall = t.assign(fall=t["free"] / before).dropna(subset=["fall"])
    end, cells = t[t["log10_loss"] == last], ["init_scale", "log10_loss"]
    checks = [
        every(end, "free", at_most, 0.1, cells=cells, name=f"residual at 1e{last:g}"),
        every(fall, "fall", at_most, 1.0, cells=cells, name="residual / the one a level before"),
    ]
    measured = f"{end['free'].max():.3f} at worst at loss 1e{last:g}, slackness {end['slackness'].max():.1g}"
    stop = t[t["log10_loss"] == -30]
    if len(stop):
        measured += f"; where the paper stops, at 1e-30, {span(stop['free'])} ({span(stop['fixed'])} with σ' fixed)"
    return Finding(float(end["free"].max()), measured, scale, checks)


@VYS.claim(
    "M11",
    source="Cor 4.1",
    says="clustered data: z of the margin set flips the margin set",
    paper="y N(x - y z) ≤ -1 on the margin set, ‖z‖ = O(√(d/(c²m)))",
    premise="the corollary applies to the margin set: m ≤ (d + 1)/(3(max |⟨x_i, x_j⟩| + 1)) over it",
    rule="that of M3 on the margin set, which is smaller than the data",
    reads="plots/variants.csv",
)
def m11(tables: Tables) -> Finding:
    t = tables["plots/variants.csv"]
    t = t[t["world"] == "clusters"]
    if t.empty or "applies" not in t:
        return not_run("clustered data")
    found = _by_proof(t, ["world", "d", "m"])
    size = exactly("the margin set is smaller than the data", bool((t["margin_size"] < t["m"]).all()), t)
    ratio = float((t["c"] / np.sqrt(t["d"])).max())
    measured = f"{found.measured}; {t['margin_size'].mean():.3g} of {t['m'].mean():g} samples on the margin, c/√d ≤ "
    measured += f"{ratio:.2f}"
    checks = [*found.checks, size] if found.checks else []
    return Finding(found.value, measured, sizes(t), checks, found.premises)


@VYS.claim(
    "M12",
    source="Thm 4.1",
    says="the size of z falls as √(d/m)",
    paper="½ up to logs",
    rule="slope of log c against log(d/m) on orthogonal data, where the theorem applies, in [0.4, 0.6]; and the exact "
    "KKT point on balanced orthogonal data has c = √(d/m), both to 1e-9",
    reads=f"plots/regime.csv {EXACT}",
)
def m12(tables: Tables) -> Finding:
    t, exact = tables["plots/regime.csv"], tables[EXACT]
    t = t[(t["world"] == "orthogonal") & (t["applies"] == 1) & (t["law"] == 1)]
    t = t.assign(ratio=t["d"] / t["m"])
    if t["ratio"].nunique() < 2:
        return not_run("two values of d/m on orthogonal data")
    scale = f"{len(t)} networks, d {span(t['d'])}, d/m {span(t['ratio'])}"
    if not finite(t["c"]):
        return Finding(math.inf, "", scale, [exactly(NEVER, False, t[~np.isfinite(t["c"])])])
    (rate, spread), factor = slopes(t, "ratio", "c"), t["c"] / np.sqrt(t["ratio"])
    checks = [within("slope of log c in log(d/m)", rate, 0.4, 0.6, spread, t)]
    checks += [
        every(exact, column, at_most, 1e-9, cells=["d", "m"], name=name, spread=0.0)
        for column, name in (("residual", "KKT residual of the exact point"), ("c_error", "|c - √(d/m)| there"))
    ]
    measured = f"slope {rate:.3f}; c/√(d/m) {factor.min():.3f}–{factor.max():.3f}; at the exact KKT point "
    measured += f"(d {span(exact['d'])}, m {span(exact['m'])}) 1 up to {exact['c_error'].max():.1g}"
    return Finding(rate, measured, scale, checks)
