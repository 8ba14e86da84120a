"""The paper's own training (VYS §6): SGD on L with a learning rate that grows without bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.nets.two_layer import TwoLayer
from brittle.train.losses import ln_loss, relu_backward
from brittle.train.spaces import joined, split, with_bias
from brittle.train.state import State


@dataclass(kw_only=True)
class ProtocolState(State):
    w: Tensor  # (s, d + 1, k) the first layer, biases in the last row
    v: Tensor  # (s, k)


def train(
    x: Tensor,  # (s, m, d)
    y: Tensor,  # (s, m)
    net: TwoLayer,
    *,
    loss: str,
    ln_target: float,
    batch: int,
    lr: float,
    growth: float,
    every: int,
    max_steps: int,
    state: ProtocolState | None = None,
    watch: Callable[[ProtocolState], None] = lambda state: None,
) -> tuple[TwoLayer, ProtocolState]:
    """SGD with batches of `batch` and learning rate lr · growth^⌊n/every⌋ until each network has ln L ≤ ln_target.

    The step lr·∇L is taken as e^(ln lr + ln L)·∇ ln L: the same step, but neither factor leaves the range of floats.
    """
    x, m = with_bias(x), x.shape[1]
    full = batch >= m

    def whole_loss(w: Tensor, v: Tensor) -> Tensor:
        return ln_loss(y * ((x @ w).relu() @ v.unsqueeze(2)).squeeze(2), loss)[0]

    if state is None:
        w = joined(net)
        state = ProtocolState(w=w, v=net.v, ln_loss=whole_loss(w, net.v), history=[])

    while True:
        watch(state)
        active = state.unfinished(ln_target, max_steps)
        if active is None:
            return split(state.w, state.v), state
        n = len(state.history)
        rows = slice(None) if full else _batch(m, batch, n).to(x.device)
        xb, yb = x[:, rows], y[:, rows]
        a = xb @ state.w
        h = a.relu()
        ln, pull = ln_loss(yb * (h @ state.v.unsqueeze(2)).squeeze(2), loss)
        e = yb * pull
        g = relu_backward(e.unsqueeze(2) * state.v.unsqueeze(1), a)  # e_i v_j σ'(a_ij)
        dv = (e.unsqueeze(1) @ h).squeeze(1)
        state.history.append(state.ln_loss)
        ln_lr = math.log(lr) + (n // every) * math.log(growth)
        eta = torch.where(active, torch.exp(ln_lr + ln), 0.0)
        # Not in place: the caller may hold on to an earlier state.
        state.w = state.w + eta[:, None, None] * (xb.transpose(1, 2) @ g)
        state.v = state.v + eta[:, None] * dv
        if full:
            state.ln_loss = torch.where(active, ln, state.ln_loss)
        elif (n + 1) % every == 0:
            state.ln_loss = whole_loss(state.w, state.v)


def _batch(m: int, batch: int, n: int) -> Tensor:
    """The rows of step n, shuffled anew in each epoch; a function of n alone, so that a resumed run is the same.

    The last batch of an epoch has what is left of the samples, as that of PyTorch's DataLoader.
    """
    per_epoch = -(-m // batch)
    epoch, i = divmod(n, per_epoch)
    order = torch.randperm(m, generator=torch.Generator().manual_seed(epoch))
    return order[i * batch : (i + 1) * batch]
