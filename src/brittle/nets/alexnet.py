"""AlexNet for pictures of 32 × 32 pixels, as in FP §8: its first layer has 64 filters of 3 × 11 × 11."""

from __future__ import annotations

from torch import Tensor, nn

from brittle.nets.image_layers import Layered
from brittle.nets.small_map import QuickConv, StridedConv

POOLED = (0, 1, 4)  # layers that are followed by 2 × 2 max pooling


class AlexNet(Layered):
    def __init__(self, classes: int = 10, width: float = 1.0) -> None:
        """`width` scales the number of filters of every layer but the first."""
        super().__init__()
        channels = [64, *(max(1, round(width * c)) for c in (192, 384, 256, 256))]
        layers: list[nn.Module] = [StridedConv(3, channels[0], 11, stride=4, padding=5)]
        for before, after, size in zip(channels, channels[1:], (5, 3, 3, 3), strict=False):
            layers.append(QuickConv(before, after, size, padding=size // 2))
        self.features, self.classifier = nn.ModuleList(layers), nn.Linear(channels[-1], classes)
        self.relus, self.pool = nn.ModuleList(nn.ReLU(inplace=True) for _ in layers), nn.MaxPool2d(2)
        self.layers = [[layer] for layer in (*layers, self.classifier)]

    def forward(self, x: Tensor) -> Tensor:
        x = self.normalise(x)
        for number, (layer, relu) in enumerate(zip(self.features, self.relus, strict=True)):
            x = relu(layer(x))
            if number in POOLED:
                x = self.pool(x)
        return self.classifier(x.flatten(1))
