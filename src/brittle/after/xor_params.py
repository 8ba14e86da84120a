"""The sections `xor` and `mid_training`: two-layer networks beyond linear separability (Tsoy, Konstantinov 2024)."""

from __future__ import annotations

from typing import Annotated

from brittle.core.params import Rule, Section, TopLevel, distinct_integers, distinct_numbers, integer, number, one_of


class Xor(Section):
    angles: Annotated[list[float], distinct_numbers("> 0 and ≤ 180", lambda v: 0 < v <= 180)]
    n: Annotated[
        int, Rule("a multiple of 4 ≥ 16 and ≤ 10⁶", lambda v: type(v) is int and 16 <= v <= 10**6 and v % 4 == 0)
    ]
    widths: Annotated[list[int], distinct_integers(4)]
    init_scale: Annotated[float, number("≥ 1e-6 and ≤ 1e6", lambda v: 1e-6 <= v <= 1e6)]
    seeds: Annotated[list[int], distinct_integers(0)]
    log10_target: Annotated[float, number("< -0.2 (below ln 2)", lambda v: v < -0.2)]
    fall: Annotated[float, number("> 0 and < 1", lambda v: 0 < v < 1)]
    stride: Annotated[float, number("> 0 and < 1", lambda v: 0 < v < 1)]
    max_steps: Annotated[int, integer(1)]


class XorParams(TopLevel):
    xor: Xor


class MidTraining(Section):
    world: Annotated[str, one_of("lms-3", "lms-5", "lms-7")]
    ds: Annotated[list[int], distinct_integers(2)]
    width: Annotated[int, integer(1, 10**5)]
    depth: Annotated[int, integer(1, 20)]
    samples: Annotated[int, integer(10, 10**7)]
    probed: Annotated[int, integer(10, 10**6)]
    lr: Annotated[float, number("> 0", lambda v: v > 0)]
    batch: Annotated[int, integer(1)]
    epochs: Annotated[list[int], distinct_integers(0)]
    seeds: Annotated[list[int], distinct_integers(0)]


class MidTrainingParams(TopLevel):
    mid_training: MidTraining
