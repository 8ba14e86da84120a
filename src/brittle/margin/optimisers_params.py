"""The section `optimisers`: VYS §7's open questions, other optimisers and deeper networks."""

from __future__ import annotations

from typing import Annotated, Any

from brittle.core.params import MOST, Rule, Section, TopLevel, distinct_integers, distinct_numbers, integer, number

LARGE = round(MOST**0.5)  # m · max(d, width) ≤ MOST

RULES = ("gd", "normalised_gd", "sign", "adam", "sam", "muon", "momentum", "signum")


def _some_rules(value: Any) -> bool:
    return (
        isinstance(value, list) and 0 < len(value) == len(set(map(str, value))) and set(map(str, value)) <= set(RULES)
    )


SOME_RULES = Rule(f"a list of different ones of {', '.join(RULES)}", _some_rules)
SCALES = distinct_numbers("≥ 1e-6 and ≤ 1e6", lambda v: 1e-6 <= v <= 1e6)
SIZES = Rule(
    f"a list of one or more different integers ≥ 2 and ≤ {LARGE}",
    lambda v: distinct_integers(2).holds(v) and max(v) <= LARGE,
)


class Growth(Section):
    ds: Annotated[list[int], SIZES]
    rules: Annotated[list[str], SOME_RULES]
    init_scales: Annotated[list[float], SCALES]


class Optimisers(Section):
    d: Annotated[int, integer(2, LARGE)]
    m: Annotated[int, integer(2, LARGE)]
    width: Annotated[int, integer(1, LARGE)]
    rules: Annotated[list[str], SOME_RULES]
    deep_widths: Annotated[list[int], Rule("a list of two or more integers ≥ 1", lambda v: _widths(v))]
    deep_rules: Annotated[list[str], SOME_RULES]
    init_scales: Annotated[list[float], SCALES]
    growth: Growth
    seeds: Annotated[list[int], distinct_integers(0)]
    log10_target: Annotated[float, number("< 0 (the loss must end below 1)", lambda v: v < 0)]
    max_steps: Annotated[int, integer(1)]
    certified: Annotated[int, integer(1)]


def _widths(value: Any) -> bool:
    ints = isinstance(value, list) and all(isinstance(v, int) and not isinstance(v, bool) and v >= 1 for v in value)
    return ints and len(value) >= 2


class OptimisersParams(TopLevel):
    optimisers: Optimisers
