"""Draw the figures of the headline experiment from its tables."""

from __future__ import annotations

from brittle import store
from brittle.figures import margin, style
from brittle.params.figures import FigureParams
from brittle.params.margin import MarginParams
from brittle.stages.run import run


class Params(MarginParams, FigureParams):
    """The section of the experiment and that of the figures."""


def main(params: Params) -> None:
    dpi, slack = params.figures.dpi, params.margin.slack
    style.use(params.figures.font_size)
    seeds = store.load_table("plots/margin_seeds.csv", ["d", "m", "width", "sqrt_d", "norm", "c"])
    flipped = store.load_table("plots/margin_flipped.csv", ["size", "z", "z_std", "random", "random_std"])
    samples = store.load_table("plots/margin_samples.csv", ["seed", "output", "on_margin"])
    curves = store.load_table("plots/margin_training.csv", ["seed", "step", "ln_loss"])
    figures = {
        "plots/margin_flipped": margin.flipping(flipped, seeds),
        "plots/margin_training": margin.training(curves, samples, slack),
    }
    for path, figure in figures.items():
        for form in ("svg", "png"):
            store.save_bytes(f"{path}.{form}", style.render(figure, form, dpi))


if __name__ == "__main__":
    run(main, Params)
