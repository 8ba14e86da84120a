"""Figures as files, each as svg and png."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from brittle.core import store
from brittle.drawing import style


def save(figures: Mapping[str, Figure], dpi: int) -> None:
    """Write each figure under its name in both formats: `plots/fig1` becomes plots/fig1.svg and plots/fig1.png."""
    for path, figure in figures.items():
        for form in ("svg", "png"):
            store.save_bytes(f"{path}.{form}", style.render(figure, form, dpi))
