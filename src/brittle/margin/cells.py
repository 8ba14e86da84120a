"""The rows that one cell of VYS Figures 1 and 2 gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from brittle.core.errors import BadInput
from brittle.margin.draws import draw
from brittle.nets.two_layer import single
from brittle.probes.margin import NotSeparated, probe


def measured(
    nets: dict[str, np.ndarray], d: int, m: int, seeds: list[int], slack: float, prefix: str = ""
) -> pd.DataFrame:
    """One row per seed: VYS Fig 1's c, and how many samples are on the margin."""
    rows = []
    for i, seed in enumerate(seeds):
        x, y = (torch.from_numpy(a).double() for a in draw(d, m, seed))
        try:
            found = probe(single(nets, i, prefix), x, y, slack)
        except NotSeparated as wrong:
            raise BadInput(f"d = {d}, m = {m}, seed {seed}: {wrong}") from None
        on_margin = int(found.margin.sum())
        rows.append(
            {
                "d": d,
                "m": m,
                "width": nets[f"{prefix}v"].shape[1],
                "seed": seed,
                "c": found.c,
                "sqrt_d": d**0.5,
                "on_margin": on_margin / m,
                "off_margin": m - on_margin,
            }
        )
    return pd.DataFrame(rows)
