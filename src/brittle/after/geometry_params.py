"""The section `geometry`: which margin an optimiser maximises, and which features its networks rely on (O1, O2)."""

from __future__ import annotations

from typing import Annotated

from brittle.core.params import Section, TopLevel, distinct_integers, distinct_numbers, integer, list_of, number

RULES = "gd|momentum|normalised_gd|sign|signum|adam|sam|muon"
SIZE = integer(2, 10**4)
RATES = distinct_numbers("> 0", lambda v: v > 0)
FCN = r"fcn-[1-9]\d{0,4}-[1-9]\d?"


class Rates(Section):
    """Learning rates, one network for each."""

    sgd: Annotated[list[float], RATES]
    adam: Annotated[list[float], RATES]
    rmsprop: Annotated[list[float], RATES]
    muon: Annotated[list[float], RATES]


class Reliance(Section):
    worlds: Annotated[list[str], list_of("(noisy-)?lms-[357]|ms-3-[57]|ms-5-7", "lms-K, noisy-lms-K or ms-K-L")]
    models: Annotated[list[str], list_of(FCN, "fcn-WIDTH-DEPTH")]
    d: Annotated[int, SIZE]
    gamma: Annotated[float, number("> 0 and < 1/6 (seven slabs must fit)", lambda v: 0 < v < 1 / 6)]
    noise: Annotated[float, number("> 0 and < 1", lambda v: 0 < v < 1)]
    samples: Annotated[int, integer(10, 10**7)]
    test: Annotated[int, integer(10, 10**7)]
    lr: Rates
    momentum: Annotated[float, number("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    batch: Annotated[int, integer(1, 10**5)]
    epochs: Annotated[int, integer(1)]
    target: Annotated[float, number("≥ 0", lambda v: v >= 0)]
    permutations: Annotated[int, integer(1, 1000)]


class Geometry(Section):
    d: Annotated[int, SIZE]
    m: Annotated[int, SIZE]
    width: Annotated[int, SIZE]
    init_scale: Annotated[float, number("≥ 1e-6 and ≤ 1e6", lambda v: 1e-6 <= v <= 1e6)]
    networks: Annotated[list[str], list_of("smooth|relu", "smooth, relu")]
    rules: Annotated[list[str], list_of(RULES, RULES.replace("|", ", "))]
    log10_levels: Annotated[list[float], distinct_numbers("< 0 (the loss must end below 1)", lambda v: v < 0)]
    max_steps: Annotated[int, integer(1)]
    seeds: Annotated[list[int], distinct_integers(0)]
    reliance: Reliance


class GeometryParams(TopLevel):
    geometry: Geometry
