"""AlexNet's convolutions in forms that a CPU computes faster; on a GPU they are the ordinary ones.

Its first layer has stride 4 and a kernel of size 11. Its gradient with respect to pictures, which attacks need, is
slow. With each block of 4 × 4 pixels as the 48 channels of one pixel, it is a convolution of stride 1, kernel size 3.

Its later layers apply kernels of 5 × 5 and 3 × 3 to maps of 4 × 4 and 2 × 2 pixels: half of what a convolution
multiplies there is padding. Written as a matrix with a block for each pair of pixels, the same linear map needs fewer
multiplications, all in one product.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, pixel_unshuffle

PIXELS = 16  # of a map: the largest for which the matrix is faster on a CPU


def _taps(h: int, w: int, kernel: tuple[int, int], padding: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """(to, from, row, column): which entry of the kernel leads from one pixel of the map to another."""
    pixels = [(i, j) for i in range(h) for j in range(w)]
    found = []
    for p, (pi, pj) in enumerate(pixels):
        for q, (qi, qj) in enumerate(pixels):
            row, column = qi - pi + padding[0], qj - pj + padding[1]
            if 0 <= row < kernel[0] and 0 <= column < kernel[1]:
                found.append((p, q, row, column))
    return found


class Spread(torch.autograd.Function):
    """The kernel as a matrix, (pixels · out, pixels · in), pixels first."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, h: int, w: int, padding: tuple[int, int]) -> Tensor:
        out, into, *kernel = weight.shape
        ctx.taps, ctx.shape = _taps(h, w, tuple(kernel), padding), weight.shape
        blocks = weight.permute(2, 3, 0, 1).contiguous()  # (rows, columns, out, in)
        matrix = weight.new_zeros(h * w, out, h * w, into)
        for p, q, row, column in ctx.taps:
            matrix[p, :, q] = blocks[row, column]
        return matrix.view(h * w * out, h * w * into)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        out, into, *kernel = ctx.shape
        pixels = len(gradient) // out
        blocks = gradient.new_zeros(*kernel, out, into)
        gradient = gradient.view(pixels, out, pixels, into)
        for p, q, row, column in ctx.taps:
            blocks[row, column] += gradient[p, :, q]
        return blocks.permute(2, 3, 0, 1), None, None, None


class SmallMapConv(nn.Conv2d):
    """A convolution that keeps the size of its map (stride 1), computed as a matrix where that is faster."""

    _kept: tuple[Tensor, Any, Tensor] | None = None  # the weights, their state, and the matrix

    def __init__(self, *shape: int, **options: Any) -> None:
        super().__init__(*shape, **options)
        same = tuple(2 * p + 1 for p in self.padding) == self.kernel_size
        if not same or not self.stride == self.dilation == (1, 1) or self.groups > 1:
            raise ValueError("a small-map convolution keeps the size of its map")

    def forward(self, x: Tensor) -> Tensor:
        n, into, h, w = x.shape
        if x.device.type != "cpu" or h * w > PIXELS:
            return super().forward(x)
        y = x.permute(0, 2, 3, 1).reshape(n, h * w * into) @ self._matrix(h, w).T
        y = y.view(n, h, w, self.out_channels).permute(0, 3, 1, 2)  # channels last, as in the input
        return y if self.bias is None else y + self.bias[:, None, None]

    @torch.compiler.disable
    def _matrix(self, h: int, w: int) -> Tensor:
        """The matrix, cached while the weights do not change and need no gradient: an attack uses it many times.

        The weights' version shows changes. Only optimisers with `fused=True` bypass it, and train/ uses none on a CPU.
        """
        if torch.is_grad_enabled() and self.weight.requires_grad:
            return Spread.apply(self.weight, h, w, self.padding)
        state = (self.weight.data_ptr(), self.weight._version, h, w)
        if self._kept is None or self._kept[0] is not self.weight or self._kept[1] != state:
            self._kept = self.weight, state, Spread.apply(self.weight.detach(), h, w, self.padding)
        return self._kept[2]


class StridedConv(nn.Conv2d):
    """A convolution with a stride (the same along both axes), computed over blocks of that size."""

    def forward(self, x: Tensor) -> Tensor:
        step, margin, size = self.stride[0], self.padding[0], self.kernel_size[0]
        if x.device.type != "cpu" or step == 1:
            return super().forward(x)
        more = -size % step  # zeros that fill the kernel up to whole blocks
        ends = []
        for side in x.shape[2:]:
            places = (side + 2 * margin - size) // step + 1
            ends.append((places - 1) * step + size + more - side - margin)
        blocks = pixel_unshuffle(pad(x, (margin, ends[1], margin, ends[0])), step)
        kernel = pixel_unshuffle(pad(self.weight, (0, more, 0, more)), step)
        layout = torch.channels_last
        return conv2d(blocks.contiguous(memory_format=layout), kernel.contiguous(memory_format=layout), self.bias)
