"""All that flow does to preactivations element by element, in blocks that stay in the cache of a core.

Preactivations a (s, m, k) can have 10⁸ bytes and more. Then an operation on all of them waits for memory, and a step
has a dozen operations for its one or two products of matrices. So each pass takes a block of samples at a time through
all operations that follow one another, and writes into memory that is kept from step to step. Per pass and element it
reads and writes:

- `look_ahead`: two numbers read, one written;
- `pull`: one read, one written;
- `move`: two read, one written.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from brittle.train.losses import relu_backward_

BLOCK = 1 << 17  # numbers in a block: of 0.5 MB, a few of which fit into a core's second cache
FEW = 1 << 22  # preactivations that a GPU passes over faster than a program can tell it to (docs/gpu.md)


class Passes:
    """The passes over preactivations of one shape. Outputs N(x_i) are (s, m); networks that move by 0 stay."""

    def __init__(self, a: Tensor) -> None:
        s, m, k = a.shape
        self.shape = (s, m)
        self.g, self.da = torch.empty_like(a), torch.empty_like(a)  # the pull on a, and the direction in which a moves
        self.spare = torch.empty_like(a)  # where a moves to
        rows = m if a.is_cuda else min(m, max(1, BLOCK // k))
        nets = s if a.is_cuda else min(s, max(1, BLOCK // (rows * k)))
        self.blocks = [(slice(i, i + nets), slice(j, j + rows)) for i in range(0, s, nets) for j in range(0, m, rows)]
        self.hidden = a.new_empty(nets * rows * k)  # σ of the block last looked at
        self.glances = a.is_cuda and a.numel() <= FEW  # whether to glance costs little

    def _cut(self, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """These (s, m, …) block by block."""
        if len(self.blocks) == 1:
            return iter([tensors])
        return zip(*([tensor[block] for block in self.blocks] for tensor in tensors), strict=True)

    def _of_each(self, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """For every block, these (s, …) of its networks."""
        if len(self.blocks) == 1:
            return iter([tensors])
        return zip(*([tensor[nets] for nets, _ in self.blocks] for tensor in tensors), strict=True)

    def _relu(self, a: Tensor) -> Tensor:
        return torch.clamp_min(a, 0, out=self.hidden[: a.numel()].view(a.shape))

    def _output(self, a: Tensor, v: Tensor, out: Tensor) -> None:
        torch.bmm(v.unsqueeze(1), self._relu(a).transpose(1, 2), out=out.unsqueeze(1))

    def output(self, a: Tensor, v: Tensor) -> Tensor:
        out = a.new_empty(self.shape)
        for (each, to), (weights,) in zip(self._cut(a, out), self._of_each(v), strict=True):
            self._output(each, weights, to)
        return out

    def look_ahead(self, last: Tensor, here: Tensor, reach: Tensor, v: Tensor) -> Tensor:
        """Write last + reach (here - last) over `last`; return the outputs there."""  # reach: (s, 1, 1)
        out = here.new_empty(self.shape)
        for (a, h, to), (w, u) in zip(self._cut(last, here, out), self._of_each(reach, v), strict=True):
            self._output(a.lerp_(h, w), u, to)
        return out

    def pull(self, a: Tensor, v: Tensor, e: Tensor) -> Tensor:
        """Write g = e_i v_j σ'(a_ij) for the pull e on the outputs; return Σ_i e_i σ(a_ij), the pull on v.

        `a` is where `look_ahead` has just been.
        """
        dv = torch.zeros_like(v)
        for (each, g, pull), (u, du) in zip(self._cut(a, self.g, e), self._of_each(v, dv), strict=True):
            h = self._relu(each) if len(self.blocks) > 1 else self.hidden.view(each.shape)
            du += torch.bmm(pull.unsqueeze(1), h).squeeze(1)
            relu_backward_(torch.mul(pull.unsqueeze(2), u.unsqueeze(1), out=g), each)
        return dv

    def move(self, a: Tensor, there: Tensor, t: Tensor, v: Tensor) -> Tensor:
        """Write a + t da to `there`; return the outputs there."""  # t: (s, 1, 1)
        out = a.new_empty(self.shape)
        blocks = self._cut(a, self.da, there, out)
        for (each, da, after, to), (long, u) in zip(blocks, self._of_each(t, v), strict=True):
            self._output(torch.addcmul(each, da, long, out=after), u, to)
        return out

    def glance(self, a: Tensor, t: Tensor, v: Tensor) -> Tensor:
        """The outputs at a + t da for several t at once. Nothing is written."""  # t: (n, s, 1, 1), v: (n, s, k)
        h = torch.addcmul(a, self.da, t).clamp_min_(0).flatten(0, 1)
        return torch.bmm(v.flatten(0, 1).unsqueeze(1), h.transpose(1, 2)).view(-1, *self.shape)
