"""A CUDA device that is not there: its tensors say `cuda:0`, obey CUDA's rules and are computed on the CPU.

    with pretended() as device:
        torch.ones(3, device="cuda").cumsum(0)
    device.launches, device.waits, device.wrong     # counted by the line of brittle that asked

Each tensor carries one of the CPU, to which every operator is applied, so the numbers are the CPU's. What a CUDA device
would refuse raises (cuda_rules.py): tensors of host and device together, generators of the other one, `.numpy()`,
operators without a deterministic version, layouts that a fused optimiser cannot take. Random numbers of the device's
generators are others than the CPU's of the same seed, as on CUDA. Streams and CUDA graphs obey CUDA's rules, too
(pretend_graphs.py). What cannot be seen here: kernels that compute other last digits, races inside a kernel, memory
that runs out, speed.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.optim import optimizer
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

import cuda_rules as rules
import pretend_graphs as graphs
from trees import leaves, mapped

CUDA = torch.device("cuda:0")
aten = torch.ops.aten
TrueGenerator = torch.Generator
OTHER = 0x5DEECE66D  # CUDA's random numbers of a seed are not the CPU's
SOURCE = Path(__file__).with_suffix(".cpp")
COMPILER = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")


@cache
def compiled() -> ctypes.CDLL:
    """The C++ part, compiled in ten seconds and kept in the virtual environment."""
    text = SOURCE.read_text(encoding="utf-8")
    name = f"pretend_cuda-{hashlib.sha256((text + torch.__version__).encode()).hexdigest()[:12]}.so"
    file = Path(sys.prefix) / name
    if not file.exists():
        lib = Path(torch.__file__).parent
        folder = Path(tempfile.mkdtemp())
        found = [f"-I{lib}/include", f"-L{lib}/lib", f"-Wl,-rpath,{lib}/lib", "-lc10", "-ltorch_cpu"]
        command = [COMPILER, "-std=c++20", "-O0", "-shared", "-fPIC", str(SOURCE), *found, "-o", str(folder / name)]
        subprocess.run(command, check=True)
        try:
            shutil.copy(folder / name, temporary := file.with_suffix(f".{folder.name}"))
            temporary.replace(file)
        except OSError:  # the environment cannot be written to
            file = folder / name
    return ctypes.CDLL(str(file))


class Wrong(RuntimeError):
    """What a CUDA device would not do."""


class OnCuda(torch.Tensor):
    """A tensor of the pretended device."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: type, inner: torch.Tensor) -> OnCuda:
        assert inner.device.type == "cpu"
        assert not isinstance(inner, OnCuda)
        about = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        out = torch.Tensor._make_wrapper_subclass(cls, inner.size(), layout=inner.layout, device=CUDA, **about)
        out.inner = inner
        return out

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return Device.now.run(op, args, kwargs or {})

    def numpy(self, *, force: bool = False) -> Any:
        Device.now.fail("can't convert cuda:0 device type tensor to numpy; use Tensor.cpu()", TypeError)

    def __array__(self, *args: Any) -> Any:
        return self.numpy()

    # C++ would make these tensors past the dispatcher.
    def new_tensor(self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
        return torch.tensor(data, dtype=dtype or self.dtype, device=device or CUDA, requires_grad=requires_grad)

    def __getitem__(self, index: Any) -> Any:
        return torch.Tensor.__getitem__(self, _listed(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        torch.Tensor.__setitem__(self, _listed(index), value)

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __format__(self, form: str) -> str:
        return format(self.item() if self.ndim == 0 else repr(self), form)

    def __repr__(self) -> str:
        return f"OnCuda({self.inner!r})"


def _listed(index: Any) -> Any:
    if isinstance(index, list):
        return torch.tensor(index, device=CUDA)
    return tuple(map(_listed, index)) if isinstance(index, tuple) else index


def _made_here(true: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.tensor` on the device: C++ would make it past the dispatcher."""

    def made(data: Any, *, dtype: Any = None, device: Any = None, **options: Any) -> Any:
        if isinstance(data, OnCuda) or device is None or torch.device(device).type == "cpu":
            return true(data, dtype=dtype, device=device, **options)
        return true(data, dtype=dtype, **options).to(device)

    return made


class CudaGenerator(TrueGenerator):
    """What `torch.Generator("cuda")` gives."""

    device = CUDA

    def __new__(cls, device: Any = "cpu") -> TrueGenerator:
        if torch.device(device).type == "cpu":
            return TrueGenerator()
        made = TrueGenerator.__new__(cls)
        Device.generators[made._cdata] = made
        return made

    def __init__(self, device: Any = "cpu") -> None:
        pass

    def manual_seed(self, seed: int) -> CudaGenerator:
        self.seeded = seed
        TrueGenerator.manual_seed(self, (seed ^ OTHER) % 2**63)
        return self

    def initial_seed(self) -> int:
        return self.seeded


class Device(TorchDispatchMode):
    """The device: it runs every operator, checks the rules, and counts by the line of brittle that asked."""

    now: Device | None = None
    generators: dict[int, TrueGenerator] = {}  # noqa: RUF012, all that were made on the device

    def __init__(self) -> None:
        super().__init__()
        self.launches, self.waits, self.uploads, self.random, self.wrong = (Counter() for _ in range(5))
        self.recordings = self.replays = 0  # of CUDA graphs; a replay is a launch, too
        self.streams = graphs.Streams(self.fail)
        self.graph: graphs.Graph | None = None  # the one that is being captured
        self.kernels: list[tuple[float, float]] | None = None  # (bytes, operations) of each launch, if wanted
        self.default = TrueGenerator()  # of the numbers drawn without a generator

    @staticmethod
    def line() -> str:
        """The line of brittle, or of a plugin, that runs."""
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if "/src/brittle/" in file or "/plugins/" in file:
                return f"{file.rpartition('/src/brittle/')[2]}:{frame.f_lineno}"
            frame = frame.f_back
        return "a test"

    def fail(self, message: str, kind: type[Exception] = Wrong) -> None:
        self.wrong[self.line(), message] += 1
        raise kind(message)

    def __torch_dispatch__(self, op: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self.run(op, args, kwargs or {})

    def run(self, op: Any, args: tuple, kwargs: dict) -> Any:
        flat = leaves((args, kwargs))
        ours = [each for each in flat if isinstance(each, OnCuda)]
        asked = kwargs.get("device")
        to_cuda = asked is not None and torch.device(asked).type == "cuda"
        generator = next((each for each in flat if isinstance(each, TrueGenerator)), None)
        if not ours and not to_cuda:
            if generator is not None and generator._cdata in self.generators:
                self.fail(f"{op}: Expected a 'cpu' device type for generator but found 'cuda'")
            return op(*args, **kwargs)
        if op is aten.item.default:
            op = aten._local_scalar_dense.default
        host = [each for each in flat if isinstance(each, torch.Tensor) and not isinstance(each, OnCuda)]
        self._check(op, args, kwargs, ours, host)
        here = to_cuda or asked is None  # where the result is
        if generator is not None and here != (generator._cdata in self.generators):
            self.fail(f"{op}: Expected a '{'cuda' if here else 'cpu'}' device type for generator")
        kind = self._count(op, args, ours, host, to_cuda, asked)
        if asked is not None:
            kwargs = kwargs | {"device": torch.device("cpu")}
        mine = {id(tensor.inner): tensor for tensor in ours}
        given = args, kwargs
        args, kwargs = mapped(_inner, args), mapped(_inner, kwargs)
        drawn = rules.is_random(op)
        if drawn:
            self.random[self.line(), "own stream" if generator is not None else "the device's stream"] += 1
        with self.own_stream() if drawn and generator is None else ExitStack():
            out = self.graph.record(op, args, kwargs, host, generator) if self.graph else op(*args, **kwargs)
        if kind == "launch" and self.kernels is not None:
            moved = sum(t.nbytes for t in leaves((args, out)) if isinstance(t, torch.Tensor))
            kernels = self.graph.kernels if self.graph else self.kernels
            kernels.append((moved, rules.operations(op, args, kwargs, out)))
        if not here or (not ours and rules.name_of(op) == "copy_"):
            return out
        if torch.Tag.inplace_view in op.tags:  # `squeeze_` and the like give the outer tensor another shape, too
            with no_dispatch():
                op(*given[0], **given[1])
        for tensor in ours:
            assert tensor.shape == tensor.inner.shape, f"{op}: another shape, in place"
        return mapped(lambda each: mine[id(each)] if id(each) in mine else _outer(each), out)

    def _check(self, op: Any, args: tuple, kwargs: dict, ours: list, host: list) -> None:
        words = rules.wrong_mix(op, args, ours, host) or rules.wrong_strides(op, args)
        if not words and torch.are_deterministic_algorithms_enabled():
            words = rules.wrong_order(op, args, kwargs)
        if words:
            self.fail(words)

    def _count(self, op: Any, args: tuple, ours: list, host: list, to_cuda: bool, asked: Any) -> str:
        """Count what the operator costs; return what it is: an upload, a wait, a launch, or nothing."""
        line, copies = self.line(), rules.name_of(op) == "copy_"
        upload = host and (to_cuda or (copies and isinstance(args[0], OnCuda)))
        home = (asked is not None and not to_cuda) or (copies and not isinstance(args[0], OnCuda))
        why = "a copy to the host" if home else rules.waits(op, args)
        if self.graph and (why or upload or any(tensor.ndim for tensor in host)):
            self.fail(f"{op}: operation not permitted when stream is capturing: {why or 'a copy from the host'}")
        if upload:
            self.uploads[line] += 1
            self.streams.launched()
            return "upload"
        if why:
            self.waits[f"{line} {why}"] += 1
            self.streams.waited()
        if home or not rules.launches(op):
            return "wait" if why else ""
        if not self.graph:
            self.launches[line] += 1
            self.streams.launched()
        return "launch"

    @contextmanager
    def own_stream(self) -> Iterator[None]:
        """Draw from the device's own stream instead of the CPU's."""
        before = torch.default_generator.get_state()
        torch.default_generator.set_state(self.default.get_state())
        try:
            yield
        finally:
            self.default.set_state(torch.default_generator.get_state())
            torch.default_generator.set_state(before)

    def set_state(self, state: torch.Tensor, device: Any = "cuda") -> None:
        if state.device.type != "cpu":
            raise TypeError("expected a torch.ByteTensor")
        self.default.set_state(state)

    def seed(self, seed: int) -> None:
        self.default.manual_seed((int(seed) ^ OTHER) % 2**63)


def _inner(each: Any) -> Any:
    return each.inner if isinstance(each, OnCuda) else each


def _outer(each: Any) -> Any:
    return OnCuda(each) if isinstance(each, torch.Tensor) and not isinstance(each, OnCuda) else each


@contextmanager
def pretended() -> Iterator[Device]:
    """Inside the block, this machine has a CUDA device."""
    compiled()
    device = Device()
    fakes = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: "a pretended device",
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda including_emulation=True: True,
        "get_rng_state": lambda device="cuda": device_state(),
        "set_rng_state": device.set_state,
        "manual_seed": device.seed,
        "manual_seed_all": device.seed,
        "_lazy_init": lambda: None,
        "_is_in_bad_fork": lambda: False,
        "empty_cache": lambda: None,
    }

    def device_state() -> torch.Tensor:
        return device.default.get_state()

    swap = torch.__future__
    before = swap.get_swap_module_params_on_conversion(), torch.get_float32_matmul_precision()
    deterministic, cudnn = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.allow_tf32
    with ExitStack() as stack:
        for name, fake in fakes.items():
            stack.enter_context(patch.object(torch.cuda, name, fake))
        stack.enter_context(graphs.patched(device))
        stack.enter_context(patch.object(torch, "Generator", CudaGenerator))
        for name in ("tensor", "as_tensor"):
            stack.enter_context(patch.object(torch, name, _made_here(getattr(torch, name))))
        types = optimizer._foreach_supported_types  # those for which optimisers have fused versions
        stack.enter_context(patch.object(optimizer, "_foreach_supported_types", [*types, OnCuda]))
        stack.enter_context(torch.autograd.set_multithreading_enabled(False))  # one thread has the mode
        stack.enter_context(patch.object(Device, "now", device))
        swap.set_swap_module_params_on_conversion(True)  # `module.to` keeps its parameters' identity
        try:
            with device:
                yield device
        finally:
            swap.set_swap_module_params_on_conversion(before[0])
            torch.set_float32_matmul_precision(before[1])
            torch.use_deterministic_algorithms(deterministic)
            torch.backends.cudnn.allow_tf32 = cudnn
            Device.generators.clear()
