"""The section `figures`: how figures look. It changes no number."""

from __future__ import annotations

from typing import Annotated

from brittle.params.base import Section, integer, number
from brittle.params.headline import Headline


class Figures(Section):
    dpi: Annotated[int, integer(50, 1200)]
    font_size: Annotated[float, number("≥ 4 and ≤ 40", lambda v: 4 <= v <= 40)]


class FigureParams(Headline):
    figures: Figures
