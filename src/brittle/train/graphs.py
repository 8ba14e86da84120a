"""CUDA graphs: the many launches of a small training step, recorded once and then replayed as a single one.

BRITTLE_GRAPHS=1 asks for them; they change no result. Off by default, because no real GPU has tried them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from brittle.core.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])

SWITCH = "BRITTLE_GRAPHS"
WARM = 3  # calls before a recording, in which libraries set themselves up; as many as PyTorch's documentation takes
KEPT = 3  # recordings of one function, the least recently used of which goes first, and its memory with it


def wanted() -> bool:
    """Whether the user has asked for CUDA graphs."""
    value = os.environ.get(SWITCH, "0")
    if value not in ("0", "1"):
        raise BadInput(f"{SWITCH} = {value}: must be 1 (record CUDA graphs) or 0 (do not)")
    return value == "1"


def captured(function: F, where: torch.device, *, still: int = 0) -> F:
    """The function, to be called again and again: as a CUDA graph where that is wanted and `where` is a GPU.

    Its arguments and results are tensors, or tuples and dataclasses of them; arguments may hold other values, too. A
    replay repeats what was launched, on the same memory, so the function must not ask for a value of the device, draw
    from a generator of its own or change anything of the program. Tensors of its closure must stay where they are.

    still: the first so many arguments are read, and may be changed, where they are; the others are copied in,
    and results are copied out.

    Shapes, places of arguments that are still, or other values that differ from those before ask for a new recording.
    What differs at every call is therefore never recorded, and launched one by one.
    """
    return _Captured(function, still) if wanted() and where.type == "cuda" else function


class _Captured:
    def __init__(self, function: Callable[..., Any], still: int) -> None:
        self.function, self.still = function, still
        self.seen: dict[Hashable, int | _Recording] = {}  # calls so far, or the recording; the last one used comes last
        self.side = torch.cuda.Stream()

    def __call__(self, *given: Any) -> Any:
        still, moving = given[: self.still], given[self.still :]
        key = *(_told(leaf, True) for leaf in _leaves(still)), *(_told(leaf, False) for leaf in _leaves(moving))
        found = self.seen.pop(key, 0)
        if found == WARM:
            found = _Recording(self.function, still, moving)
        self.seen[key] = found + 1 if isinstance(found, int) else found
        while len(self.seen) > KEPT:
            del self.seen[next(iter(self.seen))]
        if isinstance(found, int):
            return self._warm(given)
        return _copied(found.replayed(moving))

    def _warm(self, given: Sequence[Any]) -> Any:
        """The function itself, on another stream, as PyTorch asks of the calls before a recording."""
        here = torch.cuda.current_stream()
        self.side.wait_stream(here)
        with torch.cuda.stream(self.side):
            result = self.function(*given)
        here.wait_stream(self.side)
        return result


class _Recording:
    def __init__(self, function: Callable[..., Any], still: Sequence[Any], moving: Sequence[Any]) -> None:
        self.inputs = [leaf.clone() for leaf in _leaves(moving) if isinstance(leaf, Tensor)]
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):  # nothing is computed here
            self.result = function(*still, *_refilled(moving, iter(self.inputs)))

    def replayed(self, moving: Sequence[Any]) -> Any:
        _copy(self.inputs, [leaf for leaf in _leaves(moving) if isinstance(leaf, Tensor)])
        self.graph.replay()
        return self.result


def _told(leaf: Any, still: bool) -> Hashable:
    """What a recording depends on: shape and type of a tensor, and its place if it is still; any other value itself."""
    if not isinstance(leaf, Tensor):
        return leaf
    return leaf.shape, leaf.dtype, (leaf.data_ptr(), leaf.stride()) if still else None


def _leaves(tree: Any) -> list[Any]:
    if is_dataclass(tree):
        tree = tuple(vars(tree).values())
    return [leaf for each in tree for leaf in _leaves(each)] if isinstance(tree, tuple) else [tree]


def _refilled(tree: Any, tensors: Iterator[Tensor]) -> Any:
    """The same tuples and dataclasses of other tensors."""
    if is_dataclass(tree):
        return replace(tree, **{name: _refilled(each, tensors) for name, each in vars(tree).items()})
    if isinstance(tree, tuple):
        return tuple(_refilled(each, tensors) for each in tree)
    return next(tensors) if isinstance(tree, Tensor) else tree


def _copied(tree: Any) -> Any:
    tensors = [leaf for leaf in _leaves(tree) if isinstance(leaf, Tensor)]
    copies = [torch.empty_like(tensor) for tensor in tensors]
    _copy(copies, tensors)
    return _refilled(tree, iter(copies))


def _copy(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Copy all tensors of one type by one launch."""
    for dtype in {target.dtype for target in targets}:
        pairs = [pair for pair in zip(targets, sources, strict=True) if pair[0].dtype == dtype]
        torch._foreach_copy_(*map(list, zip(*pairs, strict=True)))
