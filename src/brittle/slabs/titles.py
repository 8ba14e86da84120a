"""The paper's names for networks, for figures and tables."""

from __future__ import annotations


def model_title(name: str) -> str:
    """The paper's name of a network, such as (100, 2)-FCN."""
    kind, *sizes = name.split("-")
    return f"({', '.join(sizes)})-{kind.upper()}"
