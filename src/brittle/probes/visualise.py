"""The picture that excites a neuron most, by plain gradient ascent with nothing to improve its looks (FP §8.1, Fig 10).

That is the point: for robust models this naive method is enough, for clean ones it shows the dense mixtures.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

GREY = 0.5  # RGB 128
NOISE = 0.1  # standard deviation of the initial picture around it


def excite(
    feature: Callable[[Tensor], Tensor],
    shape: tuple[int, ...],
    steps: int,
    lr: float,
    decay: float,
    rng: np.random.Generator,
    rest: float = GREY,
    start: Tensor | None = None,
    device: torch.device | str = "cpu",
) -> Tensor:
    """One picture in [0, 1] for each neuron, all of them at once; FP takes 2000 steps (footnote 16).

    `feature` maps (n, c, h, w) to (n,), picture i scored by neuron i; pictures must not affect one another (batch
    norm has to be in eval mode). Neurons differ widely in scale, so a step has length lr whatever the gradient's.
    Weight decay pulls towards `rest`: a picture stops where lr balances it, lr/decay away, or where [0, 1] ends. If a
    neuron's gradient is 0 (its own ReLU is off), its picture only decays from its start.
    """
    x = GREY + NOISE * torch.from_numpy(rng.standard_normal(shape)).float() if start is None else start.clone()
    x = x.to(device).clamp(0, 1)
    for _ in range(steps):
        x.requires_grad_()
        with torch.enable_grad():
            (g,) = torch.autograd.grad(feature(x).sum(), x)  # the gradient of each at its own picture
        length = g.flatten(1).norm(dim=1).clamp(min=1e-30)[:, None, None, None]
        x = x.detach()
        x = (x + lr * g / length - decay * (x - rest)).clamp(0, 1)
    return x
