"""Make the numerical libraries compute the same on every machine: set here, before any of them is loaded.

numpy, scipy, torch and the libraries inside them (OpenBLAS, MKL, oneDNN) choose their kernels by the processor, and
split sums over as many threads as it has cores. Either changes the last bits of a result, training amplifies them into
the first digits, and a verdict may flip. So the kernels are those of AVX2, which every x86 processor since 2013 has,
and a stage has one thread: it is stages that run side by side. Variables that the user has set stay as they are.
BRITTLE_THREADS sets another number of threads; BRITTLE_PORTABLE=0 leaves everything to the libraries.
"""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

KERNELS = {
    "ATEN_CPU_CAPABILITY": "avx2",  # torch's own loops
    "MKL_CBWR": "AVX2",  # torch's products, factorisations, exp: "conditional bitwise reproducibility"
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # torch's convolutions
    "OPENBLAS_CORETYPE": "Haswell",  # numpy's and scipy's products and factorisations, one OpenBLAS each
    "NPY_DISABLE_CPU_FEATURES": "X86_V4",  # numpy's own loops; levels above it need this one
}
ALONE = {"OPENBLAS_NUM_THREADS": "1"}  # numpy's products are small here
# How many times a waiting thread polls before it sleeps. The default, 300,000, takes milliseconds from other processes
# that want the core; zero costs a wake-up at every step (benchmarks/contention.py).
WAITING = {"GOMP_SPINCOUNT": "10000"}


def fix() -> None:
    """Set the variables that the libraries read when they are loaded, and fix MKL as soon as torch is loaded."""
    if os.environ.get("BRITTLE_PORTABLE") == "0":
        return
    waiting = {} if "OMP_WAIT_POLICY" in os.environ else WAITING  # which would override that policy
    os.environ |= ALONE | KERNELS | waiting | _figures() | os.environ
    if "torch" in sys.modules:
        _fix_mkl(sys.modules["torch"])
    elif not any(isinstance(finder, _WhenTorchIsLoaded) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenTorchIsLoaded())


def _figures() -> dict[str, str]:
    """Keep matplotlib's list of fonts in the virtual environment.

    HOME, its usual place, may be read-only, and settings that a user keeps there would change our figures.
    """
    ours = sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK)
    return {"MPLCONFIGDIR": str(Path(sys.prefix, "matplotlib"))} if ours else {}


def threads(otherwise: int = 1) -> int:
    """How many threads a stage is to have: what the user says, or else this number."""
    wanted = os.environ.get("BRITTLE_THREADS", str(otherwise))
    if not (wanted.isdecimal() and int(wanted) > 0):
        from brittle.core.errors import BadInput

        raise BadInput(f"BRITTLE_THREADS = {wanted}: must be a number of threads, 1 or more")
    return int(wanted)


def use_threads(otherwise: int = 1) -> None:
    """Make torch use this number of threads from here on, however many cores there are.

    OMP_NUM_THREADS, which clusters set for other purposes, is ignored. Two threads have to wait for each other in every
    step: they do less than two stages of one thread each, and crawl if another process occupies one of their cores.
    """
    wanted = threads(otherwise)
    if "torch" in sys.modules and os.environ.get("BRITTLE_PORTABLE") != "0":
        sys.modules["torch"].set_num_threads(wanted)


class _WhenTorchIsLoaded(importlib.abc.MetaPathFinder):
    """Fix MKL after `import torch`, if that ever runs: torch takes seconds to load, and not all stages need it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _fix_mkl(module)

            spec.loader.exec_module = exec_module
        return spec


def _fix_mkl(torch: ModuleType) -> None:
    """Have MKL honour MKL_CBWR=AVX2 on processors that Intel did not make.

    There it treats the value as `AUTO`, although it has the kernels and the processor can run them. It calls
    `mkl_serv_intel_cpu_true`, whose first instruction, `mov eax, [rip + offset]`, loads the cached answer (-1: not yet
    known). We store the answer before the first call. A library with different code is left alone, and
    `make portable` then names what differs.
    """
    library = Path(torch.__file__).with_name("lib") / "libtorch_cpu.so"
    if os.environ["MKL_CBWR"] != KERNELS["MKL_CBWR"] or not library.exists():
        return
    try:
        ask = ctypes.CDLL(str(library)).mkl_serv_intel_cpu_true
    except (AttributeError, OSError):  # a torch without MKL
        return
    begin = ctypes.cast(ask, ctypes.c_void_p).value
    code = ctypes.string_at(begin, 6)
    if code[:2] == b"\x8b\x05":
        answer = ctypes.c_int.from_address(begin + 6 + int.from_bytes(code[2:], "little", signed=True))
        if answer.value == -1:
            answer.value = 1
