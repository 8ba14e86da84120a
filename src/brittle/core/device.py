"""Where computations run, and how they give the same bytes each time."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

import numpy as np
import torch
from torch import Tensor

from brittle.core import store
from brittle.core.errors import BadInput


def pick(name: str) -> torch.device:
    """The device that `device:` in params.yaml names; `auto` is CUDA if there is one, else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() or _promised() else "cpu"
    if name == "cuda":
        if not torch.cuda.is_available():
            if promised := _promised():
                raise BadInput(
                    f"CUDA_VISIBLE_DEVICES = {promised}: torch finds no such CUDA device; unset it, or device = cpu"
                )
            raise BadInput("params.yaml: device = cuda: this machine has no CUDA device; use auto or cpu")
        # The operations we use are deterministic on the CPU; CUDA has to be told, before cuBLAS starts.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # a safeguard that writes every new tensor twice
    # Products and convolutions in float32, not in TF32, which keeps ten bits of each factor.
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    store.computed_on(f"cuda, {torch.cuda.get_device_name()}" if name == "cuda" else "")
    return torch.device(name)


def _promised() -> str:
    """The GPU that was given to this process by name, perhaps in vain: then `auto` must not mean the CPU."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    return named if named.isdecimal() or named.startswith(("GPU-", "MIG-")) else ""


# The products and convolutions of a training step, in bfloat16.
BFLOAT16 = """
import brittle, torch
x = torch.ones(64, 16, 32, 32, requires_grad=True)
with torch.autocast("cpu", torch.bfloat16):
    torch.nn.Linear(1024, 32)(torch.nn.Conv2d(16, 16, 3, padding=1)(x).flatten(2)).sum().backward()
"""


def check_bfloat16(where: torch.device) -> None:
    """Refuse bfloat16 where the processor claims to support it but the process then crashes.

    This happens with AMX in some virtual machines. The only way to know is to try, in a separate process.
    """
    if where.type == "cpu":
        tried = subprocess.run([sys.executable, "-c", BFLOAT16], capture_output=True, check=False)
        if tried.returncode:
            why = signal.Signals(-tried.returncode).name if tried.returncode < 0 else f"exit code {tried.returncode}"
            raise BadInput(f"params.yaml: images.precision = bfloat16: fails on this processor ({why}); use float32")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, the CPU's allocator or CUDA's says so. (Other CUDA errors speak of memory, too.)"""
    words = ("can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(each in str(error) for each in words)


def sqrt(x: Tensor) -> Tensor:
    """The square roots of float64 numbers, each rounded correctly.

    torch takes them from MKL, which begins with the processor's own approximation of 1/√x; those of Intel and AMD
    differ, and so does one root in a hundred. (float64 logarithms differ in the same way; float32 roots do not.)
    """
    return x.sqrt() if x.is_cuda else torch.from_numpy(np.sqrt(x.numpy()))


def keep_freed_memory() -> None:
    """Make glibc keep freed buffers of more than 32 MB for reuse, too.

    By default each is returned to the system when it is freed, and every page of the next one is zeroed again: with
    tensors of 100 MB that takes almost half of the time of a training step. This is for computations that allocate the
    same few sizes again and again; others would fragment the memory.
    """
    mmap_max, trim_threshold = -4, -1
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library, without these settings
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(mmap_max, 0)
        mallopt(trim_threshold, 2**31 - 1)
