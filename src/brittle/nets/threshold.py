"""The robust model of FP §3: the coefficient of each word is read separately, and small ones do not count.

f(x) = Σ_j w*_j · soft(⟨M_j, x⟩, b), where soft(t, b) is t shrunk towards 0 by b. Noise and small perturbations, which
are spread over all words, stay below b in each; a linear model adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import softshrink


@dataclass(frozen=True)
class Thresholded:
    dictionary: Tensor  # (d, D) orthonormal columns
    w_star: Tensor  # (D,)
    b: float

    def coefficients(self, x: Tensor) -> Tensor:
        """The coefficients of x along sign(w*_j) M_j."""  # (n, d) -> (n, D)
        return (x @ self.dictionary) * self.w_star.sign()

    def __call__(self, x: Tensor) -> Tensor:
        return softshrink(self.coefficients(x), self.b) @ self.w_star.abs()  # (n, d) -> (n,)
