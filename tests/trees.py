"""Lists, tuples and dictionaries of anything, however deep. (torch's own functions for them take most of the time.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def leaves(tree: Any) -> list[Any]:
    """What lists, tuples and dictionaries hold."""
    if isinstance(tree, dict):
        tree = tree.values()
    elif not isinstance(tree, (list, tuple)):
        return [tree]
    return [leaf for each in tree for leaf in (leaves(each) if isinstance(each, (list, tuple, dict)) else (each,))]


def mapped(change: Callable[[Any], Any], tree: Any) -> Any:
    """The same lists, tuples and dictionaries of changed leaves."""
    if isinstance(tree, dict):
        return {name: mapped(change, each) for name, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)([mapped(change, each) for each in tree])
    return change(tree)
