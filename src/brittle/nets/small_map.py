"""Convolutions in forms that a CPU computes faster; on a GPU they are the ordinary ones.

On a map of few pixels, as in later layers, half of what a convolution multiplies is padding. A bilinear algorithm,
A((B x) ⊙ (G w)) for its matrices A, B and G, needs fewer products; each is that of two matrices, of samples by channels
and of channels by channels. Along an axis there is a product for each pair of pixels that the kernel connects or, where
that is fewer, Karatsuba's three for two halves, or Winograd's four for two outputs of a kernel of size 3. A plane takes
its axes one after the other. A, B and G have entries 0, ±½, ±1: results differ from the convolution's by rounding.

A kernel of 1 × 1 is one product of matrices. AlexNet's first layer has stride 4 and a kernel of size 11; with each
block of 4 × 4 pixels as the 48 channels of one pixel, it is a convolution of stride 1, kernel size 3.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, pixel_unshuffle

PIXELS = 32  # of a map: the largest for which the algorithm is faster on a CPU
DEPTHWISE = 2  # the same where each channel has its own kernel: there oneDNN's gradient takes 100 times its product


class Bilinear(NamedTuple):
    """y = A((B x) ⊙ (G w))."""

    a: Tensor  # (pixels of the output, products)
    b: Tensor  # (products, pixels of the input)
    g: Tensor  # (products, entries of the kernel)


def _pairs(n: int, size: int, stride: int, padding: int) -> Bilinear:
    """One product for each pair of pixels that the kernel connects."""
    out = (n + 2 * padding - size) // stride + 1
    taps = [(p, q, q + padding - p * stride) for p in range(out) for q in range(n)]
    taps = [tap for tap in taps if 0 <= tap[2] < size]
    a, b, g = torch.zeros(out, len(taps)), torch.zeros(len(taps), n), torch.zeros(len(taps), size)
    for product, (p, q, entry) in enumerate(taps):
        a[p, product] = b[product, q] = g[product, entry] = 1
    return Bilinear(a, b, g)


def _karatsuba(n: int) -> Bilinear:
    """y_p = Σ_q t_{q-p} x_q for n a power of 2, in 3^log₂ n products; g has the lags 1 - n, …, n - 1 of t.

    In halves: y₀ = T₀(x₀ + x₁) + (T₊ - T₀)x₁ and y₁ = T₀(x₀ + x₁) + (T₋ - T₀)x₀.
    """
    if n == 1:
        return Bilinear(*torch.ones(3, 1, 1))
    half = n // 2
    a, b, g = _karatsuba(half)
    zero = torch.zeros_like(b)
    middle, above, below = (torch.zeros(len(b), 2 * n - 1) for _ in range(3))
    for lags, first in ((below, 0), (middle, half), (above, n)):
        lags[:, first : first + n - 1] = g
    return Bilinear(
        torch.cat([torch.cat([a, a, torch.zeros_like(a)], 1), torch.cat([a, torch.zeros_like(a), a], 1)]),
        torch.cat([torch.cat([b, b], 1), torch.cat([zero, b], 1), torch.cat([b, zero], 1)]),
        torch.cat([middle, above - middle, below - middle]),
    )


def _lags(n: int, size: int, padding: int) -> Bilinear | None:
    """Karatsuba's algorithm with those lags that the kernel has."""
    if n & (n - 1) or size != 2 * padding + 1:
        return None
    a, b, g = _karatsuba(n)
    lags = torch.zeros(2 * n - 1, size)
    for lag in range(1 - n, n):
        if 0 <= lag + padding < size:
            lags[lag + n - 1, lag + padding] = 1
    return Bilinear(a, b, g @ lags)


