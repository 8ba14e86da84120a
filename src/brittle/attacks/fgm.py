"""The fast gradient method exactly as FP §4.2 defines it: to the end of the ball, unless the gradient is tiny."""

from __future__ import annotations

from torch import Tensor

from brittle.attacks.pieces import NORMS

DUAL = {"l2": 2, "linf": 1}


def fgm(gradient: Tensor, y: Tensor, norm: str, tau: float, least: float = 1e-9) -> Tensor:
    """arg min ⟨y ∇f(x), δ⟩ over ‖δ‖ ≤ τ; 0 where the dual norm of ∇f(x) is below `least`, the paper's 1/poly(d)."""
    delta = -tau * y[:, None] * NORMS[norm].normalise(gradient)  # (n, d), (n,) -> (n, d)
    return delta * (gradient.norm(p=DUAL[norm], dim=1, keepdim=True) >= least)
