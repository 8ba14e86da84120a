"""The four networks of SB §4.2 for MNIST-CIFAR, from torchvision, with one output: the logit of label +1."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from brittle.nets.small_map import quicken
from brittle.worlds.vision import torchvision


class Binary(nn.Module):
    """A torchvision network on pictures in [0, 1], enlarged `size` times."""

    def __init__(self, name: str, stem: str = "imagenet", size: int = 1) -> None:
        super().__init__()
        # The GoogLeNet for CIFAR has PyTorch's default initial weights, torchvision's has its own.
        extra = {"aux_logits": False, "init_weights": stem == "imagenet"} if name == "googlenet" else {}
        self.net, self.size = getattr(torchvision.models, name)(num_classes=1, **extra), size
        if stem == "cifar":
            FOR_CIFAR[name](self.net)

    def forward(self, x: Tensor) -> Tensor:
        if self.size > 1:
            x = interpolate(x, scale_factor=self.size, mode="bilinear", align_corners=False)
        return self.net(x)[:, 0]


# The stems of the networks in SB's notebooks, which are those of github.com/huyvnphan/PyTorch_CIFAR10: the first
# convolution is 3 × 3 with stride 1; what follows is as there.


def _mobilenet_v2(net: nn.Module) -> None:
    """The first convolution and the first of the blocks that would halve the picture keep its size."""
    net.features[0][0].stride = (1, 1)
    net.features[2].conv[1][0].stride = (1, 1)


def _googlenet(net: nn.Module) -> None:
    """One convolution to 192 channels stands for all that precedes the inceptions; the other two pools remain."""
    net.conv1 = type(net.conv1)(3, 192, kernel_size=3, padding=1)
    net.maxpool1 = net.conv2 = net.conv3 = net.maxpool2 = nn.Identity()
    net.maxpool3, net.maxpool4 = (nn.MaxPool2d(3, stride=2, padding=1) for _ in range(2))


def _first_convolution() -> nn.Conv2d:
    return nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)


def _resnet50(net: nn.Module) -> None:
    """The pool behind the first convolution remains."""
    net.conv1 = _first_convolution()
    nn.init.kaiming_normal_(net.conv1.weight, mode="fan_out", nonlinearity="relu")


def _densenet121(net: nn.Module) -> None:
    """The pool behind the first convolution remains."""
    net.features.conv0 = _first_convolution()
    nn.init.kaiming_normal_(net.features.conv0.weight)


FOR_CIFAR = {
    "mobilenet_v2": _mobilenet_v2,
    "googlenet": _googlenet,
    "resnet50": _resnet50,
    "densenet121": _densenet121,
}


def build(name: str, seed: int, stem: str = "imagenet", size: int = 1) -> Binary:
    """The network with its random weights drawn from this seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return quicken(Binary(name, stem, size))
