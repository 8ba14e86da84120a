"""Draw the road to a KKT point, the brackets, the √(d/m) law and the other optimisers."""

from __future__ import annotations

from brittle import store
from brittle.figures import style, theory
from brittle.params.figures import FigureParams
from brittle.stages.run import run


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    columns = ["depth", "d", "c", "certified", "attacked"]
    figures = {
        "plots/kkt": theory.kkt(store.load_table("plots/kkt.csv", ["log10_loss", "init_scale", "fixed", "free"])),
        "plots/certify": theory.brackets(
            store.load_table("plots/certify.csv", ["seed", "crown", "certified", "z", "attacked"], text=["network"])
        ),
        "plots/regime": theory.law(store.load_table("plots/regime.csv", ["d", "m", "c", "applies"], text=["world"])),
        "plots/optimisers": theory.optimisers(store.load_table("plots/optimisers.csv", columns, text=["rule"])),
    }
    for path, figure in figures.items():
        for form in ("svg", "png"):
            store.save_bytes(f"{path}.{form}", style.render(figure, form, params.figures.dpi))


if __name__ == "__main__":
    run(main, FigureParams)
