"""The tables that the claims P1–P12 read, and the spread of what they say.

Two tables have networks: that of this chapter's size, and the grid of other sizes. They are read as one, in the grid's
columns; where only the grid is there, the grid is judged. A column `seed` of the grid and columns `attacked` and `test`
of any table, numbers of samples, are used where they are there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from brittle.verdicts import Check, Tables, at_least, at_most, every, of_share, over_seeds, seeds, span

NETWORKS, ACCURACY, THETA = "plots/sparse_networks.csv", "plots/sparse_accuracy.csv", "plots/sparse_theta.csv"
GRID, LOW, TRANSFER = "plots/sparse_grid.csv", "plots/sparse_low.csv", "plots/sparse_transfer.csv"
ATTACKED = {GRID: 500, LOW: 1000, TRANSFER: 500}  # samples, where no column says so: ATTACKED of the stages
KEYS, CELL = ["start", "seed"], ("start", "d")
SIZES = ["d", "k", "words", "margin", "tau", "attacked", "certified", "drawn", "predicted"]
THETAS = {"start, clean": "theta_start_clean", "start, robust": "theta_start_robust"}
THETAS |= {"clean, robust": "theta_clean_robust", "different neurons": "theta_pairs"}


def own(tables: Tables) -> pd.DataFrame:
    """The networks of this chapter's size: clean_… is before adversarial training, robust_… after, at its radius."""
    t = tables[NETWORKS]
    clean, robust = (t[t["network"] == name].set_index(KEYS) for name in ("clean", "robust"))
    parts = [clean.drop(columns=SIZES).add_prefix("clean_"), robust.drop(columns=SIZES).add_prefix("robust_")]
    if ACCURACY in tables:
        a = tables[ACCURACY]
        a = a[a["tau"].isin(t["tau"])].pivot_table(index=KEYS, columns=["network", "attack"], values="accuracy")
        names = [f"{network}_{attack}" for network, attack in a.columns]
        parts.append(a.set_axis(names, axis=1))
    if THETA in tables:
        medians = tables[THETA].pivot_table(index=KEYS, columns="of", values="median")
        parts.append(medians.rename(columns=THETAS))
    both = clean[SIZES].join(parts).rename(columns={"robust_local": "local", "robust_turned": "turned"})
    return both.reset_index()


def networks(tables: Tables, *also: str) -> pd.DataFrame:
    """All networks in l2 with one filter. Those of this chapter's size are among them if tables `also` are there."""
    absent = [path for path in (NETWORKS, *also) if path not in tables]
    if absent and GRID not in tables:
        tables[absent[0]]  # raises Absent
    t = pd.DataFrame() if absent else own(tables)
    if GRID in tables:
        g = tables[GRID]
        g = g[(g["of"] == "d") & (g["norm"] == "l2")]  # not the versions of the world
        g = g[g["margin"] == (g["margin"].max() if absent else t["margin"].iloc[0])]
        if not absent:  # the grid has the first seed of these, too
            known = set(zip(t["start"], t["d"], strict=True))
            g = g[[cell not in known for cell in zip(g["start"], g["d"], strict=True)]]
        t = pd.concat([t, sampled(g, GRID)], ignore_index=True)
    return t.assign(test=t["test"].fillna(t["attacked"]) if "test" in t else t["attacked"])


def sampled(t: pd.DataFrame, path: str) -> pd.DataFrame:
    """The table with its numbers of samples and its seeds, also where it has no such columns."""
    known = {"attacked": ATTACKED[path], "seed": 0}
    t = t.assign(**{name: value for name, value in known.items() if name not in t})
    return t if "test" in t else t.assign(test=t["attacked"])  # a test has at least as many


