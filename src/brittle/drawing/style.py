"""How every figure looks, and how it becomes bytes: the same bytes for the same data."""

from __future__ import annotations

import io

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

# Okabe and Ito's colours: everyone can tell them apart, and in grey they differ in lightness.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
PURPLE = "#8E3B8A"  # Okabe and Ito's, darkened until it can carry a thin line


def shades(n: int) -> list[str]:
    """n colours from dark to light, for the values of a parameter."""
    scale = matplotlib.colormaps["viridis"]
    return [matplotlib.colors.to_hex(scale(0.92 * i / max(1, n - 1))) for i in range(n)]


def use(font_size: float) -> None:
    plt.rcdefaults()
    plt.rcParams.update(
        {
            "font.size": font_size,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titlesize": "medium",
            "axes.titleweight": "bold",
            "legend.frameon": False,
            "lines.linewidth": 1.6,
            "svg.hashsalt": "brittle",
        }
    )


def render(figure: Figure, form: str, dpi: int) -> bytes:
    """The figure as svg or png, without the date or the version of the library that drew it."""
    _settle(figure)
    buffer = io.BytesIO()
    stamp = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}[form]
    figure.savefig(buffer, format=form, dpi=dpi, metadata=stamp, bbox_inches="tight")
    return buffer.getvalue()


def _settle(figure: Figure) -> None:
    """Solve the layout and round it: the solver's last digits vary from run to run, and svg names contain them."""
    if not isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        return
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for part in figure.subfigs:
        box = part.bbox_relative
        box.p0, box.p1 = np.round(box.p0, 4), np.round(box.p1, 4)
    for ax in figure.axes:
        ax.set_position(np.round(ax.get_position(original=True).bounds, 4))
