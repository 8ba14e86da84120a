"""The universal perturbation of VYS Thm 4.1."""

from __future__ import annotations

from torch import Tensor


def z_direction(x: Tensor, y: Tensor) -> Tensor:
    """z/‖z‖ for z = Σ y_i x_i: one vector for all samples, and no network needed."""  # (m, d), (m,) -> (d,)
    z = y @ x
    return z / z.norm()
