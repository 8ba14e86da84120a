"""Put ours and yours together: the tables X1 to X3, the attacks, their figures, and the few numbers to compare."""

from __future__ import annotations

import pandas as pd

from brittle import store
from brittle.figures import cross as draw
from brittle.figures import cross_tables, style
from brittle.params.cross import CrossFigureParams
from brittle.stages import cross_measure
from brittle.stages.run import run


def main(params: CrossFigureParams) -> None:
    style.use(params.figures.font_size)
    ours, yours = (cross_measure.Tables.load(whose) for whose in ("ours", "yours"))
    # An empty table would make text of the columns of the other.
    both = {part: pd.concat([ours[part], yours[part]]) if len(yours[part]) else ours[part] for part in ours}
    vectors = cross_tables.vectors(both["vectors"])
    probes = cross_tables.probes(both["networks"], cross_measure.COMPARED)
    remedies = cross_tables.remedies(both["networks"], both["attacks"])
    tables = {
        "vectors": vectors,
        "probes": probes,
        "remedies": remedies,
        "attacks": cross_tables.attacks(both["attacks"]),
    }
    for name, table in tables.items():
        store.save_table(f"plots/cross_{name}.csv", table)
    figures = {"vectors": draw.one_vector(both["curves"], vectors), "remedies": draw.remedies(remedies)}
    for name, figure in figures.items():
        for form in ("svg", "png"):
            store.save_bytes(f"plots/cross_{name}.{form}", style.render(figure, form, params.figures.dpi))
    store.save_metrics("metrics/cross.json", headline(vectors, remedies))


def headline(vectors: pd.DataFrame, remedies: pd.DataFrame) -> dict[str, float]:
    """Means over worlds: how well the data alone predict the universal perturbation, and who is the most robust."""
    everywhere = remedies[remedies["world"] == cross_tables.EVERYWHERE].set_index("remedy")
    told = vectors[vectors["told"] > 0]
    found = {"cross.z_cosine": float(vectors.loc[vectors["vector"] == "z", "cosine"].mean())}
    found |= {"cross.told_cosine": float(told["cosine"].mean())}
    return found | {f"cross.robust.{name}": float(row["robust"]) for name, row in everywhere.iterrows()}


if __name__ == "__main__":
    run(main, CrossFigureParams)
