"""The four networks of SB §4.2 for MNIST-CIFAR, from torchvision, with one output: the logit of label +1."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from brittle.worlds.vision import torchvision


class Binary(nn.Module):
    """A torchvision network on pictures in [0, 1], enlarged `size` times."""

    def __init__(self, name: str, stem: str = "imagenet", size: int = 1) -> None:
        super().__init__()
        extra = {"aux_logits": False, "init_weights": True} if name == "googlenet" else {}
        self.net, self.size = getattr(torchvision.models, name)(num_classes=1, **extra), size
        if stem == "small":
            _shrink_stem(self.net)

    def forward(self, x: Tensor) -> Tensor:
        if self.size > 1:
            x = interpolate(x, scale_factor=self.size, mode="bilinear", align_corners=False)
        return self.net(x)[:, 0]


def _shrink_stem(net: nn.Module) -> None:
    """Adapt to small pictures: the first convolution has stride 1, and no pooling follows it."""
    first = next(m for m in net.modules() if isinstance(m, nn.Conv2d))
    first.stride = (1, 1)
    for owner in (net, getattr(net, "features", None)):
        for name in ("maxpool", "maxpool1", "pool0"):
            if isinstance(getattr(owner, name, None), nn.MaxPool2d):
                setattr(owner, name, nn.Identity())


def build(name: str, seed: int, stem: str = "imagenet", size: int = 1) -> Binary:
    """The network with torchvision's own random weights, drawn from this seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Binary(name, stem, size)
