"""Draw powers of ReLU."""

from __future__ import annotations

from brittle.after import plot_powers
from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save

TABLE = ["p", "k", "alpha", "radius", "certified", "average", "centre"]
CURVES = ["p", "k", "alpha", "size", "nearest", "z", "certified"]


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    table, curves = store.load_table("plots/powers.csv", TABLE), store.load_table("plots/powers_curves.csv", CURVES)
    save({"plots/powers": plot_powers.powers(table, curves)}, params.figures.dpi)


if __name__ == "__main__":
    run(main, FigureParams)
