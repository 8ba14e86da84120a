"""What VYS proves without training: Thm 3.1's network, Lemma 3.1, the example of §5.1; and an exact KKT point."""

from __future__ import annotations

import math

import pandas as pd
import torch

from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.margin.theory_params import TheoryParams
from brittle.probes.constructions import exact_kkt_point, robust_network, worked_example
from brittle.probes.lemma import inner_products
from brittle.worlds import orthogonal, sphere


def main(params: TheoryParams) -> None:
    p = params.theory
    cells = [(d, round(d**alpha), seed) for d in p.robust_ds for alpha in p.robust_alphas for seed in p.seeds]
    robust = []
    for d, m, seed in tracked(cells, "Thm 3.1"):
        x, y = (torch.from_numpy(a) for a in sphere.sample(d, m, rng(seed, "margin data")))
        robust.append({"d": d, "m": m, "seed": seed} | vars(robust_network(x, y)))

    lemma = []
    cells = [(d, alpha) for d in p.lemma.ds for alpha in p.lemma.alphas] + [(d, 0.5) for d in p.lemma.large_ds]
    for d, alpha in tracked(cells, "Lemma 3.1"):
        m = max(2, round(d**alpha))
        for draw in range(p.lemma.draws):
            x = sphere.points(d, m, rng(draw, "lemma 3.1")) / math.sqrt(d)
            lemma.append({"d": d, "m": m, "draw": draw} | vars(inner_products(x)))

    example = []
    for d in p.example_ds:
        x, y = (torch.from_numpy(a).double() for a in orthogonal.sample(d, d))
        example.append({"d": d} | vars(worked_example(x, y)))

    tables = (("robust", robust), ("lemma", lemma), ("example", example), ("kkt", exact_points(p.example_ds)))
    for name, rows in tables:
        store.save_table(f"plots/theory_{name}.csv", pd.DataFrame(rows))


def exact_points(ds: list[int]) -> list[dict[str, float]]:
    """The exact KKT point on two samples, half as many as there are dimensions, and as many."""
    rows = []
    for d, m in [(each, m) for each in ds for m in sorted({2, 2 * (each // 4), each})]:
        x, y = (torch.from_numpy(a).double() for a in orthogonal.sample(d, m))
        rows.append({"d": d, "m": m} | vars(exact_kkt_point(x, y)))
    return rows


if __name__ == "__main__":
    run(main, TheoryParams)
