"""Combine built-in and user-supplied results: the tables X1 to X3, their figures, and the metrics."""

from __future__ import annotations

import pandas as pd

from brittle.core import store
from brittle.core.stage import run
from brittle.cross import plot
from brittle.cross import tables as cross_tables
from brittle.cross.measured import COMPARED, Tables
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    builtin, plugin = (Tables.load(whose) for whose in ("builtin", "plugin"))
    # Concatenating an empty table would turn the numbers of the other into text.
    both = {part: pd.concat([builtin[part], plugin[part]]) if len(plugin[part]) else builtin[part] for part in builtin}
    vectors = cross_tables.vectors(both["vectors"])
    probes = cross_tables.probes(both["networks"], COMPARED)
    remedies = cross_tables.remedies(both["networks"], both["attacks"])
    tables = {
        "vectors": vectors,
        "probes": probes,
        "remedies": remedies,
        "attacks": cross_tables.attacks(both["attacks"]),
    }
    for name, table in tables.items():
        store.save_table(f"plots/cross_{name}.csv", table)
    figures = {"vectors": plot.one_vector(both["curves"], vectors), "remedies": plot.remedies(remedies)}
    save({f"plots/cross_{name}": figure for name, figure in figures.items()}, params.figures.dpi)
    store.save_metrics("metrics/cross.json", headline(vectors, remedies))


def headline(vectors: pd.DataFrame, remedies: pd.DataFrame) -> dict[str, float]:
    """Means over worlds: how well the data alone predict the universal perturbation, and how robust each remedy is."""
    everywhere = remedies[remedies["world"] == cross_tables.EVERYWHERE].set_index("remedy")
    told = vectors[vectors["told"] > 0]
    found = {"cross.z_cosine": float(vectors.loc[vectors["vector"] == "z", "cosine"].mean())}
    found |= {"cross.told_cosine": float(told["cosine"].mean())}
    return found | {f"cross.robust.{name}": float(row["robust"]) for name, row in everywhere.iterrows()}


if __name__ == "__main__":
    run(main, FigureParams)
