"""The section `images`: where MNIST and CIFAR-10 may be found, and names that belong to them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from brittle.params.base import Rule, Section, one_of
from brittle.params.headline import Headline

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")  # of CIFAR-10


def list_of(pattern: str, words: str, least: int = 1) -> Rule:
    """A list of different names, each matching the pattern."""

    def holds(value: Any) -> bool:
        if not isinstance(value, list) or not least <= len(value) == len(set(map(str, value))):
            return False
        return all(isinstance(v, str) and re.fullmatch(pattern, v) for v in value)

    return Rule(f"a list{', which may be empty,' if least == 0 else ''} of different names: {words}", holds)


def epochs_in_order() -> Rule:
    def holds(value: Any) -> bool:
        ints = isinstance(value, list) and all(isinstance(v, int) and not isinstance(v, bool) and v >= 1 for v in value)
        return ints and value == sorted(set(value))

    return Rule("a list, which may be empty, of increasing integers ≥ 1", holds)


class Images(Section):
    root: Annotated[str, Rule("the path of a folder, which need not exist", lambda v: isinstance(v, str) and v != "")]
    precision: Annotated[str, one_of("float32", "bfloat16")]
    compile: Annotated[bool, Rule("true or false", lambda v: isinstance(v, bool))]


class ImagesParams(Headline):
    images: Images
