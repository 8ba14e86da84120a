"""What a caption is, and a chapter of the page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chapter:
    """A section of the page that shows figures and tables."""

    id: str
    title: str
    words: str


@dataclass(frozen=True)
class Caption:
    """The caption of plots/NAME.svg, or of plots/NAME.md, which contains its own text."""

    name: str
    title: str
    words: str
    stage: str
    section: str
