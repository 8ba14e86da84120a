"""VYS's title at one dimension: how robust trained networks are, beside Thm 3.1's network on the same data."""

from __future__ import annotations

import pandas as pd
import torch

from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.margin.draws import draw
from brittle.margin.sweep_params import SweepParams
from brittle.margin.title_params import MOST, TitleParams
from brittle.nets.two_layer import shapes, single
from brittle.probes.title import against_thm31


class Params(SweepParams, TitleParams):
    """The sections on the grid and on the comparison."""


def main(params: Params, d: int) -> None:
    p, alphas = params.sweep, [alpha for alpha in params.sweep.alphas if alpha <= MOST]
    axes = {name: axes for alpha in alphas for name, axes in shapes(prefix=f"{alpha}.").items()}
    stored = store.load_tensors(f"models/sweep/{d}.safetensors", axes, s=len(p.seeds), d=d)
    tables = []
    for alpha in tracked(alphas, f"comparing d = {d}"):
        m = round(d**alpha)
        for i, seed in enumerate(p.seeds):
            x, y = (torch.from_numpy(a).double() for a in draw(d, m, seed))
            found = against_thm31(single(stored, i, f"{alpha}."), x, y, params.title.samples)
            cell = {"alpha": alpha, "d": d, "m": m, "seed": seed, "sample": range(len(found.attacked))}
            radii = {"attacked": found.attacked.numpy(), "certified": found.certified.numpy(), "bound": found.bound}
            tables.append(pd.DataFrame(cell | radii))
    store.save_table(f"plots/title/{d}.csv", pd.concat(tables))


if __name__ == "__main__":
    run(main, Params)
