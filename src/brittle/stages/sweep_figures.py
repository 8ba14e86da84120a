"""Draw VYS Figures 1 and 2, over the layer of what was run at the paper's scale (docs/paper-scale)."""

from __future__ import annotations

from brittle import store
from brittle.figures import style, sweep
from brittle.params.figures import FigureParams
from brittle.stages.run import run

COLUMNS = ["d", "width", "seed", "c", "on_margin", "off_margin"]


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    grid = store.load_table("plots/sweep.csv", ["alpha", *COLUMNS])
    widths = store.load_table("plots/widths.csv", COLUMNS)
    paper = store.load_table("docs/paper-scale/grid.csv", ["alpha", *COLUMNS], text=["figure"])
    figures = {"plots/fig1": sweep.fig1(grid, widths, paper), "plots/fig2": sweep.fig2(grid, paper)}
    for path, figure in figures.items():
        for form in ("svg", "png"):
            store.save_bytes(f"{path}.{form}", style.render(figure, form, params.figures.dpi))


if __name__ == "__main__":
    run(main, FigureParams)
