"""PGD on networks that train side by side, for adversarial training (Madry et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from brittle.attacks.pgd import pgd
from brittle.train.sgd import Perturb


def adversary(norm: str, eps: Tensor, steps: int, step: float) -> Callable[[Tensor], Perturb]:
    """PGD on the batches of the networks that still train, each within its own radius (Madry et al. 2018)."""

    def among(active: Tensor) -> Perturb:
        def perturb(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
            s, n, d = x.shape
            radii = eps[active].repeat_interleave(n)
            flat = pgd(lambda z: f(z.view(s, n, d)).flatten(), x.flatten(0, 1), y.flatten(), norm, radii, steps, step)
            return x + flat.view(s, n, d)

        return perturb

    return among
