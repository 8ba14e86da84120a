"""What powers of ReLU can learn of clusters, as networks built by hand, and how robust those are in closed form.

K clusters have orthonormal centres μ_1 … μ_K and labels, and the others' clusters are those of the other label (Min and
Vidal 2024). Neurons turn towards the sum of a class or towards single centres. All that matters happens in the K
coordinates ⟨μ_j, x⟩.
"""

from __future__ import annotations

import torch
from torch import Tensor


def class_sums(mu: Tensor, y: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """W and v of one neuron for each class, its sum of centres: f_p(μ_j) = y_j for every centre."""  # (k, d), (k,)
    w = torch.stack([(y == 1).to(mu.dtype) @ mu, (y == -1).to(mu.dtype) @ mu])
    return w, w.norm(dim=1) ** (p - 1) * mu.new_tensor([1.0, -1.0])


def own_centres(mu: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """W and v of one neuron for each cluster, its centre: f_p(μ_j) = y_j for any p."""  # (k, d), (k,)
    return mu, y


def radius_of_sums(k: int) -> float:
    """How far a centre is from the boundary of `class_sums`, for any p: 1/√K.

    Let a be the sum of δ's coordinates on the own class and b on the other: the boundary is where 1 + a = b. By Cauchy
    and Schwarz 1 = b - a ≤ √K ‖δ‖, with equality where all coordinates are ±1/K: δ is along z = Σ y_j μ_j.
    """
    return k**-0.5


def radius_of_centres() -> float:
    """How far a centre is from the boundary of `own_centres`, for p ≥ 2: √2/2, half the distance of two centres.

    Let the own coordinate fall by a ≤ 1 and the others' rise to b_j ≥ 0; those of the own class only help. On the
    boundary (1 - a)^p ≤ Σ b_j^p ≤ (Σ b_j²)^(p/2) = ‖b‖^p, because p ≥ 2. So ‖b‖ ≥ 1 - a and ‖δ‖² ≥ a² + (1 - a)² ≥ ½,
    with equality half-way to one of the others' centres. (For p < 2 several of them together are nearer than one.)
    """
    return 0.5**0.5


def crossing_of_sums(k: int) -> float:
    """How far along -y z a centre is from the boundary of `class_sums`: 1/√K, the radius, as z is the nearest way."""
    return radius_of_sums(k)


def crossing_of_centres(k: int, others: int, p: float) -> float:
    """How far along -y z a centre is from the boundary of `own_centres`: √K/(1 + others^(1/p)).

    z = Σ y_j μ_j has the length √K. At μ_1 - c z/√K the own coordinate is 1 - s and each of the others' is s, s = c/√K;
    the rest of the own class is below zero. The boundary is where (1 - s)^p = others · s^p.
    """
    return k**0.5 / (1 + others ** (1 / p))
