"""Draw the margins of every rule in every norm, and what Muon's networks rely on (O1, O2)."""

from __future__ import annotations

from brittle.after import plot_geometry
from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    margins = store.load_table("plots/geometry_margins.csv", ["log10_loss", "seed"], text=["network", "rule"])
    reliance = store.load_table("plots/geometry_reliance.csv", ["accuracy", "auc_s"], text=["world", "optimiser"])
    save({"plots/geometry": plot_geometry.geometry(margins, reliance)}, params.figures.dpi)


if __name__ == "__main__":
    run(main, FigureParams)
