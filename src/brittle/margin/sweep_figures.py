"""Draw VYS Figures 1 and 2 on top of long runs at the paper's scale (evidence/)."""

from __future__ import annotations

from brittle import long_runs
from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.margin import plot_sweep

COLUMNS = ["d", "width", "seed", "c", "on_margin", "off_margin"]


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    grid = store.load_table("plots/sweep.csv", ["alpha", *COLUMNS])
    widths = store.load_table("plots/widths.csv", COLUMNS)
    long = long_runs.load("sweep", ["alpha", *COLUMNS])
    figures = {
        "plots/fig1": plot_sweep.fig1(grid, widths, long, long_runs.load("widths", COLUMNS)),
        "plots/fig2": plot_sweep.fig2(grid, long),
    }
    save(figures, params.figures.dpi)


if __name__ == "__main__":
    run(main, FigureParams)
