"""Tables that confirm O1 and O2."""

from __future__ import annotations

from itertools import product

import pandas as pd

from brittle.after.geometry_claims import MARGINS, OWN, RELIANCE

SEEDS = (0, 1, 2)


def margins() -> pd.DataFrame:
    """Each rule's own margin is three times, and its own KKT residual a third of, the others'."""
    rows = []
    for network, rule, level, seed in product(("smooth", "relu"), (*OWN, "adam"), (-10, -300), SEEDS):
        row = {"network": network, "rule": rule, "d": 50, "m": 50, "width": 200, "seed": seed, "log10_loss": level}
        for norm in OWN.values():
            own = OWN.get(rule) == norm
            row[f"margin_{norm}"] = (3.0 if own else 1.0) * (1 + 0.01 * seed * own)
            row[f"kkt_{norm}"] = (
                (0.2 if own else 0.6) * (1.5 if level == -10 else 1) * (1 + 0.01 * seed * (level == -10))
            )
        rows.append(row)
    return pd.DataFrame(rows)


def reliance() -> pd.DataFrame:
    cells = product(("lms-5", "ms-5-7"), ("sgd", "muon"), SEEDS)
    rows = [{"world": world, "optimiser": optimiser, "seed": seed} for world, optimiser, seed in cells]
    t = pd.DataFrame(rows).assign(model="fcn-100-1", accuracy=1.0, auc_s=0.5)
    return t.assign(auc_s=t["auc_s"].mask((t["optimiser"] == "muon") & (t["world"] == "lms-5"), 0.56))


CONFIRM = {MARGINS: margins(), RELIANCE: reliance()}
