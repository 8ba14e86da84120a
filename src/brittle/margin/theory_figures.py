"""Draw the path to a KKT point, the brackets, the √(d/m) law and the other optimisers."""

from __future__ import annotations

from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.margin import plot_theory


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    columns = ["depth", "d", "m", "init_scale", "c", "attacked"]
    figures = {
        "plots/kkt": plot_theory.kkt(store.load_table("plots/kkt.csv", ["log10_loss", "init_scale", "fixed", "free"])),
        "plots/certify": plot_theory.brackets(
            store.load_table("plots/certify.csv", ["seed", "crown", "certified", "z", "attacked"], text=["network"])
        ),
        "plots/regime": plot_theory.law(
            store.load_table("plots/regime.csv", ["d", "m", "c", "applies", "law"], text=["world"])
        ),
        "plots/optimisers": plot_theory.optimisers(store.load_table("plots/optimisers.csv", columns, text=["rule"])),
    }
    save(figures, params.figures.dpi)


if __name__ == "__main__":
    run(main, FigureParams)
