"""SB §4.3's f*, which uses every feature: its accuracy, and the smallest perturbation that defeats it, against d."""

from __future__ import annotations

import pandas as pd
import torch

from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.f_star import f_star
from brittle.probes.f_star import certified, smallest
from brittle.slabs import draws
from brittle.slabs.f_star_params import FStarParams
from brittle.worlds.slabs import rotation


def main(params: FStarParams) -> None:
    p, s = params.f_star, params.slabs
    rows = []
    for d in tracked(p.ds, "f*"):
        world = draws.world(s, p.world, d)
        u, y = world.sample(p.samples, rng(s.seed, f"f_star {d}"))
        q = rotation(d, rng(s.seed, f"f_star {d} rotation")).astype(float)
        net = f_star(world, q)
        scores = net(torch.from_numpy(u.astype(float) @ q)[None])[0].numpy()
        bracket = smallest(world, u.astype(float), y.astype(float))
        rows.append(
            pd.DataFrame(
                {"world": p.world, "d": d, "width": net.w.shape[1], "sample": range(len(y)), "output": y * scores}
                | {"certified": certified(world, scores, y), "lower": bracket.lower, "upper": bracket.upper}
                | {"simple": abs(u[:, 0])}
            )
        )
    store.save_table("plots/f_star.csv", pd.concat(rows))


if __name__ == "__main__":
    run(main, FStarParams)
