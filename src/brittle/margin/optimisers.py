"""The networks of the open questions: every optimiser at depth 2, and some deeper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.core.rng import rng
from brittle.margin.optimisers_params import Optimisers
from brittle.nets.deep import Deep, initial


@dataclass(frozen=True)
class OptimiserRun:
    rule: str
    widths: list[int]  # of the hidden layers

    @property
    def depth(self) -> int:
        return len(self.widths) + 1

    @property
    def name(self) -> str:
        return f"{self.rule}.{self.depth}"

    def start(self, d: int, seeds: list[int]) -> Deep:
        """The initial networks; at depth 2 they are those of the headline experiment."""
        return initial(d, self.widths, 1.0, [rng(seed, "margin init") for seed in seeds])

    def arrays(self, net: Deep) -> dict[str, np.ndarray]:
        tensors = {f"w{i}": w for i, w in enumerate(net.ws, 1)} | {"b": net.b}
        return {f"{self.name}.{key}": tensor.cpu().numpy() for key, tensor in tensors.items()}

    def shapes(self) -> dict[str, str]:
        sizes = ["d", *(f"k{self.depth}_{i}" for i in range(1, self.depth)), "one"]
        layers = {f"{self.name}.w{i}": f"s {sizes[i]} {sizes[i - 1]}" for i in range(1, self.depth + 1)}
        return layers | {f"{self.name}.b": f"s {sizes[1]}"}

    def single(self, stored: dict[str, np.ndarray], i: int) -> Deep:
        """Network i, in float64."""

        def tensor(key: str) -> Tensor:
            return torch.from_numpy(stored[f"{self.name}.{key}"][i : i + 1]).double()

        return Deep(tuple(tensor(f"w{j}") for j in range(1, self.depth + 1)), tensor("b"))


def runs(p: Optimisers) -> list[OptimiserRun]:
    return [OptimiserRun(rule, [p.width]) for rule in p.rules] + [
        OptimiserRun(rule, p.deep_widths) for rule in p.deep_rules
    ]
