"""What a training loop asks of a GPU, counted on a pretended one, and what that would cost on a real one.

The predicted time of a step is the longer of two: the host's, 5 µs a launch and 15 µs a wait, and the device's, each
operator at the speed of the memory or of the arithmetic, whichever takes longer, but at least 1.5 µs. A CUDA graph of
many operators is one launch.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take

# isort: split
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from brittle.core import device
from brittle.train import graphs
from pretend_cuda import pretended

LAUNCH, WAIT, LEAST = 5e-6, 15e-6, 1.5e-6  # seconds: of the host for the first two, of any operator; assumed
GPUS = {
    "T4": (320e9, 8.1e12),
    "A100": (1555e9, 19.5e12),
    "H100": (3350e9, 67e12),
}  # bytes and float32 operations a second


@dataclass(frozen=True)
class Counted:
    """What one step asks for."""

    launches: float
    waits: float
    kernels: list[tuple[float, float]]  # bytes and operations of every operator of the counted steps
    steps: int

    def seconds(self, memory: float, arithmetic: float) -> tuple[float, str]:
        """The predicted time of a step, and what bounds it."""
        spent: Counter[str] = Counter()
        for moved, operations in self.kernels:
            time, what = max(
                (moved / memory, "memory"), (operations / arithmetic, "arithmetic"), (LEAST, "small operators")
            )
            spent[what] += time / self.steps
        host = LAUNCH * self.launches + WAIT * self.waits
        return (host, "launches") if host >= spent.total() else (spent.total(), max(spent, key=spent.get))

    def at(self, larger: Counted, x: float) -> Counted:
        """On the straight lines through this count, x = 0, and another one of the same operators, x = 1."""
        pairs = zip(self.kernels, larger.kernels, strict=True)
        lines = [(b + x * (b1 - b), ops + x * (ops1 - ops)) for (b, ops), (b1, ops1) in pairs]
        return replace(self, kernels=lines)


def count(run: Callable[[int], None], steps: int, with_graphs: bool = False) -> Counted:
    """Count what the second half of 2 · steps steps asks for: all of them, less the first half."""
    found = []
    for n in (steps, 2 * steps):
        with patch.dict(os.environ, {graphs.SWITCH: str(int(with_graphs))}), pretended() as counting:
            counting.kernels = []
            device.pick("cuda")
            run(n)
        found.append((counting.launches.total(), counting.waits.total(), counting.kernels))
    device.pick("cpu")
    (*few, first), (*many, kernels) = found
    each = [(late - early) / steps for early, late in zip(few, many, strict=True)]
    return Counted(*each, kernels[len(first) :], steps)
