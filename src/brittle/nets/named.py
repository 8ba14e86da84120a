"""Architectures by the names that params.yaml has for them: fcn-100-2, cnn-32-7-1, gru-100-10-1."""

from __future__ import annotations

from brittle.nets.cnn import Cnn
from brittle.nets.family import Family
from brittle.nets.fcn import Fcn
from brittle.nets.gru import Gru
from brittle.params.base import BadInput

KINDS = {"fcn": Fcn, "cnn": Cnn, "gru": Gru}
SIZES = {"fcn": 2, "cnn": 3, "gru": 3}
NAMES = "fcn-WIDTH-DEPTH, cnn-FILTERS-SIZE-DEPTH (an odd size), gru-UNITS-READS-DEPTH"


def family(name: str, d: int, **settings: object) -> Family:
    """The sizes in the order of the paper's names; `settings` are an FCN's activation and dropout."""
    kind, *sizes = name.split("-")
    fits = kind in KINDS and len(sizes) == SIZES[kind] and all(size.isdecimal() and int(size) > 0 for size in sizes)
    if not fits or (kind == "cnn" and int(sizes[1]) % 2 == 0):
        raise BadInput(f"{name}: is not an architecture; those are {NAMES}")
    return KINDS[kind](d, *map(int, sizes), **settings)


def title(name: str) -> str:
    """The paper's name: (100, 2)-FCN."""
    kind, *sizes = name.split("-")
    return f"({', '.join(sizes)})-{kind.upper()}"
