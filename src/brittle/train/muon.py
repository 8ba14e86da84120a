"""Muon (Jordan et al. 2024): every matrix moves along its momentum, orthogonalised, times √max(1, rows/columns).

Apart from momentum it is steepest descent in the spectral norm of each layer: all singular values of a step are alike,
where those of the gradient are as unequal as the features are strong. Biases and last layers are vectors, matrices of
one row; to orthogonalise those is to normalise them (Bernstein & Newhouse 2024).
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

BETA = 0.95  # of the momentum, Jordan's


def steepest(m: Tensor) -> Tensor:
    """The step for each network's momentum of one layer."""  # (s, rows, columns), or (s, n)
    if m.ndim > 3:  # a convolution: the filters are the rows of one matrix
        return steepest(m.flatten(2)).view_as(m)
    if m.ndim == 2 or m.shape[1] == 1:
        return (m.flatten(1) / m.flatten(1).norm(dim=1, keepdim=True).clamp(min=TINY)).view_as(m)
    return orthogonalised(m) * max(1, m.shape[1] / m.shape[2]) ** 0.5


def orthogonalised(m: Tensor, steps: int = 5) -> Tensor:
    """U Vᵀ of m = U S Vᵀ, roughly: Newton-Schulz with Jordan's coefficients takes S to between 0.7 and 1.2."""
    if m.shape[1] > m.shape[2]:  # (s, k, l) -> (s, k, l)
        return orthogonalised(m.transpose(1, 2), steps).transpose(1, 2)
    m = m / m.flatten(1).norm(dim=1)[:, None, None].clamp(min=TINY)
    for _ in range(steps):
        square = m @ m.transpose(1, 2)
        m = 3.4445 * m + (-4.7750 * square + 2.0315 * square @ square) @ m
    return m


TINY = 1e-7  # below which a momentum is as good as zero


class Muon(torch.optim.Optimizer):
    """The same for torch modules."""

    def __init__(self, parameters: Iterable[Tensor], lr: float, momentum: float = BETA) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                memory = self.state[p].setdefault("momentum_buffer", torch.zeros_like(p))
                memory.lerp_(p.grad, 1 - group["momentum"])
                ahead = p.grad.lerp(memory, group["momentum"])  # Nesterov's
                p.sub_(steepest(ahead[None])[0], alpha=group["lr"])
