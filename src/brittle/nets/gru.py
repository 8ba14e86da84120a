"""(h, l, L)-GRU: L gated recurrent layers of h hidden units that read the input l numbers at a time (SB Appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.nets.family import Gradient, Loss, by_autograd, split, uniform


@dataclass(frozen=True)
class Gru:
    """The gates of Cho et al. 2014 as in PyTorch; the score is linear in the last state of the last layer."""

    d: int
    units: int
    reads: int  # numbers per time step; what is left over at the end of x is not read
    depth: int
    hidden = ()
    dropout = 0.0

    def _layers(self) -> list[tuple[int, tuple[int, ...]]]:
        h, layers = self.units, []
        for reads in (self.reads, *(h,) * (self.depth - 1)):
            layers += [(h, (3 * h, reads)), (h, (3 * h, h)), (h, (1, 3 * h)), (h, (1, 3 * h))]
        return [*layers, (h, (1, h)), (h, (1, 1))]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [shape for _, shape in self._layers()]

    def initial(self, rngs: Sequence[np.random.Generator]) -> Tensor:
        return uniform(rngs, self._layers())

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        *layers, v, c = split(theta, self.shapes)
        s, n, _ = x.shape
        steps = self.d // self.reads
        # Time first, so that a step is one contiguous block.
        sequence = x[:, :, : steps * self.reads].unflatten(2, (steps, self.reads)).transpose(1, 2)  # (s, time, n, l)
        for w, u, b_w, b_u in zip(*(layers[i::4] for i in range(4)), strict=True):
            given = torch.baddbmm(b_w, sequence.reshape(s, steps * n, -1), w.transpose(1, 2)).unflatten(1, (steps, n))
            state, states = x.new_zeros(s, n, self.units), []
            for step in given.unbind(1):
                state = self._step(step, torch.baddbmm(b_u, state, u.transpose(1, 2)), state)
                states.append(state)
            sequence = torch.stack(states, 1)
        return (sequence[:, -1] * v).sum(2) + c.squeeze(2)

    @staticmethod
    def _step(given: Tensor, recalled: Tensor, state: Tensor) -> Tensor:
        """The next state, from the input and the previous state."""  # (s, n, 3h), (s, n, 3h), (s, n, h)
        h = state.shape[2]
        gates, new = given.split([2 * h, h], 2)
        recalled_gates, recalled_new = recalled.split([2 * h, h], 2)
        reset, update = (gates + recalled_gates).sigmoid().split(h, 2)
        return torch.lerp(torch.addcmul(new, reset, recalled_new).tanh(), state, update)

    def gradient(self, theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
        return by_autograd(self, theta, grad, loss)
