"""An exact KKT point of VYS Problem (2), margin maximisation, on orthogonal samples: docs/kkt-point.md derives it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.nets.two_layer import TwoLayer


@dataclass(frozen=True)
class KKTPoint:
    """A network of width 2 that satisfies VYS Eq. (3) and (4) exactly, with the multipliers that show it."""

    net: TwoLayer
    multiplier: float  # λ, the same for all samples
    kink: float  # σ' where a preactivation is 0: at the samples of the other label


def kkt_point(x: Tensor, y: Tensor) -> KKTPoint:
    """One neuron per label, active on its own samples, and exactly at its kink on all others.

    m = 2n orthogonal samples of norm √d, n of each label, n ≤ d/2. With u = λσ' the neuron of label s is, per unit of
    its output weight, s (u Σ_own x_i - u' Σ_other x_i) with the bias B = n (u - u'), where u = λ and u' = B/d.
    """  # (m, d), (m,)
    d, n = x.shape[1], int((y > 0).sum())
    kink = n / (d + n)  # u'/λ, from u' d = B = n (λ - u'): the preactivation at the other label's samples is 0
    active = d + kink * d  # (u d + B)/λ, what a neuron sees of its own samples
    lam = (n * active) ** -0.5  # v = Σ λ σ(a), VYS Eq. (3) for the output weight
    v = (lam * active) ** -0.5  # so that every output is v² (u d + B) = 1
    signs = y.new_tensor([1.0, -1.0])
    own = (signs[:, None] * y > 0).to(x.dtype)  # (2, m)
    w = v * lam * (own - kink * (1 - own)) @ x
    b = torch.full_like(signs, v * lam * n * (1 - kink))
    return KKTPoint(TwoLayer(w[None], b[None], (v * signs)[None]), lam, kink)
