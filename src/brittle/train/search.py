"""How far to go along a descent direction. A search knows nothing of where the direction came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor


class HasLoss(Protocol):
    ln_loss: Tensor  # (s,)


P = TypeVar("P", bound=HasLoss)


# Which networks have gone down enough, the steps tried, where they lead -> whether all have. This is where the search
# waits for a GPU, so whoever calls it may read there, in the same transfer, whatever else it wants to know of the step.
Look = Callable[[Tensor, Tensor, P], bool]

# ln loss at several steps at once. A search that begins where it will end waits for a GPU but once.
Glance = Callable[[Tensor], Tensor]  # (n, s) -> (n, s)


class Search(Protocol[P]):
    """Any rule for the length of a step. `slope` is the rate at which ln loss falls at t = 0."""

    def begin(self, ln_loss: Tensor, slope: Tensor, t: Tensor, glance: Glance | None) -> tuple[Tensor, Tensor]:
        """The longest step allowed, up to t, and the one to try first."""
        ...

    def __call__(
        self, along: Callable[[Tensor], P], ln_loss: Tensor, slope: Tensor, begin: tuple[Tensor, Tensor], look: Look[P]
    ) -> tuple[Tensor, Tensor, P]: ...


def all_enough(enough: Tensor, t: Tensor, point: object) -> bool:
    return bool(enough.all())


@dataclass(frozen=True)
class Armijo(Generic[P]):
    """Backtracking: shrink the step until the loss falls by `share` of what its slope promises.

    Half of the promise keeps the steps close to the gradient-flow path. In front of a kink where the loss turns upwards
    only ever smaller steps achieve it, and descent would creep up to the kink and stop there, whereas gradient flow
    slides along it. So where a step promises next to nothing, the loss may also rise by the same share of it: the step
    hops to the other side, and on average descent slides. Narrow networks in low dimension and data of small norm need
    this.

    No step may promise more than `bold` in ln loss, plus `bolder` times the current |ln loss|: from small weights, or
    with few samples, the loss falls ever faster and a longer step would be accepted, but it would skip the part of the
    path on which the samples' margins even out.
    """

    share: float = 0.5
    shrink: float = 0.5
    grow: float = 1.1  # the next search starts a little farther out than this one ended
    little: float = 0.03  # next to nothing, in ln loss
    bold: float = 2.0
    bolder: float = 0.02
    most: int = 60
    glances: int = 5  # steps to glance at

    def begin(self, ln_loss: Tensor, slope: Tensor, t: Tensor, glance: Glance | None = None) -> tuple[Tensor, Tensor]:
        """The longest step allowed, up to t, and the one to try first: that, or the first that a glance finds enough.

        No value is read, so a CUDA graph can record this.
        """  # (s,), (s,), (s,) -> (s,), (s,)
        longest = torch.minimum(t, (self.bold + self.bolder * ln_loss.abs()) / slope.clamp(min=1e-30))
        if not (glance and self.glances):
            return longest, longest
        *steps, next_one = accumulate(range(self.glances), lambda step, _: step * self.shrink, initial=longest)
        t = torch.stack(steps)
        return longest, torch.where(self._enough(glance(t), ln_loss, t * slope), t, next_one).amax(dim=0)

    def _enough(self, there: Tensor, ln_loss: Tensor, promise: Tensor) -> Tensor:
        """Which steps go down enough."""
        return there <= torch.add(ln_loss, torch.where(promise < self.little, promise, -promise), alpha=self.share)

    def __call__(
        self,
        along: Callable[[Tensor], P],
        ln_loss: Tensor,
        slope: Tensor,
        begin: tuple[Tensor, Tensor],
        look: Look[P] = all_enough,
    ) -> tuple[Tensor, Tensor, P]:
        """The step taken by each network, the step to try next time, and the point that the step taken leads to.

        All networks of the batch search at once. A step of 0 means that none was found.
        """  # (s,), (s,), (s,) -> (s,), (s,), point
        longest, t = begin
        for _ in range(self.most):
            point = along(t)
            enough = self._enough(point.ln_loss, ln_loss, t * slope)
            if look(enough, t, point):
                return t, t * self.grow, point
            t = torch.where(enough, t, t * self.shrink)
        t = torch.where(enough, t, 0.0)
        point = along(t)
        look(enough, t, point)
        return t, torch.where(enough, t * self.grow, longest), point
