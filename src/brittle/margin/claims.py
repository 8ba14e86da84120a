"""The claims of "Gradient Methods Provably Converge to Non-Robust Networks" (VYS), M1–M12, and ours, M13–M15."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from brittle.verdicts import VYS, Finding, Tables, seeds, slope, span

HEADLINE = "plots/margin_seeds.csv"  # what `dvc exp run -S d=500` changes
PAPER = "docs/paper-scale/grid.csv"  # Figures 1 and 2 at the paper's scale, as far as they were run


NEVER = "z never flips all margin samples of some network"


def _finite(c: pd.Series) -> bool:
    return bool(np.isfinite(c).all())


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
    ratio = float((t["certified"] / t["bound"]).min())
    right = bool((t["smallest_output"] > 0.999).all() and (t["beaten"] == 0).all())
    measured = (
        f"certified {ratio:.3f} × the bound at least; {t['beaten'].sum()} samples attacked below their certificate"
    )
    return Finding(right and ratio >= 1, ratio, measured, f"d {span(t['d'])}, m {span(t['m'])}, {seeds(t)}")


@VYS.claim(
    "M2",
    source="Lemma 3.1",
    says="random points are nearly orthogonal",
    paper="|⟨x,x'⟩| ≤ ½ and ≤ log d/√d w.h.p.",
    rule="both hold for ≥ 95 % of the draws in every cell with d ≥ 100",
    reads="plots/theory_lemma.csv",
)
def m2(tables: Tables) -> Finding:
    t = tables["plots/theory_lemma.csv"]
    t = t[t["d"] >= 100]
    if t.empty:
        return Finding(None, math.nan, "no d ≥ 100", "")
    half, log = t["largest"] <= t["half"], t["largest"] <= t["log"]
    share = (half & log).groupby([t["d"], t["m"]]).mean()
    (d, m), worst = share.idxmin(), float(share.min())
    measured = (
        f"≤ ½ in {100 * half.mean():.4g} % of all draws; ≤ log d/√d in {100 * worst:.3g} % at worst (d = {d:g}, "
        f"m = {m:g}), in {(share >= 0.95).sum()} of {len(share)} cells ≥ 95 %"
    )
    scale = f"d {span(t['d'])}, m {span(t['m'])}, {t['draw'].nunique()} draws a cell"
    return Finding(worst >= 0.95, worst, measured, scale)


@VYS.claim(
    "M3",
    source="Thm 4.1",
    says="every KKT point is flipped by z of the proof's own length",
    paper="y N(x - y z) ≤ -1, ‖z‖ ≤ 18√2·√(d/(c²m))",
    rule="where the theorem applies, the proof's z takes all samples to -1 or beyond, and its norm is within the bound",
    reads="plots/regime.csv",
)
def m3(tables: Tables) -> Finding:
    t = tables["plots/regime.csv"]
    t = t[t["applies"] == 1]
    if t.empty:
        return Finding(None, math.nan, "the theorem applies to none of the data", "")
    after, within = float(t["largest_after"].max()), float((t["z_norm"] / t["z_bound"]).max())
    measured = f"all outputs ≤ {after:.3g}; ‖z‖ ≤ {within:.2f} × the bound; KKT residual ≤ {t['kkt'].max():.2g}"
    scale = f"{len(t)} networks, d {span(t['d'])}, m {span(t['m'])}, {' and '.join(t['world'].unique())} data"
    return Finding(after <= -1 and within <= 1, after, measured, scale)


@VYS.claim(
    "M4",
    source="§5.1",
    says="orthogonal data: a biased network survives √d/2, its bias-free twin falls to 2√2",
    paper="√d/2; N'(x+z) = -1, ‖z‖ = 2√2",
    rule="exact to 1e-5",
    reads="plots/theory_example.csv",
)
def m4(tables: Tables) -> Finding:
    t = tables["plots/theory_example.csv"]
    error = float(t[["certified_error", "z_norm_error", "twin_error"]].max().max())
    measured = f"certified √d/2, ‖z‖ = 2√2 and N' = -1 up to {error:.1g}"
    return Finding(error <= 1e-5, error, measured, f"d {span(t['d'])}")


@VYS.claim(
    "M5",
    source="Thm 2.1",
    says="training goes to a KKT point",
    paper="residual → 0",
    rule="the residual with σ' free at the kinks falls from level to level and ends ≤ 0.1, for every scale and seed",
    reads="plots/kkt.csv",
)
def m5(tables: Tables) -> Finding:
    t = tables["plots/kkt.csv"]
    free = t.pivot(index="log10_loss", columns=["init_scale", "seed"], values="free").sort_index(ascending=False)
    if len(free) < 2:
        return Finding(None, math.nan, "a fall needs two levels of the loss", "")
    falls, end, last = bool((free.diff().iloc[1:] < 0).all().all()), float(free.iloc[-1].max()), t["log10_loss"].min()
    stop, slackness = t[t["log10_loss"] == -30], t[t["log10_loss"] == last]["slackness"].max()
    measured = f"{end:.3f} at worst at loss 1e{last:g}, slackness {slackness:.1g}"
    if len(stop):
        measured += f"; where the paper stops, at 1e-30, {span(stop['free'])} ({span(stop['fixed'])} with σ' fixed)"
    sizes = f"d = {span(t['d'])}, m = {span(t['m'])}, width {span(t['width'])}, {seeds(t)}"
    scale = f"{sizes}, kink {span(t['kink'])}"
    return Finding(falls and end <= 0.1, end, measured, scale)


@VYS.claim(
    "M6",
    source="Fig 1(a)",
    says="one vector much smaller than √d flips every margin sample",
    paper="far below √d everywhere",
    rule="c < √d in every cell and in the headline run (there: below the norm of the data), for every seed",
    reads=f"plots/sweep.csv {HEADLINE} {PAPER}",
)
def m6(tables: Tables) -> Finding:
    t, headline = tables["plots/sweep.csv"], tables[HEADLINE]
    ratio, own = t["c"] / t["sqrt_d"], headline["c_over_norm"]
    worst = t.loc[ratio.idxmax()]
    where = f"(α = {worst['alpha']:g}, d = {worst['d']:g})"
    paper = _paper(tables, "1a")
    at_scale = f"{(paper['c'] / paper['sqrt_d']).max():.2f} at most"
    measured = f"c/√d {ratio.median():.2f} in the median, {ratio.max():.2f} at most {where}; {_scale(paper)} {at_scale}"
    measured += f"; headline run (d = {span(headline['d'])}, m = {span(headline['m'])}) {own.max():.2f} at most"
    return Finding(bool((ratio < 1).all() and (own < 1).all()), float(ratio.max()), measured, _grid(t))


def _grid(t: pd.DataFrame) -> str:
    alphas = ", ".join(f"{alpha:g}" for alpha in sorted(t["alpha"].unique()))
    return f"d {span(t['d'])}, α {alphas}, width {span(t['width'])}, {seeds(t)}"


@VYS.claim(
    "M7",
    source="Fig 2",
    says="nearly all samples are on the margin",
    paper="all for α = 0.5; ≥ 92 % otherwise",
    rule="the same, for the mean of every cell",
    reads=f"plots/sweep.csv {PAPER}",
)
def m7(tables: Tables) -> Finding:
    t, paper = tables["plots/sweep.csv"], _paper(tables, "1a")
    (few, many), (paper_few, paper_many) = _shares(t), _shares(paper)
    if few.empty or many.empty:
        return Finding(None, math.nan, "α = 0.5 and others are needed", _grid(t))
    alpha, d = many.idxmin()
    least = f"{100 * many.min():.4g} % at least (α = {alpha:g}, d = {d:g})"
    at_scale = f"{100 * paper_few.min():.4g} % and {100 * paper_many.min():.4g} %"
    measured = f"α = 0.5: {100 * few.min():.4g} % at least; otherwise {least}; {_scale(paper)} {at_scale}"
    return Finding(bool(few.min() == 1 and many.min() >= 0.92), float(many.min()), measured, _grid(t))


def _shares(t: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """The mean share on the margin of every cell, for α = 0.5 and for the others."""
    share = t.groupby(["alpha", "d"])["on_margin"].mean()
    half = share.index.get_level_values("alpha") == 0.5
    return share[half], share[~half]


def _paper(tables: Tables, figure: str) -> pd.DataFrame:
    t = tables[PAPER]
    return t[t["figure"] == figure]


def _scale(paper: pd.DataFrame) -> str:
    cells = paper.groupby(["d", "alpha", "width"]).ngroups
    return f"at the paper's scale ({cells} cells, d ≤ {paper['d'].max():g})"


@VYS.claim(
    "M8",
    source="Fig 1(b)",
    says="the width does not matter",
    paper='"almost the same, regardless of the width"',
    rule="(largest - smallest)/mean of c over the widths ≤ 10 % at every d",
    reads=f"plots/widths.csv {PAPER}",
)
def m8(tables: Tables) -> Finding:
    t = tables["plots/widths.csv"]
    scale = f"d {span(t['d'])}, m = d, width {span(t['width'])}, {seeds(t)}"
    if t["width"].nunique() < 2:
        return Finding(None, math.nan, "a spread needs two widths", scale)
    if not _finite(t["c"]):
        return Finding(False, math.inf, NEVER, scale)
    spread, paper = _spread(t), _paper(tables, "1b")
    at_scale = f"{100 * _spread(paper).max():.3g} % at most"
    measured = f"{100 * spread.max():.3g} % at d = {spread.idxmax():g}; {_scale(paper)} {at_scale}"
    return Finding(bool((spread <= 0.1).all()), float(spread.max()), measured, scale)


def _spread(t: pd.DataFrame) -> pd.Series:
    """(largest - smallest)/mean of c over the widths, at every d."""
    c = t.groupby(["d", "width"])["c"].mean().unstack()
    return (c.max(axis=1) - c.min(axis=1)) / c.mean(axis=1)


@VYS.claim(
    "M9",
    source="§6",
    says="logistic loss and Gaussian data give similar results",
    paper='"similar results"',
    rule="c/‖x‖ and the margin's share within 10 % of exponential loss and sphere",
    reads="plots/variants.csv",
)
def m9(tables: Tables) -> Finding:
    t = tables["plots/variants.csv"]
    if not _finite(t["c_over_norm"]):
        return Finding(False, math.inf, NEVER, _one(t))
    means = t.groupby(["world", "loss"])[["c_over_norm", "on_margin"]].mean()
    base = means.loc["sphere", "exponential"]
    away = {name: (means.loc[key] / base - 1).abs() for name, key in _VARIANTS.items()}
    worst = float(max(each.max() for each in away.values()))
    measured = "; ".join(
        f"{name}: c/‖x‖ {100 * each['c_over_norm']:.2g} % away, share {100 * each['on_margin']:.2g} %"
        for name, each in away.items()
    )
    return Finding(worst <= 0.1, worst, measured, _one(t))


_VARIANTS = {"logistic": ("sphere", "logistic"), "Gaussian": ("gaussian", "exponential")}


def _one(t: pd.DataFrame) -> str:
    return f"d = {span(t['d'])}, m = {span(t['m'])}, {seeds(t)}"


@VYS.claim(
    "M10",
    source="§4",
    says="z needs no network: the same one flips every network trained on the data",
    paper="same z flips all of them",
    rule="≥ 95 % of the margin samples of every network flipped at ≤ 1.5 × its own c",
    reads="plots/transfer.csv",
)
def m10(tables: Tables) -> Finding:
    t = tables["plots/transfer.csv"]
    scale = f"{len(t)} networks: width {span(t['width'])}, {t['loss'].nunique()} losses, {seeds(t, 'init')}"
    if not _finite(t["own_c"]):
        return Finding(False, math.inf, NEVER, scale)
    flipped, ratio = float(t["flipped"].min()), float((t["shared_c"] / t["own_c"]).max())
    measured = f"{100 * flipped:.4g} % at least; all of them at {ratio:.3f} × its own c at most"
    return Finding(flipped >= 0.95, flipped, measured, scale)


@VYS.claim(
    "M11",
    source="Cor 4.1",
    says="clustered data: z of the margin set flips the margin set",
    paper="margin samples flip",
    rule="the margin set is smaller than the data, and c < √d",
    reads="plots/variants.csv",
)
def m11(tables: Tables) -> Finding:
    t = tables["plots/variants.csv"]
    t = t[t["world"] == "clusters"]
    ratio = float((t["c"] / np.sqrt(t["d"])).max())
    smaller = bool((t["margin_size"] < t["m"]).all())
    measured = f"{t['margin_size'].mean():.3g} of {t['m'].mean():g} samples on the margin; c/√d ≤ {ratio:.2f}"
    return Finding(smaller and ratio < 1, ratio, measured, _one(t))


@VYS.claim(
    "M12",
    source="Thm 4.1",
    says="the size of z falls as √(d/m)",
    paper="½ up to logs",
    rule="slope of log c against log(d/m) on orthogonal data, where the theorem applies, in [0.3, 0.7]",
    reads="plots/regime.csv",
)
def m12(tables: Tables) -> Finding:
    t = tables["plots/regime.csv"]
    t = t[(t["world"] == "orthogonal") & (t["applies"] == 1)]
    ratio = t["d"] / t["m"]
    if ratio.nunique() < 2:
        return Finding(None, math.nan, "a slope needs two values of d/m", "")
    scale = f"{len(t)} networks, d {span(t['d'])}, d/m {span(ratio)}"
    if not _finite(t["c"]):
        return Finding(False, math.inf, NEVER, scale)
    rate, factor = slope(ratio, t["c"]), t["c"] / np.sqrt(ratio)
    measured = f"slope {rate:.3f}; c/√(d/m) {factor.min():.3f}–{factor.max():.3f}"
    return Finding(0.3 <= rate <= 0.7, rate, measured, scale)


@VYS.claim(
    "M13",
    source="(beyond)",
    says="every sample's radius lies in a bracket [certified, attacked]",
    paper="not in the paper",
    rule="certified ≤ attacked for every sample of the trained and of Thm 3.1's network",
    reads="plots/certify.csv",
)
def m13(tables: Tables) -> Finding:
    t = tables["plots/certify.csv"]
    ratio = (t["certified"] / t["attacked"])[t["network"] == "trained"]
    medians = t.groupby("network")[["certified", "attacked"]].median()
    bracket = {name: f"[{row['certified']:.3f}, {row['attacked']:.3f}]" for name, row in medians.iterrows()}
    measured = (
        f"median bracket {bracket['trained']} trained, {bracket['thm31']} Thm 3.1; certified/attacked "
        f"{ratio.median():.4f} in the median, {ratio.min():.4f} at worst; {t['beaten'].sum()} certificates beaten"
    )
    holds = bool((t["beaten"] == 0).all() and (t["certified"] <= t["attacked"]).all())
    return Finding(holds, float(ratio.median()), measured, f"{len(t)} samples, d = {span(t['d'])}, {seeds(t)}")


@VYS.claim(
    "M14",
    source="§7 (open)",
    says="do other optimisers end in networks as brittle?",
    paper="open question",
    rule="the phenomenon persists: c < √d for every optimiser and seed",
    reads="plots/optimisers.csv",
)
def m14(tables: Tables) -> Finding:
    t = tables["plots/optimisers.csv"]
    return _optimisers(t[t["depth"] == 2])


@VYS.claim(
    "M15",
    source="§7 (open)",
    says="are deeper networks as brittle?",
    paper="open question",
    rule="the phenomenon persists: c < √d for every optimiser and seed",
    reads="plots/optimisers.csv",
)
def m15(tables: Tables) -> Finding:
    t = tables["plots/optimisers.csv"]
    return _optimisers(t[t["depth"] > 2])


def _optimisers(t: pd.DataFrame) -> Finding:
    ratio = t["c"] / np.sqrt(t["d"])
    by_rule = t.groupby("rule", sort=False)[["c", "on_margin", "kkt"]].mean()
    measured = "c (share on the margin, KKT residual): " + ", ".join(
        f"{rule} {row['c']:.2f} ({row['on_margin']:.2f}{'' if math.isnan(row['kkt']) else f', {row.kkt:.2f}'})"
        for rule, row in by_rule.iterrows()
    )
    return Finding(bool((ratio < 1).all()), float(ratio.max()), measured, f"depth {span(t['depth'])}, {_one(t)}")