def worst(
    t: pd.DataFrame,
    column: str,
    check: Callable[..., Check],
    *bounds: float,
    name: str,
    samples: str = "",
    cells: Sequence[str] = CELL,
) -> Check:
    """The check of the worst row. Its spread is that over seeds or, of a share and if larger, that over its samples."""
    found = every(t, column, check, *bounds, cells=list(cells), name=name)
    row = found.rows.iloc[0]
    spread = np.fmax(found.spread, of_share(found.value, row[samples])) if samples else found.spread
    where = ", ".join(f"{axis} {row[axis]}" for axis in cells)
    shown = [name for name in (*cells, "seed", "k", "margin", "tau", samples, column) if name in t]
    rows = found.rows[list(dict.fromkeys(shown))]
    return replace(found, name=f"{name} ({where})" if where else name, spread=float(spread), rows=rows)


def shares(t: pd.DataFrame, asked: Mapping[str, tuple[Callable[..., Check], float, str]]) -> list[Check]:
    """The checks of accuracies under attack, each of the worst network."""
    return [
        worst(t, column, check, bound, name=name, samples="attacked") for column, (check, bound, name) in asked.items()
    ]


def factors(t: pd.DataFrame, **columns: str) -> tuple[pd.DataFrame, list[str]]:
    """How many times each column shrinks in adversarial training, in size; and the networks that had none."""
    t = t.assign(**{name: t[f"clean_{c}"].abs() / t[f"robust_{c}"].abs() for name, c in columns.items()})
    untrained = t["robust_accuracy"].isna()
    return t[~untrained], [f"{row.start} {row.seed}: adversarial training" for row in t[untrained].itertuples()]


def scale_of(t: pd.DataFrame) -> str:
    """The sizes of the networks, in words."""
    first = t.iloc[0]
    filtered = f"filter {first['margin']:g}" if first["margin"] else "no filter"
    starts = []
    for start, rows in t.groupby("start", sort=False):
        alive = rows.dropna(subset="drawn") if "drawn" in rows else rows[:0]
        of = f" ({span(alive['clean_neurons'])} of {span(alive['drawn'])} neurons are alive)" if len(alive) else ""
        starts.append(f"{seeds(rows)} from {start} weights{of}")
    sizes = f"d {span(t['d'])}, k {span(t['k'])}, {filtered}, {span(t['attacked'])} samples attacked"
    return f"{sizes}, {', '.join(starts)}"


def falls(t: pd.DataFrame, column: str, name: str, pair: tuple[float, float]) -> Check:
    """The check that a ratio falls from one d to the next, with the spreads of both."""
    t = t.assign(log=np.log(t[column]))
    ends = [t[t["d"] == d] for d in pair]
    change = ends[1]["log"].mean() - ends[0]["log"].mean()
    spread = math.hypot(*(over_seeds(t, "log", ["d"], end.iloc[0]) for end in ends))
    return at_most(f"change of ln({name}), d {pair[0]:g} → {pair[1]:g}", change, 0.0, spread, pd.concat(ends))


def withstood(t: pd.DataFrame, sizes: pd.DataFrame) -> list[Check]:
    """The checks of P5 at one τ, each of the worst seed of one start; none if the τ was not attacked."""
    asked = [("clean", "dense", at_most, 0.1), ("robust", "fgm", at_least, 0.9), ("robust", "pgd", at_least, 0.9)]
    checks = []
    for network, attack, check, bound in [*asked, ("robust", "certified", at_least, 0.9)]:
        rows = t[(t["network"] == network) & (t["attack"] == attack)]
        if rows.empty and attack == "certified":  # not from this start: P5 says so
            continue
        if rows.empty:
            return []
        number = "certified" if attack == "certified" else "attacked"
        rows = rows.assign(**{number: sizes[number].max()})
        checks.append(
            worst(rows, "accuracy", check, bound, name=f"{network} training, {attack}", samples=number, cells=())
        )
    return checks


def tickets(t: pd.DataFrame) -> str:
    """How many neurons Lemma B.2's sets have, and what becomes of them."""
    pot, sure = (f"{span(t[f'clean_{s}'].round(2))} (the least {span(t[f'clean_{s}_least'])})" for s in ("pot", "sure"))
    kept, won = (span(t[f"clean_{name}"].round(3)) for name in ("sure_kept", "winner_pot"))
    return f"a word has {pot} neurons in S_pot and {sure} in S_sure, of which {kept} keep it; from S_pot {won}; "