def _winograd(n: int, size: int, padding: int) -> Bilinear | None:
    """F(2, 3) of Winograd: two outputs of a kernel of size 3 in four products."""
    out = n + 2 * padding - 2
    if size != 3 or out % 2:
        return None
    half = 0.5
    of_x = torch.tensor([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
    of_w = torch.tensor([[1, 0, 0], [half, half, half], [half, -half, half], [0, 0, 1]])
    of_y = torch.tensor([[1, 1, 1, 0], [0, 1, -1, -1]])
    a, b = torch.zeros(out, 2 * out), torch.zeros(2 * out, n + 2 * padding)
    for p in range(0, out, 2):
        a[p : p + 2, 2 * p : 2 * p + 4], b[2 * p : 2 * p + 4, p : p + 4] = of_y, of_x
    return Bilinear(a, b[:, padding : padding + n], of_w.repeat(out // 2, 1))


def _axis(n: int, size: int, stride: int, padding: int) -> Bilinear:
    """The algorithm with the fewest products."""
    found = [_pairs(n, size, stride, padding)]
    if stride == 1:
        found += [each for each in (_lags(n, size, padding), _winograd(n, size, padding)) if each]
    return min(found, key=lambda each: len(each.b))


@cache
def bilinear(
    map_size: tuple[int, int],
    size: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dtype: torch.dtype = torch.float32,
) -> tuple[Bilinear, Bilinear]:
    """The algorithms for the rows and the columns of a map."""
    rows, columns = (_axis(*of) for of in zip(map_size, size, stride, padding, strict=True))
    return Bilinear(*(part.to(dtype) for part in rows)), Bilinear(*(part.to(dtype) for part in columns))


def _planes(rows: Tensor, columns: Tensor, x: Tensor) -> Tensor:
    """Transform both axes, and join them."""  # (r, h), (s, w), (h, w, n, c) -> (r·s, n, c)
    h, w, n, c = x.shape
    y = columns @ (rows @ x.reshape(h, w * n * c)).view(len(rows), w, n * c)
    return y.view(len(rows) * len(columns), n, c)


class QuickConv(nn.Conv2d):
    """A convolution, computed as products of matrices where that is faster."""

    _kept: tuple[Tensor, Any, Tensor] | None = None  # the weights, their state, and their part of the products

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cpu" or self.dilation != (1, 1) or isinstance(self.padding, str):
            return super().forward(x)
        if self.groups == 1 and self.kernel_size == (1, 1) and self.padding == (0, 0):
            return self._each_pixel(x)
        depthwise = self.groups == self.in_channels == self.out_channels
        most = PIXELS if self.groups == 1 else DEPTHWISE if depthwise else 0
        return self._small_map(x) if x.shape[2] * x.shape[3] <= most else super().forward(x)

    def _each_pixel(self, x: Tensor) -> Tensor:
        down, across = self.stride
        x = x[:, :, ::down, ::across].permute(0, 2, 3, 1)
        y = x.reshape(x.shape[:3].numel(), self.in_channels) @ self.weight.view(self.out_channels, -1).T
        y = y if self.bias is None else y + self.bias
        return y.view(*x.shape[:3], self.out_channels).permute(0, 3, 1, 2)  # channels last, as in the input

    def _small_map(self, x: Tensor) -> Tensor:
        rows, columns = self._algorithm(*x.shape[2:])
        x, kernel = _planes(rows.b, columns.b, x.permute(2, 3, 0, 1)), self._products(*x.shape[2:])
        y = x @ kernel if self.groups == 1 else x * kernel
        y = _planes(rows.a, columns.a, y.view(len(rows.b), len(columns.b), *y.shape[1:]))
        y = y.view(len(rows.a), len(columns.a), *y.shape[1:]).permute(2, 0, 1, 3).contiguous().permute(0, 3, 1, 2)
        return y if self.bias is None else y + self.bias[:, None, None]

    def _algorithm(self, h: int, w: int) -> tuple[Bilinear, Bilinear]:
        return bilinear((h, w), self.kernel_size, self.stride, self.padding, self.weight.dtype)

    def _spread(self, weight: Tensor, h: int, w: int) -> Tensor:
        """G w: a matrix for each product."""  # (products, in, out), in = 1 for depthwise convolutions
        rows, columns = self._algorithm(h, w)
        return _planes(rows.g, columns.g, weight.permute(2, 3, 1, 0))

    def _products(self, h: int, w: int) -> Tensor:
        """G w, cached while the weights do not change and need no gradient: an attack uses it many times.

        The weights' version shows changes. Only optimisers with `fused=True` bypass it, and train/ uses none on a CPU.
        What is compiled caches nothing. (`torch.compiler.disable` would load the compiler here, for seconds.)
        """
        if torch.compiler.is_compiling() or (torch.is_grad_enabled() and self.weight.requires_grad):
            return self._spread(self.weight, h, w)
        state = (self.weight.data_ptr(), self.weight._version, h, w)
        if self._kept is None or self._kept[0] is not self.weight or self._kept[1] != state:
            self._kept = self.weight, state, self._spread(self.weight.detach(), h, w)
        return self._kept[2]


def quicken(net: nn.Module) -> nn.Module:
    """Have the network's ordinary convolutions computed so, in place; names of weights stay as they are."""
    for part in net.modules():
        if type(part) is nn.Conv2d:
            part.__class__ = QuickConv
    return net


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
