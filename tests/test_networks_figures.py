"""Figures of perturbed noise, samples in weights, and XOR: their lines are the numbers of the tables, nothing warns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from brittle.after import perturbed_noise_figures, reconstruct_figures, xor_figures
from brittle.drawing import style
from tables_networks import CONFIRM


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """No warning goes unseen, and no figure stays open."""
    style.use(9.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # of what other tests left open
        yield
    plt.close("all")


def line(ax: Axes, label: str) -> tuple[np.ndarray, np.ndarray]:
    [found] = [each for each in ax.lines if each.get_label() == label]
    return found.get_xdata(), found.get_ydata()


def mean(path: str, column: str, **cell: object) -> float:
    t = CONFIRM[path]
    return float(t[np.logical_and.reduce([t[axis] == value for axis, value in cell.items()])][column].mean())


def test_perturbed_noise_is_drawn_against_the_dimension_and_the_number_of_points() -> None:
    figure = perturbed_noise_figures.figure(CONFIRM["plots/perturbed_noise.csv"])
    x, y = line(figure.axes[0], "noise + perturbations")
    path = "plots/perturbed_noise.csv"
    assert list(x) == [200, 500]
    assert list(y) == pytest.approx([mean(path, "accuracy", d=d, noises=4000) for d in (200, 500)])
    x, y = line(figure.axes[1], "noise alone")
    assert list(x) == [125, 4000]
    assert list(y) == pytest.approx([mean(path, "control", d=500, noises=n) for n in (125, 4000)])
    _, y = line(figure.axes[2], "mean perturbation")
    assert list(y) == pytest.approx([mean(path, "shared", d=d, noises=4000) for d in (200, 500)])


def test_samples_found_are_drawn_for_the_fewest_samples_at_every_level() -> None:
    figure = reconstruct_figures.figure(CONFIRM["plots/reconstruct.csv"])
    x, y = line(figure.axes[0], "search for a KKT point")
    assert list(x) == [2, 30, 10_000]
    assert list(y) == pytest.approx(
        [mean("plots/reconstruct.csv", "search_all", m=20, log10_loss=-level) for level in x]
    )
    heights = [bar.get_height() for bar in figure.axes[2].patches]
    expected = [mean("plots/reconstruct.csv", "pairs_all", m=m, log10_loss=-30) for m in (20, 50)]
    assert heights[:3] == pytest.approx([*expected, 0.0])  # the last one is before training
    assert figure.axes[2].get_title("left") == "(c) At loss 1e-30"


def test_directions_are_drawn_where_they_are_at_the_end() -> None:
    figure = xor_figures.figure(CONFIRM["plots/xor.csv"], CONFIRM["plots/mid_training.csv"])
    ends = [list(each.get_xdata()) for each in figure.axes[1].lines]
    assert ends == [[0.0, 90.0, 180.0, 270.0]] * 12  # two angles, two widths, three seeds
    dots = [each for each in figure.axes[0].lines if each.get_marker() == "o"]
    assert len(dots) == 12
    assert all(each.get_ydata()[0] == pytest.approx(0.99, abs=0.001) for each in dots)  # at loss 0.6, not 0.01
    x, y = line(figure.axes[2], "$d=3$")
    assert list(x) == [1, 2, 9, 65]
    assert list(y) == pytest.approx([0.9, 0.8, 0.7, 0.6])


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]])
def test_figures_draw_with_one_seed_and_one_cell(seeds: list[int]) -> None:
    def some(path: str) -> pd.DataFrame:
        t = CONFIRM[path]
        return t[t["seed"].isin(seeds)]

    noise, weights = some("plots/perturbed_noise.csv"), some("plots/reconstruct.csv")
    drawn = (
        perturbed_noise_figures.figure(noise[noise["noises"] == 4000]),
        reconstruct_figures.figure(weights[weights["m"] == 20]),
        xor_figures.figure(some("plots/xor.csv").query("angle == 90 and width == 256"), some("plots/mid_training.csv")),
    )
    for figure in drawn:
        assert style.render(figure, "svg", 100).startswith(b"<?xml")
