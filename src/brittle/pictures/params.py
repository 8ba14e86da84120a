"""The section `images`, shared by all that is trained on MNIST and CIFAR-10; also the names of CIFAR-10's classes."""

from __future__ import annotations

from typing import Annotated, Any

from brittle.core.params import Rule, Section, TopLevel, one_of


def epochs_in_order() -> Rule:
    def holds(value: Any) -> bool:
        ints = isinstance(value, list) and all(isinstance(v, int) and not isinstance(v, bool) and v >= 1 for v in value)
        return ints and value == sorted(set(value))

    return Rule("a list, which may be empty, of increasing integers ≥ 1", holds)


class Images(Section):
    root: Annotated[str, Rule("the path of a folder, which need not exist", lambda v: isinstance(v, str) and v != "")]
    precision: Annotated[str, one_of("float32", "bfloat16")]
    compile: Annotated[bool, Rule("true or false", lambda v: isinstance(v, bool))]


class ImagesParams(TopLevel):
    images: Images
