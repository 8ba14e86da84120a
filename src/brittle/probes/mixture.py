"""Neurons in the basis of the dictionary (FP Theorem 5.2): w_i = α w*_j M_j + Σ_{j'≠j} β_{j'} w*_{j'} M_{j'}.

The first term is the neuron's word, the second its dense mixture. Coefficients are taken along sign(w*_j) M_j, so that
those of a mixture along M w* are all positive.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

PURE = 0.7  # a neuron counts as pure above this cosine with its word, and as dense above this cosine with M w*


@dataclass(frozen=True)
class Neurons:
    """m neurons, decomposed."""

    coefficients: Tensor  # (m, D) ⟨w_i, M_j⟩ sign(w*_j)
    norms: Tensor  # (m,) ‖w_i‖
    word: Tensor  # (m,) j, the word with the largest coefficient
    dense_cosine: Tensor  # (m,) between w_i and M w*

    @property
    def alpha(self) -> Tensor:
        """The coefficient of the neuron's word."""  # (m,)
        return self.coefficients.gather(1, self.word[:, None])[:, 0]

    @property
    def rest(self) -> Tensor:
        """The other coefficients."""  # (m, D - 1)
        others = torch.ones_like(self.coefficients, dtype=torch.bool)
        others.scatter_(1, self.word[:, None], False)
        return self.coefficients[others].view(len(others), -1)

    @property
    def beta(self) -> Tensor:
        """The mixture's mean coefficient."""  # (m,)
        return self.rest.mean(1)

    @property
    def pure(self) -> Tensor:
        """Which neurons are mostly their word."""  # (m,)
        return self.alpha > PURE * self.norms

    @property
    def runaway(self) -> Tensor:
        """Which neurons are mostly M w* itself."""  # (m,)
        return self.dense_cosine > PURE


def decompose(w: Tensor, dictionary: Tensor, w_star: Tensor) -> Neurons:
    coefficients = (w @ dictionary) * w_star.sign()  # (m, d), (d, D), (D,)
    dense = dictionary @ w_star
    norms = w.norm(dim=1)
    cosine = (w @ dense) / (norms * dense.norm()).clamp(min=torch.finfo(w.dtype).tiny)
    return Neurons(coefficients, norms, coefficients.argmax(1), cosine)


def mixture(neurons: Neurons, w: Tensor, dictionary: Tensor, w_star: Tensor) -> dict[str, float]:
    """The numbers of claims P4 and P7 over the pure neurons; and how many neurons are pure, covering which words."""
    pure, runaway = neurons.pure, neurons.runaway
    energy = neurons.norms.square()
    found = {
        "neurons": float(len(w)),
        "pure": float(pure.double().mean()),
        "covered": len(neurons.word[pure].unique()) / dictionary.shape[1],
        "runaway": float(runaway.double().mean()),
        "runaway_energy": float(energy[runaway].sum() / energy.sum()),
    }
    if not bool(pure.any()):
        return found | dict.fromkeys(("alpha", "beta", "ratio", "agreement", "mean_cosine"), float("nan"))
    alpha, rest = neurons.alpha[pure], neurons.rest[pure]
    words = dictionary.T[neurons.word[pure]] * w_star[neurons.word[pure]].sign()[:, None]
    mean = (w[pure] - alpha[:, None] * words).mean(0)  # (d,) the mixture that they share
    dense = dictionary @ w_star
    return found | {
        "alpha": float(alpha.median()),
        "beta": float(rest.mean()),
        "ratio": float((rest.mean(1) / alpha).median()),  # β/α
        "agreement": float((rest > 0).double().mean()),  # with the sign of w*
        "mean_cosine": float(mean @ dense / (mean.norm() * dense.norm())),
    }
