"""What VYS proves without training: the robust network of Thm 3.1, Lemma 3.1, and the worked example of §5.1."""

from __future__ import annotations

import math

import pandas as pd
import torch

from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.margin.theory_params import TheoryParams
from brittle.probes.constructions import robust_network, worked_example
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
    for d, alpha in tracked([(d, alpha) for d in p.lemma.ds for alpha in p.lemma.alphas], "Lemma 3.1"):
        m = max(2, round(d**alpha))
        for draw in range(p.lemma.draws):
            x = sphere.points(d, m, rng(draw, "lemma 3.1")) / math.sqrt(d)
            lemma.append({"d": d, "m": m, "draw": draw} | vars(inner_products(x)))

    example = []
    for d in p.example_ds:
        x, y = (torch.from_numpy(a).double() for a in orthogonal.sample(d, d))
        example.append({"d": d} | vars(worked_example(x, y)))

    for name, rows in (("robust", robust), ("lemma", lemma), ("example", example)):
        store.save_table(f"plots/theory_{name}.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    run(main, TheoryParams)
