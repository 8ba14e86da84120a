"""What Kumano, Kera and Yamasaki (2024) say about perturbations as features: K1, and K2, which is ours."""

from __future__ import annotations

import pandas as pd

from brittle.verdicts import LATER, Finding, Tables, at_least, at_most, not_run, of_mean, seeds, span

TABLE = "plots/perturbed_noise.csv"
LEARNT, CHANCE = 0.9, 0.6


@LATER.claim(
    "K1",
    source="Kumano, Kera, Yamasaki 2024, Thm 4.4, Fig 2",
    says="a network trained on nothing but noise and another network's perturbations knows that network's samples",
    paper='"various adversarial perturbations, even perturbations of a few pixels, contain sufficient class features '
    'for generalization" (abstract); the code: 1,000 samples U[-1, 1]^d, 10,000 noise points, d 100–10,000, '
    "width 1000, radius 0.0078 √d, and pure noise as control",
    rule="in the largest dimension, with most noise points: mean accuracy on the first network's own samples ≥ 0.9 "
    "with the perturbations and ≤ 0.6 without (thresholds of ours: the paper shows curves)",
    reads=TABLE,
)
def k1(tables: Tables) -> Finding:
    t = tables[TABLE]
    cell = largest(t)
    if cell.empty:
        return not_run("a cell with perturbed noise")
    learnt, control = cell["accuracy"].mean(), cell["control"].mean()
    checks = (
        at_least("accuracy with perturbations", learnt, LEARNT, of_mean(cell["accuracy"]), cell),
        at_most("accuracy without", control, CHANCE, of_mean(cell["control"]), cell),
    )
    measured = f"{learnt:.3f} on {cell['samples'].iloc[0]:g} samples that it has never seen, {control:.3f} without the "
    measured += f"perturbations; over all cells {t['accuracy'].min():.2f}–{t['accuracy'].max():.2f}"
    return Finding(learnt, measured, scale(t), checks)


@LATER.question(
    "K2",
    source="Kumano, Kera, Yamasaki 2024, §4 (geometry-inspired perturbations)",
    says="is the perturbation VYS's z?",
    paper="its theory takes the perturbation to be along Σ λᵢyᵢxᵢ, for l2; VYS's z = Σ yᵢxᵢ weighs all samples alike",
    rule="the cosine of the mean t·δ, over noise points perturbed towards their labels t, with z of the samples that "
    "the network was trained on: ≥ 0.9 would say yes; and that of single perturbations",
    reads=TABLE,
)
def k2(tables: Tables) -> Finding:
    t = tables[TABLE]
    cell = largest(t)
    if cell.empty:
        return not_run("a cell with perturbed noise")
    shared = cell["shared"].mean()
    answer = "yes" if shared >= LEARNT else "not quite"
    measured = f"{answer}: cosine {shared:.3f} of the mean perturbation ({cell['shared'].min():.3f} at least), "
    measured += f"{cell['each'].mean():.3f} of a single one, {cell['noise'].abs().mean():.3f} of the noise itself; "
    by_d = t[t["noises"] == t["noises"].max()].groupby("d")["shared"].mean()
    measured += "by dimension " + ", ".join(f"{d} {value:.3f}" for d, value in by_d.items())
    return Finding(shared, measured, scale(t))


def largest(t: pd.DataFrame) -> pd.DataFrame:
    """The cell with the largest dimension and, there, the most noise points."""
    most = t[t["d"] == t["d"].max()]
    return most[most["noises"] == most["noises"].max()]


def scale(t: pd.DataFrame) -> str:
    words = (
        f"{name} {span(t[column])}" for name, column in (("d", "d"), ("noise points", "noises"), ("width", "width"))
    )
    return f"{', '.join(words)}, {span(t['samples'])} samples, {seeds(t)}"
