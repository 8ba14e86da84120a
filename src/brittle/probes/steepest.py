"""How far a network is from what steepest descent in a norm converges to: a KKT point of the margin problem in it.

VYS Problem (2) with another norm is min ½‖θ‖² subject to y_i N(x_i) ≥ 1. At its KKT points there are λ_i ≥ 0, positive
on the margin alone, for which G = Σ λ_i y_i ∇N(x_i) is a subgradient of ½‖θ‖², which is to say

    ⟨θ, G⟩ = ‖θ‖ ‖G‖_*,    where ‖G‖_* = max ⟨D, G⟩ over ‖D‖ ≤ 1 is the dual norm.

In any network that separates its data 0 ≤ ⟨θ, G⟩ ≤ ‖θ‖ ‖G‖_*, so that 1 - ⟨θ, G⟩/(‖θ‖ ‖G‖_*) is a residual in [0, 1].
In ‖·‖₂ it is 1 - cos of the angle between θ and G. λ need not be searched for: those of the loss, e^(-y_i N(x_i)),
tend to multipliers on the margin, and make G = -∇ ln L, so that the residual tells how much of the steepest step goes
along θ.

Muon's norm is the largest of its layers' norms: a step that orthogonalises each matrix and normalises each vector is
the steepest one in it. For W of k rows and l columns the layer's norm is ‖W‖_op / √max(1, k/l), as Muon's factor has
it; its dual is √max(1, k/l) times the nuclear norm, and the dual of a maximum is a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.nets.deep import Deep
from brittle.probes.margin import separated

Layers = list[Tensor]  # W_1, …, W_L, b of a single network


@dataclass(frozen=True)
class Geometry:
    """A norm on all parameters of a network, and its dual."""

    norm: Callable[[Layers], Tensor]
    dual: Callable[[Layers], Tensor]


def residual(net: Deep, x: Tensor, y: Tensor, geometry: Geometry) -> float:
    """1 - ⟨θ, G⟩/(‖θ‖ ‖G‖_*) of a single network that separates its data; float64."""  # (m, d), (m,)
    separated(net, x, y)
    theta = [p.detach()[0] for p in net.parameters()]
    g = pull(net, x, y)
    inner = sum((p * q).sum() for p, q in zip(theta, g, strict=True))
    return float(1 - inner / (geometry.norm(theta) * geometry.dual(g)))


def margin(net: Deep, x: Tensor, y: Tensor, geometry: Geometry) -> float:
    """The normalised margin min_i y_i N(x_i) / ‖θ‖^L of a single network that is homogeneous of degree L."""
    theta = [p.detach()[0] for p in net.parameters()]  # (m, d), (m,)
    return float(separated(net, x, y).min() / geometry.norm(theta) ** net.degree)


def pull(net: Deep, x: Tensor, y: Tensor) -> Layers:
    """G = -∇ ln L for the exponential loss: Σ λ_i y_i ∇N(x_i) with λ_i in proportion to e^(-y_i N(x_i))."""
    theta = net.flat().detach().requires_grad_()  # (m, d), (m,)
    with torch.enable_grad():
        (g,) = torch.autograd.grad(-torch.logsumexp(-y * net.like(theta)(x[None])[0], 0), theta)
    return [p[0] for p in net.like(g).parameters()]


def _flat(layers: Layers) -> Tensor:
    return torch.cat([p.flatten() for p in layers])


def _ratio(p: Tensor) -> float:
    """√max(1, rows/columns) of a matrix; 1 for a vector, and for a last layer, which has one row."""
    return max(1.0, p.shape[0] / p.shape[1]) ** 0.5 if p.ndim == 2 else 1.0


def _operator(p: Tensor) -> Tensor:
    return torch.linalg.matrix_norm(p, 2) if p.ndim == 2 else p.norm()


def _nuclear(p: Tensor) -> Tensor:
    return torch.linalg.matrix_norm(p, "nuc") if p.ndim == 2 else p.norm()


L2 = Geometry(norm=lambda layers: _flat(layers).norm(), dual=lambda layers: _flat(layers).norm())
LINF = Geometry(norm=lambda layers: _flat(layers).abs().max(), dual=lambda layers: _flat(layers).abs().sum())
SPECTRAL = Geometry(
    norm=lambda layers: torch.stack([_operator(p) / _ratio(p) for p in layers]).max(),
    dual=lambda layers: torch.stack([_nuclear(p) * _ratio(p) for p in layers]).sum(),
)
GEOMETRIES = {"l2": L2, "linf": LINF, "spectral": SPECTRAL}
