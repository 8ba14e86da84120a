"""The universal perturbation of VYS Thm 4.1."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


def z_direction(x: Tensor, y: Tensor) -> Tensor:
    """z/‖z‖ for z = Σ y_i x_i: one vector for all samples, and no network needed."""  # (m, d), (m,) -> (d,)
    z = y @ x
    return z / z.norm()


@dataclass(frozen=True)
class Thm41:
    """The perturbation of VYS Thm 4.1 with the proof's own length (Appendix C.4), for samples of norm √d."""

    z: Tensor  # (d,) (η₁ + η₂) Σ y_i x_i
    bound: float  # 18√2 · √(d / (c² m)), the proof's bound on ‖z‖
    applies: bool  # m ≤ (d + 1) / (3(p + 1)), the assumption on the data


def thm41(x: Tensor, y: Tensor) -> Thm41:
    """The z of VYS Thm 4.1: at any KKT point, x_i - z is labelled -1 if y_i = 1, and x_i + z labelled 1 if y_i = -1."""
    m, d = x.shape
    p = float((x @ x.T).abs().fill_diagonal_(0.0).max())  # max_{i≠j} |⟨x_i, x_j⟩|
    c = min(float((y > 0).sum()), float((y < 0).sum())) / m  # the share of the rarer label
    if c == 0 or m * p >= d:
        return Thm41(z=0 * x[0], bound=float("nan"), applies=False)
    c1 = m * (p + 1) / (d + 1)  # c' of the proof
    eta1 = (p + 1) / (d - m * p)  # activates every neuron of the other sign
    eta2 = 2 * (c * c1 + 1) * (d + 1) / (m * c * (d - m * p))  # and then moves the output by 2
    bound = 18 * (2 * d / (c * c * m)) ** 0.5
    return Thm41(z=(eta1 + eta2) * (y @ x), bound=bound, applies=c1 <= 1 / 3)
