"""How dense perturbations are in the basis of the dictionary (FP §5.1, Fig 7 and §8.3)."""

from __future__ import annotations

from torch import Tensor


def density(delta: Tensor, dictionary: Tensor) -> dict[str, float]:
    """Medians over samples: ‖·‖₁/‖·‖₂ of the coefficients, and how many words carry nine tenths of the energy.

    The former is between 1 (one word) and √D (all words equal in size).
    """  # (n, d), (d, D)
    coefficients = delta @ dictionary
    energy = coefficients.square().sort(dim=1, descending=True).values
    # On the CPU: there is no cumulative sum of floats on CUDA that gives the same bytes each time.
    share = energy.cpu().cumsum(1).to(energy) / energy.sum(1, keepdim=True).clamp(min=1e-30)
    spread = coefficients.abs().sum(1) / coefficients.norm(dim=1).clamp(min=1e-30)
    return {"l1_l2": float(spread.median()), "words": float(((share < 0.9).sum(1) + 1).double().median())}
