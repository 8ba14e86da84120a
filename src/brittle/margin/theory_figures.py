"""Draw the path to a KKT point, the brackets, the √(d/m) law, the other optimisers, the proof and the title."""

from __future__ import annotations

from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.margin import plot_proof, plot_theory, plot_title

PROOF = ["d", "m", "width", "init_scale", "seed", "kkt", "rhs", "tightness"]


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
        "plots/proof": plot_proof.proof(
            store.load_table("plots/proof.csv", PROOF, text=["world", "part", "lemma", "says"])
        ),
        "plots/title": plot_title.title(
            store.load_table("plots/title.csv", ["alpha", "d", "attacked", "certified", "bound"])
        ),
    }
    save(figures, params.figures.dpi)


if __name__ == "__main__":
    run(main, FigureParams)
