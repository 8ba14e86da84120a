"""Streams and CUDA graphs of the device that is not there (pretend_cuda.py).

While a graph is captured nothing is computed, as on CUDA: what operators have changed is put back at the end, and what
they have made holds no numbers. A replay executes the same operators on the same memory, with the values that the
program had passed by then. Errors are, as on CUDA: to wait for the device or copy from or to the host while capturing,
generators that the graph does not know, capturing on the main stream, and work that reads what another stream may not
have finished. Memory that a graph reads but does not own, and that has been freed since, would hold anything on CUDA;
here a replay says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._mode_utils import no_dispatch

import cuda_rules as rules
from trees import leaves, mapped


class Stream:
    """What `torch.cuda.Stream` gives: when it was last given work, and how much of the others' it has waited for."""

    def __init__(self, streams: Streams) -> None:
        self.last, self.seen = 0, {}
        streams.every.add(self)

    def wait_stream(self, other: Stream) -> None:
        for each, last in (other.seen | {other: other.last}).items():
            self.seen[each] = max(last, self.seen.get(each, 0))


class Streams:
    """All streams of the device, and the one that work is given to."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        self.every: set[Stream] = set()
        self.fail, self.ticks, self.main = fail, 0, Stream(self)
        self.now = self.main

    def launched(self) -> None:
        """The current stream is given work, which may read all that was computed before."""
        if any(other.last > self.now.seen.get(other, 0) for other in self.every if other is not self.now):
            self.fail("a stream reads what another one may not have finished: wait_stream is missing")
        self.ticks = self.now.last = self.ticks + 1

    def waited(self, *finished: Stream) -> None:
        """The program has waited until these streams, or the current one, had finished."""
        for each in self.every:
            each.seen |= {other: other.last for other in finished or (self.now,)}

    @contextmanager
    def using(self, stream: Stream) -> Iterator[None]:
        before, self.now = self.now, stream
        try:
            yield
        finally:
            self.now = before


@dataclass(frozen=True)
class Outside:
    """A tensor that a graph reads or changes but does not own: an address, which does not keep the memory."""

    storage: StorageWeakRef
    form: tuple[Any, ...]  # offset, sizes, strides
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> Outside:
        form = tensor.storage_offset(), tensor.size(), tensor.stride()
        return cls(StorageWeakRef(tensor.untyped_storage()), form, tensor.dtype)

    def tensor(self) -> Tensor | None:
        storage = torch.UntypedStorage._new_with_weak_ptr(self.storage.cdata)
        return None if storage is None else torch.empty(0, dtype=self.dtype).set_(storage, *self.form)


@dataclass(frozen=True)
class Call:
    """An operator that a graph has recorded, and what it made."""

    op: Any
    args: tuple
    kwargs: dict
    made: list[Tensor]
    draws: bool  # from the device's stream of random numbers


class Graph:
    """What `torch.cuda.CUDAGraph` gives."""

    def __init__(self, device: Any) -> None:
        self.device, self.calls, self.kernels = device, [], []
        self.own: dict[int, torch.UntypedStorage] = {}  # memory that was taken while capturing
        self.before: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}  # what was changed; a copy

    def capture_begin(self, *pool: Any, **options: Any) -> None:
        if self.device.streams.now is self.device.streams.main or self.device.graph:
            self.device.fail("CUDA graphs must be captured on a non-default stream, one at a time")
        self.device.graph = self

    def record(self, op: Any, args: tuple, kwargs: dict, host: list[Tensor], generator: Any) -> Any:
        """Execute an operator for the shapes of its results, and note it."""
        if generator is not None:
            self.device.fail(f"{op}: draws from a generator that is not registered with the graph")
        for changed in leaves(rules.written(op, args, kwargs)):
            self._remember(changed.untyped_storage())
        frozen = {id(tensor) for tensor in host}  # numbers of the host are parameters of the launch
        held = mapped(lambda leaf: self._held(leaf, frozen), (args, kwargs))
        given = {each.untyped_storage()._cdata for each in leaves((args, kwargs)) if isinstance(each, Tensor)}
        out = op(*args, **kwargs)
        made = [each for each in leaves(out) if isinstance(each, Tensor)]
        storages = [each.untyped_storage() for each in made]
        self.own |= {storage._cdata: storage for storage in storages if storage._cdata not in given}
        if rules.launches(op):
            self.calls.append(Call(op, *held, made, rules.is_random(op)))
        return out

    def _remember(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata not in self.own:
            self.before.setdefault(storage._cdata, (storage, storage.clone()))

    def _held(self, leaf: Any, frozen: set[int]) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if id(leaf) in frozen:
            return leaf.clone()
        return leaf if leaf.untyped_storage()._cdata in self.own else Outside.of(leaf)

    def capture_end(self) -> None:
        """Make it as if nothing had been computed."""
        self.device.graph = None
        for storage, copy in self.before.values():
            storage.copy_(copy)
        self.before.clear()
        for made in (tensor for call in self.calls for tensor in call.made):
            if made.untyped_storage()._cdata in self.own and made.is_floating_point():
                made.fill_(math.nan)
        self.device.recordings += 1

    def replay(self) -> None:
        if self.device.graph:
            self.device.fail("a graph cannot be replayed while another one is captured")
        self.device.launches[self.device.line()] += 1
        self.device.replays += 1
        self.device.streams.launched()
        if self.device.kernels is not None:
            self.device.kernels += self.kernels
        with no_dispatch(), torch.no_grad():
            for call in self.calls:
                self._execute(call)

    def _execute(self, call: Call) -> None:
        args, kwargs = mapped(self._found, (call.args, call.kwargs))
        with self.device.own_stream() if call.draws else ExitStack():
            out = call.op(*args, **kwargs)
        for kept, new in zip(call.made, (each for each in leaves(out) if isinstance(each, Tensor)), strict=True):
            if kept.data_ptr() != new.data_ptr():
                kept.copy_(new)

    def _found(self, leaf: Any) -> Any:
        if not isinstance(leaf, Outside):
            return leaf
        tensor = leaf.tensor()
        if tensor is None:
            self.device.fail("a replay reads or writes memory that has been freed since the graph was captured")
        return tensor


@contextmanager
def patched(device: Any) -> Iterator[None]:
    """The parts of torch.cuda that concern streams and graphs."""
    streams = device.streams

    def synchronize(where: Any = None) -> None:
        if device.graph:
            device.fail("synchronize: operation not permitted when stream is capturing")
        streams.waited(*streams.every)

    fakes = {
        "CUDAGraph": lambda keep_graph=False: Graph(device),
        "Stream": lambda device=None, priority=0: Stream(streams),
        "stream": streams.using,
        "current_stream": lambda device=None: streams.now,
        "default_stream": lambda device=None: streams.main,
        "is_current_stream_capturing": lambda: device.graph is not None,
        "synchronize": synchronize,
    }
    with ExitStack() as stack:
        for name, fake in fakes.items():
            stack.enter_context(patch.object(torch.cuda, name, fake))
        stack.enter_context(patch.object(torch.cuda.graph, "default_capture_stream", None))
        stack.enter_context(patch.object(torch._C, "_host_emptyCache", lambda: None, create=True))
        yield
