"""How sparse activations are: the share of neurons that are on after each ReLU (FP Fig 5)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


@torch.no_grad()
def activity(module: nn.Module, images: Tensor, batch: int = 256) -> tuple[dict[str, float], float]:
    """The share of outputs > 0 of each ReLU over all images, in the order of their calls; and the mean of the shares.

    A layer is a call of an nn.ReLU, named after its module; if the module is called several times for one image, as in
    blocks that share one ReLU among their layers, the later calls are name#2, name#3, … Calls of functional.relu are
    not counted. The network is evaluated in eval mode, and its modes are restored.
    """
    on: dict[str, float] = {}
    seen: dict[str, int] = {}
    calls: dict[str, int] = {}  # how often each ReLU was called in this batch
    modes = {part: part.training for part in module.modules()}  # parts may differ, e.g. frozen ones

    def count(name: str) -> Any:
        def hook(_: nn.Module, __: Any, output: Tensor) -> None:  # counted at once: a later layer may work in place
            calls[name] = calls.get(name, 0) + 1
            layer = name if calls[name] == 1 else f"{name}#{calls[name]}"
            on[layer] = on.get(layer, 0) + int((output > 0).sum())
            seen[layer] = seen.get(layer, 0) + output.numel()

        return hook

    hooks = [
        part.register_forward_hook(count(name or "relu"))
        for name, part in module.named_modules()
        if isinstance(part, nn.ReLU)
    ]
    try:
        module.eval()
        for some in images.split(batch):
            calls.clear()
            module(some.clone())  # a ReLU that comes first and works in place would change the images
    finally:
        for hook in hooks:
            hook.remove()
        for part, mode in modes.items():
            part.training = mode
    if not on:
        raise ValueError("no nn.ReLU was called")
    shares = {layer: on[layer] / seen[layer] for layer in on}
    return shares, sum(shares.values()) / len(shares)
