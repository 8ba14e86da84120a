"""Where computations run, and that they give the same bytes each time."""

from __future__ import annotations

import contextlib
import ctypes
import os

import torch

from brittle.params.base import BadInput


def pick(name: str) -> torch.device:
    """The device that `device:` in params.yaml names; `auto` is CUDA if there is one, else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        if not torch.cuda.is_available():
            raise BadInput("params.yaml: device = cuda: this machine has no CUDA device; use auto or cpu")
        # On the CPU what we use is deterministic as it is; CUDA has to be asked, before cuBLAS starts.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # a safeguard that writes every new tensor twice
    torch.set_float32_matmul_precision("highest")
    return torch.device(name)


def keep_freed_memory() -> None:
    """Let glibc keep buffers beyond 32 MB, too, for the next one.

    By default each goes back to the system when it is freed and every page of the next is zeroed anew: with tensors of
    100 MB that is almost half of the time of a training step. For computations that ask for the same few sizes again
    and again; others would cut the kept memory to pieces.
    """
    mmap_max, trim_threshold = -4, -1
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another C library, which does as it likes
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(mmap_max, 0)
        mallopt(trim_threshold, 2**31 - 1)
