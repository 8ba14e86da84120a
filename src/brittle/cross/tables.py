"""The three tables across the papers (X1 to X3), from the measurements on single networks."""

from __future__ import annotations

import numpy as np
import pandas as pd

NETWORK = ["world", "net", "remedy"]
EVERYWHERE = "all worlds"


def vectors(rows: pd.DataFrame) -> pd.DataFrame:
    """X1: one row per world and vector, means over seeds."""
    rows = rows[rows["vector"] != "ascent"]
    about = ["world", "net", "vector", "needs", "told"]
    return rows.groupby(about, sort=False, as_index=False)[["cosine", "half", "uap_half", "random_half"]].mean()


def probes(rows: pd.DataFrame, trainings: tuple[str, ...]) -> pd.DataFrame:
    """X2: one row per world and training, every probe, means over seeds."""
    numbers = ["accuracy", "auc", "auc_s", "auc_rest", "reliance", "kkt", "theta", "density", "density_delta"]
    numbers += ["radius_certified", "radius_attacked", "universal"]
    rows = rows[rows["remedy"].isin(trainings)]
    table = rows.groupby([*NETWORK, "simple"], sort=False, as_index=False, dropna=False)[numbers].mean()
    return table.rename(columns={"remedy": "training", "radius_certified": "certified", "radius_attacked": "attacked"})


def remedies(rows: pd.DataFrame, attacks: pd.DataFrame) -> pd.DataFrame:
    """X3: the leaderboard, one row per world, network and remedy, the most robust first, below the means over worlds.

    Robust accuracy is under all attacks, including user-supplied ones: of several measurements on a network the lowest
    counts.
    """
    together = attacks[attacks["attack"] == "all"].groupby([*NETWORK, "seed"], as_index=False)["kept"].min()
    rows = rows.merge(together, on=[*NETWORK, "seed"], validate="one_to_one")
    # A remedy that brings a network of its own costs as much relative to the world's own as the others do.
    rows["beside"] = rows["net"].mask(rows["own"] == 1, "own")
    plain = rows[rows["remedy"] == "nothing"].groupby(["world", "beside"])["spent"].mean()
    rows["cost"] = rows["spent"] / plain.reindex(pd.MultiIndex.from_frame(rows[["world", "beside"]])).to_numpy()
    means = {name: (name, "mean") for name in ("accuracy", "certified", "off_span", "radius", "reliance", "cost")}
    table = rows.groupby(NETWORK, sort=False, as_index=False).agg(
        own=("own", "max"),  # whether the network is the world's own
        yours=("yours", "max"),
        seeds=("seed", "nunique"),
        robust=("kept", "mean"),
        spread=("kept", np.ptp),
        best=("best_robust", "mean"),
        **means,
    )
    table["gap"] = table["best"] - table["robust"]
    table["order"] = table["world"].map({world: i for i, world in enumerate(table["world"].unique())})
    table = table.sort_values(["order", "robust"], ascending=[True, False], kind="stable").drop(columns="order")
    return pd.concat([_everywhere(table), table], ignore_index=True)


def _everywhere(table: pd.DataFrame) -> pd.DataFrame:
    """The means of each remedy that was tried in every world, on the world's own network.

    Costs are ratios, so their geometric mean is taken.
    """
    table, worlds = table[table["own"] == 1], table["world"].nunique()
    each = table.groupby("remedy", sort=False)
    means = each[["accuracy", "robust", "spread", "reliance", "gap"]].mean()
    means["cost"] = np.exp(np.log(table["cost"]).groupby(table["remedy"], sort=False).mean())
    means[["yours", "seeds"]] = each.agg({"yours": "max", "seeds": "min"})
    means = means[each["world"].nunique() == worlds]
    means = means.sort_values("robust", ascending=False, kind="stable").reset_index()
    return means.assign(world=EVERYWHERE, net="each world's own", own=1)


def attacks(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per world, training and attack: the accuracy under this attack alone, means over seeds."""
    rows = rows[rows["attack"] != "all"].drop_duplicates([*NETWORK, "seed", "attack"])
    return rows.groupby([*NETWORK, "attack", "yours"], sort=False, as_index=False)["kept"].mean()
