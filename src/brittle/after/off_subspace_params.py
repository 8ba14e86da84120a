"""The section `off_subspace`: networks trained on data in a subspace, and how brittle they are off it (A1–A4)."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import Section, TopLevel, cross, distinct_integers, distinct_numbers, integer, number

POSITIVE = number("> 0", lambda v: v > 0)
SCALES = distinct_numbers("> 0 and ≤ 1e3", lambda v: 0 < v <= 1e3)
DECAYS = distinct_numbers("> 0 and < 1", lambda v: 0 < v < 1)


class Board(Section):
    """One of the two pictures: both layers trained, from PyTorch's default initialisation times a scale."""

    width: Annotated[int, integer(1, 10**5)]
    lr: Annotated[float, POSITIVE]
    small: Annotated[float, POSITIVE]
    decay: Annotated[float, POSITIVE]
    epochs: Annotated[int, integer(1)]


class Boards(Section):
    diagonal: Board
    chess: Board
    target: Annotated[float, POSITIVE]
    grid: Annotated[int, integer(3, 1000)]
    seed: Annotated[int, integer(0)]


class OffSubspace(Section):
    d: Annotated[int, integer(2, 10**4)]
    m: Annotated[int, integer(2, 10**5)]
    codimensions: Annotated[list[int], distinct_integers(1)]
    width: Annotated[int, integer(2, 10**5)]
    scales: Annotated[list[float], SCALES]
    decays: Annotated[list[float], DECAYS]
    lr: Annotated[float, POSITIVE]
    batch: Annotated[int, integer(1)]
    target: Annotated[float, POSITIVE]
    epochs: Annotated[int, integer(1)]
    decayed_epochs: Annotated[int, integer(1)]
    seeds: Annotated[list[int], distinct_integers(0)]
    boards: Boards

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if max(self.codimensions) >= self.d:
            raise cross("off_subspace.codimensions", self.codimensions, f"must be below d = {self.d}")
        if max(self.decays) * self.lr >= 1:
            raise cross("off_subspace.decays", self.decays, f"must be below 1 / lr, which is {1 / self.lr:g}")
        return self


class OffSubspaceParams(TopLevel):
    off_subspace: OffSubspace
