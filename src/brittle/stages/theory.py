"""What VYS proves without training: Thm 3.1's robust network, Lemma 3.1, and the worked example of §5.1."""

from __future__ import annotations

import math

import pandas as pd
import torch

from brittle import store
from brittle.attacks.minimum import best
from brittle.nets.robust_construction import largest_cosine, thm31, thm31_bound, without_biases
from brittle.params.theory import TheoryParams
from brittle.probes.certify import certified
from brittle.probes.lemma import inner_products
from brittle.rng import rng
from brittle.stages.progress import tracked
from brittle.stages.run import run
from brittle.worlds import orthogonal, sphere


def main(params: TheoryParams) -> None:
    p = params.theory
    robust = []
    cells = [(d, round(d**alpha), seed) for d in p.robust_ds for alpha in p.robust_alphas for seed in p.seeds]
    for d, m, seed in tracked(cells, "Thm 3.1"):
        x, y = (torch.from_numpy(a) for a in sphere.sample(d, m, rng(seed, "margin data")))
        net = thm31(x, y)
        radius, attack = certified(net, x, y), best(net, x, y)
        robust.append(
            {
                "d": d,
                "m": m,
                "seed": seed,
                "cosine": largest_cosine(x),
                "bound": thm31_bound(x),
                "smallest_output": float((y * net(x[None])[0]).min()),
                "certified": float(radius.radius.min()),
                "exact": float(radius.exact.double().mean()),
                "attacked": float(attack.size.min()),
                "beaten": int((attack.size < radius.radius).sum()),
            }
        )
    store.save_table("plots/theory_robust.csv", pd.DataFrame(robust))

    lemma = []
    for d, alpha in tracked([(d, alpha) for d in p.lemma.ds for alpha in p.lemma.alphas], "Lemma 3.1"):
        m = max(2, round(d**alpha))
        for draw in range(p.lemma.draws):
            x = sphere.points(d, m, rng(draw, "lemma 3.1")) / math.sqrt(d)
            lemma.append({"d": d, "m": m, "draw": draw} | vars(inner_products(x)))
    store.save_table("plots/theory_lemma.csv", pd.DataFrame(lemma))

    example = []
    for d in p.example_ds:
        x, y = (torch.from_numpy(a).double() for a in orthogonal.sample(d, d))
        biased, twin = thm31(x, y), without_biases(x, y)
        z = 4 / d * x[y < 0].sum(0)  # §5.1, against every positive sample
        radius, after = certified(biased, x, y).radius, twin((x[y > 0] + z)[None])[0]
        example.append(
            {
                "d": d,
                "certified": float(radius.min()),
                "certified_error": float((radius - math.sqrt(d) / 2).abs().max()),  # N survives √d/2
                "z_norm_error": abs(float(z.norm()) - 2 * math.sqrt(2)),  # ‖z‖ = 2√2 …
                "twin_error": float((after + 1).abs().max()),  # … takes N' to -1
            }
        )
    store.save_table("plots/theory_example.csv", pd.DataFrame(example))


if __name__ == "__main__":
    run(main, TheoryParams)
