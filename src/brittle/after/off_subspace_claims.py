"""Data in a subspace, and how brittle networks are off it: A1–A4."""

from __future__ import annotations

import pandas as pd

from brittle.verdicts import (
    LATER,
    Check,
    Finding,
    Tables,
    at_least,
    every,
    not_run,
    seeds,
    slopes,
    span,
    spread_of,
)

TABLE = "plots/off_subspace.csv"
SOURCE = "Melamed, Yehudai, Vardi 2023 (arXiv 2303.00783)"
CELLS = ["codimension", "scale", "decay"]


def _scale(t: pd.DataFrame) -> str:
    sizes = f"d = {span(t['d'])}, ℓ = {span(t['codimension'])}, m = {span(t['m'])}, width {span(t['width'])}"
    return f"{sizes}, β = {span(t['scale'])}, λ = {span(t['decay'])}, {seeds(t)}"


def _plain(t: pd.DataFrame) -> pd.DataFrame:
    """Without weight decay, from the largest initial weights: one cell for each codimension."""
    return t[(t["decay"] == 0) & (t["scale"] == t["scale"].max())]


def _scales(t: pd.DataFrame) -> pd.DataFrame:
    """Without weight decay, at the codimension where the initial scale varies."""
    t = t[t["decay"] == 0]
    varied = t.groupby("codimension")["scale"].nunique().idxmax()
    return t[t["codimension"] == varied]


@LATER.question(
    "A1",
    source=SOURCE,
    says="does SGD move weights off the subspace of the data?",
    paper="not stated there with a number; it follows from the gradient (docs/after.md)",
    rule="Π⊥W after training is (1 - ηλ)^T Π⊥W before it: the rest, relative to Π⊥W before",
    reads=TABLE,
)
def a1(tables: Tables) -> Finding:
    t = tables[TABLE]
    words = f"what it does not explain is {t['moved'].max():.1e} of Π⊥W at most"
    for decay, rows in t[t["decay"] > 0].groupby("decay"):
        words += f"; λ = {decay:g} leaves {span(rows['left'])} of it, predicted {span(rows['predicted_left'])}"
    return Finding(float(t["moved"].max()), words, f"{_scale(t)}, {span(t['updates'])} updates")


@LATER.question(
    "A2",
    source=SOURCE,
    says="how large is the gradient off the subspace?",
    paper='"networks which have large gradients in directions orthogonal to the data subspace"',
    rule="its length over β √(k_x ℓ/(k d)), which we derive: the median over networks of their medians over samples; "
    "the slope of its logarithm in log ℓ, ½ by that formula",
    reads=TABLE,
)
def a2(tables: Tables) -> Finding:
    t = tables[TABLE]
    if _plain(t)["codimension"].nunique() < 2:
        return not_run("two codimensions")
    slope, spread = slopes(_plain(t), "codimension", "gradient")
    ratios = t["ratio"]
    words = f"length over prediction {ratios.median():.3f} in the median, networks {span(ratios)}"
    return Finding(float(ratios.median()), f"{words}; slope in ℓ {slope:.3f} ± {spread:.3f}", _scale(t))


@LATER.question(
    "A3",
    source=SOURCE,
    says="how far off the subspace is the boundary?",
    paper='"susceptible to small adversarial L2-perturbations in these directions"',
    rule="the size along the gradient off the subspace at which a sample flips, over its output: the slope of its "
    "logarithm in log β, -1 where the boundary is as far as the gradient says",
    reads=TABLE,
)
def a3(tables: Tables) -> Finding:
    t = _scales(tables[TABLE])
    if t["scale"].nunique() < 2:
        return not_run("two initial scales")
    slope, spread = slopes(t, "scale", "flip_over_output")
    plain = _plain(tables[TABLE])
    relative = plain.assign(over=plain["flip"] / plain["norm"]).groupby("codimension")["over"].mean()
    each = ", ".join(f"ℓ = {codimension} {over:.2f}" for codimension, over in relative.items())
    words = f"slope in β {slope:.3f} ± {spread:.3f}; flip size over norm of the sample at β = {plain['scale'].max():g}"
    return Finding(slope, f"{words}: {each}", _scale(t))


@LATER.claim(
    "A4",
    source=f"{SOURCE}, abstract",
    says="a smaller initialisation or weight decay makes networks more robust off the subspace",
    paper='"decreasing the initialization scale of the training algorithm, or adding L2 regularization, can make the '
    'trained network more robust to adversarial perturbations orthogonal to the data"',
    premise="all training samples are right",
    rule="the smallest scale and the largest decay that were run each take the size at which samples flip off the "
    "subspace above that of the network without them, on the same data, every seed",
    reads=TABLE,
)
def a4(tables: Tables) -> Finding:
    t = tables[TABLE]
    compared = _remedies(t)
    missing = [name for name, rows in compared.items() if rows.empty]
    if missing:
        return not_run(*missing)
    factors = {name: _factor(_base(t), rows) for name, rows in compared.items()}
    checks = [_above(name, factor, compared[name]) for name, factor in factors.items()]
    shown = pd.concat([_base(t), *compared.values()])
    premises = [every(shown, "accuracy", at_least, 1.0, cells=CELLS, name="training accuracy")]
    each = [f"{name}: {factor.mean():.3g} × as far, {factor.min():.3g} at least" for name, factor in factors.items()]
    doubled = all(factor.min() >= 2 for factor in factors.values())
    words = f"{'; '.join(each)}; {'both at least double it' if doubled else 'not both double it'}, every seed"
    return Finding(min(factor.min() for factor in factors.values()), words, _scale(t), checks, premises)


def _base(t: pd.DataFrame) -> pd.DataFrame:
    scales = _scales(t)
    return scales[scales["scale"] == scales["scale"].max()]


def _remedies(t: pd.DataFrame) -> dict[str, pd.DataFrame]:
    scales, decayed = _scales(t), t[t["decay"] > 0]
    small = scales[scales["scale"] < scales["scale"].max()]
    return {
        "a smaller initialisation": small[small["scale"] == small["scale"].min()],
        "weight decay": decayed[decayed["decay"] == decayed["decay"].max()],
    }


def _factor(base: pd.DataFrame, remedy: pd.DataFrame) -> pd.Series:
    """How many times as far the boundary is, seed by seed."""
    return remedy.set_index("seed")["flip"] / base.set_index("seed")["flip"]


def _above(name: str, factor: pd.Series, rows: pd.DataFrame) -> Check:
    return at_least(f"flip size with {name} over that without", factor.min(), 1.0, spread_of(factor), rows)
