"""The tables that FP's claims on CIFAR-10 read, and what every such claim asks of them."""

from __future__ import annotations

import pandas as pd

from brittle.verdicts import Tables, seeds

ACCURACY, FEATURES, PATH = "plots/cifar10_accuracy.csv", "plots/cifar10_features.csv", "plots/cifar10_path.csv"
THETA, LAYERS, LASSO = "plots/cifar10_theta.csv", "plots/cifar10_layers.csv", "plots/cifar10_lasso.csv"
ACTIVITY, PERTURBATIONS = "plots/cifar10_activity.csv", "plots/cifar10_perturbations.csv"
NETS = ("alexnet", "resnet-16", "resnet-34")
PICTURES = 50_000  # for training


def scale_of(tables: Tables) -> str:
    t = tables[ACCURACY]
    about = f"{', '.join(t['net'].unique())}, {seeds(t)}, {t['samples'].iloc[0]:g} training pictures"
    return f"{about}, {t['attacked'].iloc[0]:g} attacked"


def lacks_of(tables: Tables) -> list[str]:
    """What the paper trained with and we did not."""
    t = tables[ACCURACY]
    lacks = [net for net in NETS if net not in set(t["net"])]
    return lacks + ([f"{PICTURES} training pictures"] if t["samples"].max() < PICTURES else [])


def by_network(t: pd.DataFrame, column: str) -> pd.DataFrame:
    return t.pivot_table(index=["net", "seed"], columns="network", values=column, sort=False)


def absent(t: pd.DataFrame, *names: str) -> list[str]:
    return [f"the network {name}" for name in names if name not in t]


def spread_in(t: pd.DataFrame, column: str, times: float = 1.0) -> float | None:
    """The largest spread over resampled pictures or filters, if the table has it; √2 times it, of a difference."""
    return times * float(t[f"{column}_spread"].max()) if f"{column}_spread" in t else None
