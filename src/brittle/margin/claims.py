"""The claims of "Gradient Methods Provably Converge to Non-Robust Networks" (VYS) on its networks: M6–M10, M16, M17.

Those that are theorems are in theory_claims, what the paper leaves open in questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from brittle.margin.theory_claims import NEVER, finite, sizes
from brittle.verdicts import (
    VYS,
    Check,
    Finding,
    Tables,
    at_least,
    at_most,
    every,
    exactly,
    not_run,
    of_mean,
    seeds,
    slopes,
    span,
    within,
)

HEADLINE = "plots/margin_seeds.csv"  # what `dvc exp run -S d=500` changes
MINIBATCH = "plots/minibatch.csv"  # one cell by the paper's SGD where its batches are mini-batches
DS = tuple(range(100, 1001, 100))  # the paper's grid
ALPHAS = (0.5, 0.8, 1.0, 1.2, 1.5)
WIDTHS = (100, 500, 1000, 2000, 4000, 8000)


def absent(t: pd.DataFrame, axis: str, groups: Iterable[float], name: str) -> list[str]:
    """The cells of the paper's grid that the table has not, in words: "α = 1.2, 1.5: d 400–1000"."""
    there = set(t[[axis, "d"]].itertuples(index=False, name=None))
    missing: dict[str, list[str]] = {}
    for value in groups:
        ds = [d for d in DS if (value, d) not in there]
        if ds:
            missing.setdefault(_ranges(ds), []).append(f"{value:g}")
    return [f"{name} = {', '.join(values)}: d {ds}" for ds, values in missing.items()]


def by_mini_batches(tables: Tables, column: str, name: str) -> tuple[str, list[str]]:
    """A cell that was trained in the paper's mini-batches, beside the same by full batches; and what is missing.

    Above 5000 samples the paper's batches are mini-batches; those of the grid are full.
    """
    t = tables[MINIBATCH] if MINIBATCH in tables else pd.DataFrame(columns=["m"])
    lacks = [] if (t["m"] > 5000).any() else ["mini-batches of 5000, d = 300, α = 1.5"]
    if t.empty:
        return "", lacks
    means = t.groupby("method")[column].mean()
    cell = f"d = {span(t['d'])}, m = {span(t['m'])}, {seeds(t)}"
    both = f"{means['protocol']:.3g} by mini-batches of {t['batch'].min():g}, {means['flow']:.3g} by full ones"
    return f"; {name} {both} ({cell})", lacks


