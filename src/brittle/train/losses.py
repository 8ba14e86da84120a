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
    ln_each, near = _ln_each(q, kind)
    pull = torch.softmax(ln_each, dim=1)
    if near is not None:
        pull = pull * torch.where(q < FAR, torch.sigmoid(-q.clamp(max=FAR)) / near, 1.0)  # by -ℓ'/ℓ
    return _ln_mean(ln_each), pull


def ln_loss_alone(q: Tensor, kind: str) -> Tensor:
    """ln L where its pull is not needed."""  # (…, m) -> (…,)
    return _ln_mean(_ln_each(q, kind)[0])


def _ln_each(q: Tensor, kind: str) -> tuple[Tensor, Tensor | None]:
    """ln ℓ(q), and ℓ(q) of the near samples if ℓ is the logistic loss."""
    if kind == "exponential":  # ℓ(q) = e^-q
        return -q, None
    near = -logsigmoid(q.clamp(max=FAR))  # ℓ(q) = ln(1 + e^-q)
    return torch.where(q < FAR, near.log(), -q), near


def _ln_mean(ln_each: Tensor) -> Tensor:
    return torch.logsumexp(ln_each, dim=-1) - math.log(ln_each.shape[-1])


def relu_backward(gradient: Tensor, a: Tensor) -> Tensor:
    """The gradient at the output of a ReLU, propagated to its input a: g·σ'(a), with σ'(0) = 0, in one pass."""
    return torch.ops.aten.threshold_backward(gradient, a, 0)


def relu_backward_(gradient: Tensor, a: Tensor) -> Tensor:
    """The same, written over the gradient."""
    return torch.ops.aten.threshold_backward.grad_input(gradient, a, 0, grad_input=gradient)
