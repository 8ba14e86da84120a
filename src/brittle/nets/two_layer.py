"""The depth-2 ReLU network of VYS §2, many independent ones side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class TwoLayer:
    """N(x) = Σ_j v_j σ(w_j·x + b_j), for s networks of width k on inputs of dimension d."""

    w: Tensor  # (s, k, d)
    b: Tensor  # (s, k)
    v: Tensor  # (s, k)

    def preactivations(self, x: Tensor) -> Tensor:
        """w_j·x_i + b_j."""  # (s, m, d) -> (s, m, k)
        return torch.baddbmm(self.b.unsqueeze(1), x, self.w.transpose(1, 2))

    def __call__(self, x: Tensor) -> Tensor:
        """N(x_i), network r on its own samples x[r]."""  # (s, m, d) -> (s, m)
        return (self.preactivations(x).relu() @ self.v.unsqueeze(2)).squeeze(2)

    def to(self, target: torch.device | torch.dtype) -> TwoLayer:
        """The networks on another device, or in another precision."""
        return TwoLayer(self.w.to(target), self.b.to(target), self.v.to(target))


def squared_norm(net: TwoLayer) -> float:
    """‖θ‖² of a single network, the objective of VYS Problem (2) up to a factor."""
    return float(sum((p * p).sum() for p in (net.w, net.b, net.v)))


def single(arrays: Mapping[str, np.ndarray], i: int, prefix: str = "") -> TwoLayer:
    """Network i of a stored batch, in float64."""
    return TwoLayer(*(torch.from_numpy(arrays[prefix + name][i : i + 1]).double() for name in ("w", "b", "v")))


def shapes(width: str = "k", d: str = "d", prefix: str = "") -> dict[str, str]:
    """The axes of a stored batch, for `store.load_tensors`."""
    return {f"{prefix}w": f"s {width} {d}", f"{prefix}b": f"s {width}", f"{prefix}v": f"s {width}"}


def initial(d: int, width: int, scale: float, rngs: list[np.random.Generator]) -> TwoLayer:
    """PyTorch's default initialisation of two linear layers, times `scale`; one network per generator."""

    def uniform(fan_in: int, *shape: int) -> Tensor:
        bound = scale / np.sqrt(fan_in)
        return torch.from_numpy(np.stack([g.uniform(-bound, bound, shape) for g in rngs])).float()

    return TwoLayer(w=uniform(d, width, d), b=uniform(d, width), v=uniform(width, width))
