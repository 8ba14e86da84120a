"""The running statistics of batch normalisation, which a network has in place of a batch's own once it is trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from brittle.worlds.pixels import shown


@torch.no_grad()
def recalibrate(net: nn.Module, x: Tensor, batch: int) -> None:
    """Replace the running statistics with their means over batches of these pictures, at the weights as they are.

    The network is left in eval mode.

    Running statistics lag behind the weights, and in adversarial training they are those of attacked pictures alone: a
    network may be right in training and answer everything alike afterwards.
    """  # (n, h, w, 3) uint8
    layers = [part for part in net.modules() if isinstance(part, _BatchNorm)]
    momenta = [layer.momentum for layer in layers]
    net.eval()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # PyTorch then takes the mean over all batches instead of a moving one
        layer.train()
    for some in x[: len(x) // batch * batch or None].split(batch):  # as in training, whole batches only
        net(shown(some))
    net.eval()
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
