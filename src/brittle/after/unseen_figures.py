"""Draw clusters and fresh samples of them."""

from __future__ import annotations

from brittle.after import plot_unseen
from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save

TABLE = ["d", "k", "per_cluster", "sigma", "unit", "c", "applies", "certified", "attacked"]
CURVES = ["k", "per_cluster", "sigma", "size", "z", "random"]


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    table = store.load_table("plots/unseen.csv", TABLE, text=["centres"])
    curves = store.load_table("plots/unseen_curves.csv", CURVES, text=["centres"])
    save({"plots/unseen": plot_unseen.unseen(table, curves)}, params.figures.dpi)


if __name__ == "__main__":
    run(main, FigureParams)
