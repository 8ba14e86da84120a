"""The fast gradient method exactly as FP §4.2 defines it: to the edge of the ball, unless the gradient is tiny."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from brittle.attacks.pgd import pgd
from brittle.attacks.pieces import NORMS
from brittle.nets.symmetric import Symmetric

DUAL = {"l2": 2, "linf": 1}


def fgm(gradient: Tensor, y: Tensor, norm: str, tau: float, least: float = 1e-9) -> Tensor:
    """arg min ⟨y ∇f(x), δ⟩ over ‖δ‖ ≤ τ; 0 where the dual norm of ∇f(x) is below `least`, the paper's 1/poly(d)."""
    delta = -tau * y[:, None] * NORMS[norm].normalise(gradient)  # (n, d), (n,) -> (n, d)
    return delta * (gradient.norm(p=DUAL[norm], dim=1, keepdim=True) >= least)


@dataclass(frozen=True)
class Attack:
    """The attack that adversarial training applies to a batch (Algorithm 2): FGM, or PGD of several steps."""

    norm: str  # l2 or linf
    tau: float
    steps: int = 1

    def __call__(self, net: Symmetric, x: Tensor, y: Tensor, share: float = 1.0) -> Tensor:
        """The perturbation δ of every sample, within this share of τ."""  # (n, d), (n,) -> (n, d)
        if self.steps == 1:
            return fgm(net.input_gradient(x), y, self.norm, share * self.tau)
        return pgd(net, x, y, self.norm, share * self.tau, self.steps)
