"""Architectures by their names in params.yaml: fcn-100-2, cnn-32-7-1, gru-100-10-1."""

from __future__ import annotations

from brittle.core.errors import BadInput
from brittle.nets.cnn import Cnn
from brittle.nets.family import Family
from brittle.nets.fcn import Fcn
from brittle.nets.gru import Gru

KINDS = {"fcn": Fcn, "cnn": Cnn, "gru": Gru}
SIZES = {"fcn": 2, "cnn": 3, "gru": 3}
NAMES = "fcn-WIDTH-DEPTH, cnn-FILTERS-SIZE-DEPTH (an odd size), gru-UNITS-READS-DEPTH"


def family(name: str, d: int, **settings: object) -> Family:
    """The architecture by its name, sizes in the paper's order; `settings` are an FCN's activation and dropout."""
    kind, *sizes = name.split("-")
    fits = kind in KINDS and len(sizes) == SIZES[kind] and all(size.isdecimal() and int(size) > 0 for size in sizes)
    if not fits or (kind == "cnn" and int(sizes[1]) % 2 == 0):
        raise BadInput(f"{name}: is not an architecture; those are {NAMES}")
    return KINDS[kind](d, *map(int, sizes), **settings)
