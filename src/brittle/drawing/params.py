"""The section `figures`: how figures look. It affects no numbers."""

from __future__ import annotations

from typing import Annotated

from brittle.core.params import Section, TopLevel, integer, number


class Figures(Section):
    dpi: Annotated[int, integer(50, 1200)]
    font_size: Annotated[float, number("≥ 4 and ≤ 40", lambda v: 4 <= v <= 40)]


class FigureParams(TopLevel):
    figures: Figures
