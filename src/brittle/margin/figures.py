"""Draw the figures of the headline experiment from its tables."""

from __future__ import annotations

from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.margin import plot_headline
from brittle.margin.params import MarginParams


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
        "plots/margin_flipped": plot_headline.flipping(flipped, seeds),
        "plots/margin_training": plot_headline.training(curves, samples, slack),
    }
    save(figures, dpi)


if __name__ == "__main__":
    run(main, Params)
