"""The networks of the open questions: every optimiser at depth 2 and deeper, and some of them in other dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from brittle.core.rng import rng
from brittle.margin.optimisers_params import Optimisers
from brittle.nets.deep import Deep, initial


@dataclass(frozen=True)
class OptimiserRun:
    """Networks that one optimiser trains side by side, one for each seed."""

    rule: str
    widths: tuple[int, ...]  # of the hidden layers
    d: int
    m: int
    init_scale: float

    @property
    def depth(self) -> int:
        return len(self.widths) + 1

    @property
    def name(self) -> str:
        return f"{self.rule}.{self.depth}.d{self.d}.m{self.m}.x{self.init_scale:g}"

    @property
    def cell(self) -> dict[str, str | int | float]:
        """What tells it from the others in a table."""
        return {"rule": self.rule, "depth": self.depth, "d": self.d, "m": self.m, "init_scale": self.init_scale}

    def compared(self, p: Optimisers) -> bool:
        """Whether all optimisers are compared at this d, m and scale."""
        return (self.d, self.m) == (p.d, p.m) and self.init_scale in p.init_scales

    def start(self, seeds: list[int]) -> Deep:
        """The initial networks; at depth 2 and scale 1 they are those of the headline experiment."""
        return initial(self.d, self.widths, self.init_scale, [rng(seed, "margin init") for seed in seeds])

    def arrays(self, net: Deep) -> dict[str, np.ndarray]:
        tensors = {f"w{i}": w for i, w in enumerate(net.ws, 1)} | {"b": net.b}
        return {f"{self.name}.{key}": tensor.cpu().numpy() for key, tensor in tensors.items()}

    def shapes(self) -> dict[str, str]:
        sizes = [f"d{self.d}", *(f"k{self.depth}_{i}_{k}" for i, k in enumerate(self.widths, 1)), "one"]
        layers = {f"{self.name}.w{i}": f"s {sizes[i]} {sizes[i - 1]}" for i in range(1, self.depth + 1)}
        return layers | {f"{self.name}.b": f"s {sizes[1]}"}

    def single(self, stored: dict[str, np.ndarray], i: int) -> Deep:
        """Network i, in float64."""

        def tensor(key: str) -> Tensor:
            return torch.from_numpy(stored[f"{self.name}.{key}"][i : i + 1]).double()

        return Deep(tuple(tensor(f"w{j}") for j in range(1, self.depth + 1)), tensor("b"))


def runs(p: Optimisers) -> list[OptimiserRun]:
    """Every rule at one d and m; then those whose growth is asked for, at every d with m = d and at either depth.

    There the widths grow in proportion to d, because layers that d outgrows make Muon's networks less robust.
    """
    shallow, deep = (p.width,), tuple(p.deep_widths)
    at_d = [(shallow, rule) for rule in p.rules] + [(deep, rule) for rule in p.deep_rules]
    every = [OptimiserRun(rule, widths, p.d, p.m, s) for s, (widths, rule) in product(p.init_scales, at_d)]
    grow = p.growth
    every += [
        OptimiserRun(rule, tuple(max(1, round(k * d / p.d)) for k in widths), d, d, s)
        for s, d, widths, rule in product(grow.init_scales, grow.ds, (shallow, deep), grow.rules)
    ]
    return list(dict.fromkeys(every))
