"""Residual networks with pre-activation for pictures of 32 × 32 pixels (FP §8; Zagoruyko and Komodakis 2016).

Depth 34 has 31 convolutions in sequence, as FP §8.2 counts: one, and three groups of five blocks of two.
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from brittle.nets.image_layers import Layered


class Block(nn.Module):
    """x ↦ x + conv(relu(bn(conv(relu(bn(x))))), the shortcut projected where the shape changes."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.relu1 = nn.BatchNorm2d(before), nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.bn2, self.relu2 = nn.BatchNorm2d(after), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        same = before == after and stride == 1
        self.project = None if same else nn.Conv2d(before, after, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = self.relu1(self.bn1(x))
        shortcut = x if self.project is None else self.project(active)
        return shortcut + self.conv2(self.relu2(self.bn2(self.conv1(active))))

    @property
    def layers(self) -> list[list[nn.Module]]:
        first = [self.conv1, self.bn1] + ([] if self.project is None else [self.project])
        return [first, [self.conv2, self.bn2]]


class PreResNet(Layered):
    def __init__(self, depth: int, widen: int = 1, classes: int = 10) -> None:
        """`depth` is 6 n + 4 for n blocks per group."""
        super().__init__()
        channels = [16, 16 * widen, 32 * widen, 64 * widen]
        self.stem = nn.Conv2d(3, channels[0], 3, padding=1, bias=False)
        blocks = []
        for group, (before, after) in enumerate(pairwise(channels)):
            for number in range((depth - 4) // 6):
                start = number == 0
                blocks.append(Block(before if start else after, after, 2 if start and group else 1))
        self.blocks = nn.Sequential(*blocks)
        self.bn, self.relu = nn.BatchNorm2d(channels[-1]), nn.ReLU(inplace=True)
        self.classifier = nn.Linear(channels[-1], classes)
        self.layers = [[self.stem], *(layer for block in blocks for layer in block.layers), [self.classifier, self.bn]]

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn(self.blocks(self.stem(self.normalise(x)))))
        return self.classifier(x.mean((2, 3)))
