"""The section `recipes`: SB Tables 4 and 5, other activations, optimisers and regularisers."""

from __future__ import annotations

import re
from typing import Annotated, Any

from brittle.core.params import Rule, Section, distinct_integers, distinct_numbers, integer
from brittle.slabs.params import (
    ACTIVATIONS,
    FCN,
    MOMENTUM,
    OPTIMISERS,
    POSITIVE,
    SIMPLE,
    SIMPLE_WORLD,
    SIMPLE_WORLDS,
    SlabsParams,
    name,
    names,
    some_of,
)


def _cells(value: Any) -> bool:
    cell = f"({'|'.join(ACTIVATIONS)})-({'|'.join(OPTIMISERS)})@({SIMPLE})"
    return isinstance(value, list) and all(isinstance(v, str) and re.fullmatch(cell, v) for v in value)


class Rates(Section):
    """A learning rate for each optimiser, and one for those other than SGD on networks with tanh."""

    sgd: Annotated[float, POSITIVE]
    adam: Annotated[float, POSITIVE]
    rmsprop: Annotated[float, POSITIVE]
    tanh: Annotated[float, POSITIVE]


class Regularised(Section):
    world: Annotated[str, SIMPLE_WORLD]
    models: Annotated[list[str], names(FCN, "fcn-WIDTH-DEPTH")]
    dropouts: Annotated[list[float], distinct_numbers("≥ 0 and < 1", lambda v: 0 <= v < 1)]
    decays: Annotated[list[float], distinct_numbers("≥ 0", lambda v: v >= 0)]
    epochs: Annotated[int, integer(1)]


class Recipes(Section):
    model: Annotated[str, name(FCN, "fcn-WIDTH-DEPTH")]
    worlds: Annotated[list[str], SIMPLE_WORLDS]
    skip: Annotated[list[str], Rule("a list of ACTIVATION-OPTIMISER@WORLD, or []", lambda v: _cells(v))]
    activations: Annotated[list[str], some_of(*ACTIVATIONS)]
    optimisers: Annotated[list[str], some_of(*OPTIMISERS)]
    lr: Rates
    momentum: Annotated[float, MOMENTUM]
    seeds: Annotated[list[int], distinct_integers(0)]
    regularised: Regularised


class RecipesParams(SlabsParams):
    recipes: Recipes
