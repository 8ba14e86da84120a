"""The losses of VYS §2 as their logarithms, so that a loss of 1e-10000 is an ordinary number."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

FAR = 80.0  # beyond this margin the logistic loss is the exponential one to the last bit of float64


def ln_loss(q: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """ln L and its pull -∂ ln L/∂q_i, for margins q_i = y_i N(x_i).

    L is the mean of ℓ(q_i): Eq. (1) divided by m, which only rescales the time of gradient flow.
    """  # (s, m) -> (s,), (s, m)
    if kind == "exponential":  # ℓ(q) = e^-q
        ln_each = -q
        rate = None
    else:  # ℓ(q) = ln(1 + e^-q); rate = -ℓ'/ℓ
        near = -logsigmoid(q.clamp(max=FAR))
        ln_each = torch.where(q < FAR, near.log(), -q)
        rate = torch.where(q < FAR, torch.sigmoid(-q.clamp(max=FAR)) / near, 1.0)
    share = torch.softmax(ln_each, dim=1)
    pull = share if rate is None else share * rate
    return torch.logsumexp(ln_each, dim=1) - math.log(q.shape[1]), pull


def relu_backward(gradient: Tensor, a: Tensor) -> Tensor:
    """The gradient at the output of a ReLU, propagated to its input a: g·σ'(a), with σ'(0) = 0, in one pass."""
    return torch.ops.aten.threshold_backward(gradient, a, 0)
