"""The paper's training (VYS §6) as one would write it in an afternoon: the baseline of benchmarks/flow.py.

Depth-2 network by nn.Linear, exponential loss, SGD, learning rate 1e-5 × 1.1 every 100 iterations, stop at loss 1e-30.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self, w: Tensor, b: Tensor, v: Tensor) -> None:
        super().__init__()
        self.hidden = nn.Linear(w.shape[1], w.shape[0])
        self.out = nn.Linear(w.shape[0], 1, bias=False)
        with torch.no_grad():
            self.hidden.weight.copy_(w)
            self.hidden.bias.copy_(b)
            self.out.weight.copy_(v[None])

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.hidden(x))).squeeze(1)


def train(x: Tensor, y: Tensor, net: Net, iterations: int | None = None, target: float = 1e-30) -> tuple[int, float]:
    """Train to this loss or for this many iterations; return the number of iterations and the seconds they took."""
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100, gamma=1.1)
    started, n = time.perf_counter(), 0
    while True:
        loss = torch.exp(-y * net(x)).mean()
        if loss.item() < target or n == iterations:
            return n, time.perf_counter() - started
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        n += 1
