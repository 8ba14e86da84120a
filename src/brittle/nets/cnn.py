"""(f, k, L)-CNN: L one-dimensional convolutions with f filters of size k, then two linear layers (SB Appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv1d

from brittle.nets.family import Gradient, Loss, by_autograd, split, uniform


@dataclass(frozen=True)
class Cnn:
    """Convolutions padded to keep the length d, with a ReLU after each; then a hidden layer of d neurons."""

    d: int
    filters: int
    size: int  # odd
    depth: int
    hidden = ()
    dropout = 0.0

    def _layers(self) -> list[tuple[int, tuple[int, ...]]]:
        layers = []
        for channels in (1, *(self.filters,) * (self.depth - 1)):
            fan_in = channels * self.size
            layers += [(fan_in, (self.filters, channels, self.size)), (fan_in, (self.filters,))]
        flat = self.d * self.filters
        layers += [(flat, (self.d, flat)), (flat, (1, self.d)), (self.d, (1, self.d)), (self.d, (1, 1))]
        return layers

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [shape for _, shape in self._layers()]

    def initial(self, rngs: Sequence[np.random.Generator]) -> Tensor:
        return uniform(rngs, self._layers())

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        *convolutions, w, b, v, c = split(theta, self.shapes)
        kernels, biases = convolutions[::2], convolutions[1::2]
        h = torch.baddbmm(biases[0].repeat_interleave(self.d, 1).unsqueeze(1), x, self._toeplitz(kernels[0])).relu()
        for kernel, bias in zip(kernels[1:], biases[1:], strict=True):
            # One network after the other: each keeps the cores busy on its own, and PyTorch's groups are slower.
            each = zip(h.unflatten(2, (self.filters, self.d)), kernel, bias, strict=True)
            h = torch.stack([conv1d(one, k, shift, padding=self.size // 2) for one, k, shift in each])
            h = h.relu().flatten(2)
        h = torch.baddbmm(b, h, w.transpose(1, 2)).relu()
        return (h * v).sum(2) + c.squeeze(2)

    def _toeplitz(self, kernel: Tensor) -> Tensor:
        """The first convolution as a matrix, which is faster for a single channel."""  # (s, f, 1, k) -> (s, d, f d)
        place = torch.arange(self.d, device=kernel.device)
        offset = place[:, None] - place + self.size // 2  # of the input i from the first number that output j sees
        where = (offset[..., None] == torch.arange(self.size, device=kernel.device)).to(kernel.dtype)  # (i, j, k)
        return torch.einsum("ijk,sfk->sifj", where, kernel.squeeze(2)).flatten(2)

    def gradient(self, theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
        return by_autograd(self, theta, grad, loss)
