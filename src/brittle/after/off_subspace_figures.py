"""Draw the two pictures of boundaries, and how the gradient and the boundary off the subspace behave (A1–A4)."""

from __future__ import annotations

from brittle.after import plot_off_subspace
from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    grid = store.load_table("plots/off_subspace_boards.csv", ["a", "b", "score"], text=["board", "training"])
    points = store.load_table("plots/off_subspace_points.csv", ["a", "b", "y"], text=["board", "training"])
    columns = ["codimension", "scale", "decay", "gradient", "ratio", "flip", "flip_over_output"]
    networks = store.load_table("plots/off_subspace.csv", columns)
    figures = {
        "plots/off_subspace_boards": plot_off_subspace.boards(grid, points),
        "plots/off_subspace": plot_off_subspace.networks(networks),
    }
    save(figures, params.figures.dpi)


if __name__ == "__main__":
    run(main, FigureParams)