def _ranges(ds: list[int]) -> str:
    """Dimensions of the grid, consecutive ones as a range."""
    parts: list[list[int]] = []
    for d in ds:
        if parts and d - parts[-1][-1] == 100:
            parts[-1].append(d)
        else:
            parts.append([d])
    return ", ".join(f"{part[0]}–{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)


@VYS.claim(
    "M6",
    source="Fig 1(a)",
    says="one vector much smaller than √d flips every margin sample",
    paper="far below √d for every d and m; Thm 4.1: O(√(d/m)) up to logarithms",
    rule="along every α the slope of log c in log d is ≤ 0.4, so that c/√d falls, and c/√d ≤ ½ at the largest d; c/‖x‖ "
    "≤ ½ in the headline run",
    reads=f"plots/sweep.csv {HEADLINE} {MINIBATCH}",
)
def m6(tables: Tables) -> Finding:
    t = tables["plots/sweep.csv"]
    t = t.assign(ratio=t["c"] / t["sqrt_d"])
    needs = [f"α = {a:g}, two values of d" for a in ALPHAS if t.loc[t["alpha"] == a, "d"].nunique() < 2]
    ratio = t["ratio"]
    worst = t.loc[ratio.idxmax()]
    measured = f"c/√d {ratio.median():.2f} in the median, {ratio.max():.2f} at most (α = {worst['alpha']:g}, "
    measured += f"d = {worst['d']:g})"
    checks = [exactly(NEVER, finite(t["c"]))]
    if checks[0].holds and not needs:
        rates = {alpha: slopes(rows, "d", "c") for alpha, rows in t.groupby("alpha")}
        measured += f"; slopes {', '.join(f'{rate:.2f} (α = {a:g})' for a, (rate, _) in rates.items())}"
        ends = t[t["d"] == t.groupby("alpha")["d"].transform("max")]
        checks += [
            at_most(f"slope of log c in log d, α = {a:g}", rate, 0.4, spread, t[t["alpha"] == a])
            for a, (rate, spread) in rates.items()
        ]
        checks.append(every(ends, "ratio", at_most, 0.5, cells=["alpha"], name="c/√d at the largest d"))
        measured += f"; at the largest d {ends['ratio'].max():.2f} at most"
    if HEADLINE in tables:
        own = tables[HEADLINE]
        checks.append(every(own, "c_over_norm", at_most, 0.5, cells=["d", "m"], name="c/‖x‖ of the headline run"))
        measured += (
            f"; headline run (d = {span(own['d'])}, m = {span(own['m'])}) {own['c_over_norm'].max():.2f} at most"
        )
    words, lacks = by_mini_batches(tables, "c", "c")
    lacks = [*absent(t, "alpha", ALPHAS, "α"), *lacks]
    return Finding(float(ratio.max()), measured + words, _grid(t), checks, needs=needs, lacks=lacks)


def _grid(t: pd.DataFrame) -> str:
    alphas = ", ".join(f"{alpha:g}" for alpha in sorted(t["alpha"].unique()))
    return f"d {span(t['d'])}, α {alphas}, width {span(t['width'])}, {seeds(t)}"


@VYS.claim(
    "M7",
    source="Fig 2",
    says="nearly all samples are on the margin",
    paper="all for α = 0.5; ≥ 92 % otherwise",
    rule="the same, for the mean of every cell from d = 100 on, where the figure begins",
    reads=f"plots/sweep.csv {MINIBATCH}",
)
def m7(tables: Tables) -> Finding:
    every_d = tables["plots/sweep.csv"]
    t = every_d[every_d["d"] >= DS[0]]  # §6: "d ∈ {100, 200, …, 1000}"; the 92 % are of these
    needs = [f"α = {a:g}, d ≥ {DS[0]}" for a in ALPHAS if not (t["alpha"] == a).any()]
    mean = t.groupby(["alpha", "d"], as_index=False)["on_margin"].mean()
    few, many = mean[mean["alpha"] == 0.5], mean[mean["alpha"] != 0.5]
    if few.empty or many.empty:
        return not_run(*needs, scale=_grid(every_d))
    checks = [
        _worst_cell(t, few, 1.0, "share on the margin at α = 0.5"),
        _worst_cell(t, many, 0.92, "share on the margin at other α"),
    ]
    worst = many.loc[many["on_margin"].idxmin()]
    least = f"{100 * worst['on_margin']:.4g} % at least (α = {worst['alpha']:g}, d = {worst['d']:g})"
    words, lacks = by_mini_batches(tables, "on_margin", "share")
    measured = f"α = 0.5: {100 * few['on_margin'].min():.4g} % at least; otherwise {least}{words}"
    small = every_d[every_d["d"] < DS[0]].groupby(["alpha", "d"])["on_margin"].mean()
    if len(small):
        measured += f"; below d = {DS[0]}, not judged, {100 * small.min():.4g} % at least"
    lacks = [*absent(t, "alpha", ALPHAS, "α"), *lacks]
    return Finding(float(worst["on_margin"]), measured, _grid(t), checks, needs=needs, lacks=lacks)


def _worst_cell(t: pd.DataFrame, means: pd.DataFrame, bound: float, name: str) -> Check:
    row = means.loc[means["on_margin"].idxmin()]
    here = t[(t["alpha"] == row["alpha"]) & (t["d"] == row["d"])]
    spread = of_mean(here["on_margin"])
    return at_least(f"{name}, d = {row['d']:g}", row["on_margin"], bound, spread, here)


@VYS.claim(
    "M8",
    source="Fig 1(b)",
    says="the width does not matter",
    paper='"almost the same, regardless of the width"',
    rule="(largest - smallest)/mean of c over the widths ≤ 10 % at every d",
    reads="plots/widths.csv",
)
def m8(tables: Tables) -> Finding:
    t = tables["plots/widths.csv"]
    scale = f"d {span(t['d'])}, m = d, width {span(t['width'])}, {seeds(t)}"
    if t["width"].nunique() < 2:
        return not_run("a second width", scale=scale)
    if not finite(t["c"]):
        return Finding(math.inf, "", scale, [exactly(NEVER, False, t[~np.isfinite(t["c"])])])
    there = t.groupby("d")["width"].nunique()
    t = t[t["d"].isin(there[there > 1].index)]
    spread = _over_widths(t.groupby(["d", "width"])["c"].mean())
    each = _over_widths(t.groupby(["seed", "d", "width"])["c"].mean())
    checks = [
        at_most(f"spread of c over the widths, d = {d:g}", value, 0.1, of_mean(each.xs(d, level="d")), t[t["d"] == d])
        for d, value in spread.items()
    ]
    measured = f"{100 * spread.max():.3g} % at d = {spread.idxmax():g}"
    return Finding(float(spread.max()), measured, scale, checks, lacks=absent(t, "width", WIDTHS, "width"))


def _over_widths(c: pd.Series) -> pd.Series:
    """(largest - smallest)/mean of c over the widths."""
    c = c.unstack("width")
    return (c.max(axis=1) - c.min(axis=1)) / c.mean(axis=1)


@VYS.claim(
    "M9",
    source="§6",
    says="logistic loss and Gaussian data give similar results",
    paper='"similar results"',
    rule="c/‖x‖ and the margin's share within 10 % of exponential loss and sphere, for the logistic loss and for "
    "Gaussian data of norm √d; for Gaussian data of variance 1/d c/‖x‖ ≤ 1.1 × the sphere's",
    reads="plots/variants.csv",
)
def m9(tables: Tables) -> Finding:
    t = tables["plots/variants.csv"]
    if not finite(t["c_over_norm"]):
        return Finding(math.inf, "", sizes(t), [exactly(NEVER, False, t[~np.isfinite(t["c_over_norm"])])])
    long = t["norm"] > 0.5 * np.sqrt(t["d"])  # of norm √d, or about 1
    exponential, gaussian = t["loss"] == "exponential", t["world"] == "gaussian"
    base = t[(t["world"] == "sphere") & exponential & long].set_index("seed")
    control = t[(t["world"] == "sphere") & ~long]  # tells whether the norm or the Gaussian makes the difference
    parts = {
        "logistic loss": (t[(t["world"] == "sphere") & (t["loss"] == "logistic")], True),
        "Gaussian data of norm √d": (t[gaussian & exponential & long], True),
        "Gaussian data of variance 1/d": (t[gaussian & exponential & ~long], False),
    }
    needs = [name for name, (rows, _) in parts.items() if rows.empty]
    checks, words = [], []
    for name, (rows, similar) in ((name, part) for name, part in parts.items() if len(part[0])):
        mean, spread, said = _relative(rows, base)
        words.append(f"{name}: {said}")
        c = f"c/‖x‖, {name} against the sphere's"
        if similar:
            checks.append(within(c, mean["c_over_norm"], 0.9, 1.1, spread["c_over_norm"], rows))
            label = f"share on the margin, {name} against the sphere's"
            checks.append(within(label, mean["on_margin"], 0.9, 1.1, spread["on_margin"], rows))
        else:
            checks.append(at_most(c, mean["c_over_norm"], 1.1, spread["c_over_norm"], rows))
    if len(control):
        words.append(f"the control, sphere of radius 1: {_relative(control, base)[2]}")
    worst = max((abs(check.value - 1) for check in checks), default=math.nan)
    lacks = [] if len(control) else ["the control: sphere of radius 1"]
    return Finding(worst, "; ".join(words), sizes(t), checks, needs=needs, lacks=lacks)


def _relative(rows: pd.DataFrame, base: pd.DataFrame) -> tuple[pd.Series, dict[str, float], str]:
    """c/‖x‖ and the margin's share relative to the base's, seed by seed: means, their spreads, and in words."""
    ratio = rows.set_index("seed")[["c_over_norm", "on_margin"]] / base[["c_over_norm", "on_margin"]]
    mean = ratio.mean()
    said = f"c/‖x‖ {mean['c_over_norm']:.3f} ×, share {mean['on_margin']:.3f} ×"
    return mean, {column: of_mean(ratio[column].dropna()) for column in ratio}, said


@VYS.claim(
    "M10",
    source="§4",
    says="z needs no network: the same one flips every network trained on the data",
    paper="same z flips all of them",
    rule="≥ 95 % of the margin samples of every network flipped at ≤ 1.5 × its own c, on every dataset",
    reads="plots/transfer.csv",
)
def m10(tables: Tables) -> Finding:
    t = tables["plots/transfer.csv"]
    few = t.groupby("data")["on_margin"].mean()
    scale = f"{len(t)} networks on {len(few)} datasets: width {span(t['width'])}, {t['loss'].nunique()} losses, "
    scale += f"{seeds(t, 'init')}"
    cells = ["data", "width", "loss"]
    checks = [
        exactly(NEVER, finite(t["own_c"])),
        every(t, "flipped", at_least, 0.95, cells=cells, name="share flipped at 1.5 × its own c"),
    ]
    flipped, ratio = float(t["flipped"].min()), float((t["shared_c"] / t["own_c"]).max())
    measured = f"{100 * flipped:.4g} % at least; all of them at {ratio:.3f} × its own c at most; on the margin: "
    measured += ", ".join(f"{100 * share:.3g} % ({name})" for name, share in few.items())
    lacks = [] if len(few) >= 3 else [f"{3 - len(few)} more datasets"]
    lacks += [] if few.min() < 0.9 else ["a dataset with < 90 % on the margin"]
    return Finding(flipped, measured, scale, checks, lacks=lacks)


@VYS.claim(
    "M16",
    source="Example 1",
    says="for √d random samples the size of z grows like d^¼",
    paper="Õ(d^¼) for m of order √d up to logarithms",
    rule="slope of log c in log d at m = √d in [0.15, 0.35]",
    reads="plots/sweep.csv",
)
def m16(tables: Tables) -> Finding:
    t = tables["plots/sweep.csv"]
    t = t[t["alpha"] == 0.5]
    if t["d"].nunique() < 2:
        return not_run("α = 0.5, two values of d")
    if not finite(t["c"]):
        return Finding(math.inf, "", _grid(t), [exactly(NEVER, False, t[~np.isfinite(t["c"])])])
    rate, spread = slopes(t, "d", "c")
    measured = f"slope {rate:.3f} ± {spread:.2g}; c {span(t.groupby('d')['c'].mean())}"
    lacks = absent(t, "alpha", [0.5], "α")
    return Finding(
        rate, measured, _grid(t), [within("slope of log c in log d", rate, 0.15, 0.35, spread, t)], lacks=lacks
    )


@VYS.claim(
    "M17",
    source="title, Thm 3.1 and 4.1",
    says="trained networks are less robust than the network of Thm 3.1 on the same data, and ever less so",
    paper="robust networks exist (Thm 3.1); gradient flow converges to non-robust ones (Thm 4.1)",
    premise="Thm 3.1's network is robust on these data: every certified radius ≥ (1-c)/4·√d",
    rule="the attacked radius of the median sample is below the certified radius of Thm 3.1's network, and their ratio "
    "falls with d (slope of its logarithm < 0), for every α ≤ 1.2",
    reads="plots/title.csv",
)
def m17(tables: Tables) -> Finding:
    t = tables["plots/title.csv"]
    alphas = [a for a in ALPHAS if a <= 1.2]
    t = t[t["alpha"].isin(alphas)]
    keys = ["alpha", "d", "seed"]
    medians = t.groupby(keys)[["attacked", "certified"]].median().reset_index()
    medians = medians.assign(ratio=medians["attacked"] / medians["certified"])
    robust = t.assign(robust=t["certified"] / t["bound"])
    premises = [
        every(robust, "robust", at_least, 1.0, cells=["alpha", "d"], name="Thm 3.1's radius / its bound", spread=0.0)
    ]
    needs = [f"α = {a:g}, two values of d" for a in alphas if t.loc[t["alpha"] == a, "d"].nunique() < 2]
    name = "attacked radius of the median sample / Thm 3.1's certified radius"
    checks = [every(medians, "ratio", at_most, 1.0, cells=["alpha", "d"], name=name)]
    means = medians.groupby(["alpha", "d"])["ratio"].mean()
    words = [f"{', '.join(f'{r:.2f}' for r in means[a])} (α = {a:g})" for a in means.index.unique("alpha")]
    measured = f"attacked / Thm 3.1's certified radius, median sample: {'; '.join(words)}"
    if not needs and finite(medians["ratio"]):
        for a, rows in medians.groupby("alpha"):
            rate, spread = slopes(rows, "d", "ratio")
            measured += f"{'; slopes' if a == alphas[0] else ','} {rate:.2f}"
            checks.append(at_most(f"slope of the ratio's logarithm in log d, α = {a:g}", rate, 0.0, spread, rows))
    ds = ", ".join(f"{d:g}" for d in sorted(t["d"].unique()))
    scale = f"d {ds}, α {', '.join(f'{a:g}' for a in means.index.unique('alpha'))}, {seeds(t)}, "
    scale += f"up to {t['sample'].nunique()} samples of each"
    lacks = [f"d = {d}" for d in (50, 400) if d not in set(t["d"])]
    return Finding(float(means.max()), measured, scale, checks, premises, needs, lacks)
