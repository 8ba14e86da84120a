"""What none of the papers has, X1–X3: every vector, probe and remedy in every world. Answered, not judged."""

from __future__ import annotations

import pandas as pd

from brittle.verdicts import ACROSS, Finding, Tables, span

VECTORS, PROBES, REMEDIES = "plots/cross_vectors.csv", "plots/cross_probes.csv", "plots/cross_remedies.csv"


def _worlds(t: pd.DataFrame) -> str:
    return f"{t['world'].nunique()} worlds: {', '.join(t['world'].unique())}"


@ACROSS.question(
    "X1",
    source="(ours)",
    says="is one vector behind all three explanations?",
    paper="not in the papers",
    rule="the cosine of each paper's own vector with the universal perturbation that a search finds, world by world",
    reads=VECTORS,
)
def x1(tables: Tables) -> Finding:
    t = tables[VECTORS]
    t = t[t["told"] == 1]  # by a paper
    best = t.loc[t.groupby("world", sort=False)["cosine"].idxmax()]
    words = ", ".join(f"{row.world} {row.cosine:.2f} ({row.vector})" for row in best.itertuples())
    return Finding(float(best["cosine"].min()), f"the nearest of the papers' vectors: {words}", _worlds(t))


@ACROSS.question(
    "X2",
    source="(ours)",
    says="does every probe say the same of a network?",
    paper="not in the papers",
    rule="every probe on the plainly trained network of every world",
    reads=PROBES,
)
def x2(tables: Tables) -> Finding:
    t = tables[PROBES]
    plain = t[t["training"] == t["training"].iloc[0]]
    words = ", ".join(f"{row.world} {row.reliance:.2f}" for row in plain.dropna(subset=["reliance"]).itertuples())
    low, high = (span(t[column].dropna().round(3)) for column in ("certified", "attacked"))
    radii = f"certified radii {low}, attacked {high}"
    return Finding(float(plain["reliance"].max()), f"reliance on the simple feature: {words}; {radii}", _worlds(t))


@ACROSS.question(
    "X3",
    source="(ours)",
    says="which remedy helps in every world?",
    paper="not in the papers",
    rule="robust accuracy of every remedy minus that of plain training, in the worst world and on average",
    reads=REMEDIES,
)
def x3(tables: Tables) -> Finding:
    t = tables[REMEDIES]
    t = (
        t[(t["yours"] == 0) & (t["own"] == 1) & (t["world"] != "all worlds")]
        .groupby(["world", "remedy"], sort=False)["robust"]
        .mean()
        .unstack()
    )
    gain = t.drop(columns="nothing").sub(t["nothing"], axis=0)
    order = gain.mean().sort_values(ascending=False).index
    words = ", ".join(f"{name} {gain[name].mean():+.2f} ({gain[name].min():+.2f} at worst)" for name in order)
    return Finding(float(gain.mean().max()), f"gain in robust accuracy: {words}", f"{len(t)} worlds")
