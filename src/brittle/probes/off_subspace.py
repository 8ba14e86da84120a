"""Directions in which the data do not vary: how brittle a network is there (Melamed, Yehudai & Vardi 2023).

If all samples lie in a subspace P, every gradient of the loss with respect to a row w of the first layer is a sum of
samples, and lies in P, too. So training by gradients, in batches or not, whatever happens in the layers above, never
moves the part of w that is orthogonal to P: it stays as it was drawn. Weight decay alone acts on it, and multiplies it
by (1 - ηλ) in every update, so that after T updates without momentum

    Π⊥ w_T = (1 - ηλ)^T Π⊥ w_0.

What the network computes on P is independent of that part, and so is which neurons a sample of P activates. For
N(x) = Σ_j u_j σ(w_j·x) with fixed u_j = ±1/√k and w_0 ~ N(0, β²/d I) in R^d, the part Π⊥ ∇N(x) = Σ u_j Π⊥ w_j, over the
k_x active neurons, is therefore a Gaussian in the ℓ dimensions off P, each coordinate of variance k_x β²/(k d). Its
length is close to

    β √(k_x ℓ / (k d)),

which does not depend on the samples, on their labels or on how long the network was trained.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from brittle.attacks.minimum_norm_pgd import minimal
from brittle.attacks.nearest_boundary import along
from brittle.nets.two_layer import TwoLayer

TINY = 1e-5  # relative to the largest, singular values that are nothing but rounding
STEPS, HALVINGS = 10, 4  # of the search for the smallest perturbation


def span(x: Tensor) -> Tensor:
    """An orthonormal basis of the subspace that the samples span, in float64."""  # (n, d) -> (r, d)
    x = x.double()
    wide = x.shape[0] < x.shape[1]  # the smaller of the two Gram matrices
    values, vectors = torch.linalg.eigh(x @ x.T if wide else x.T @ x)
    kept = values > TINY**2 * values[-1]
    rows = vectors[:, kept].T
    return rows @ x / values[kept].sqrt()[:, None] if wide else rows


def off(v: Tensor, basis: Tensor) -> Tensor:
    """The part Π⊥ v of vectors that is orthogonal to a subspace."""  # (n, d), (r, d) -> (n, d)
    return v - v @ basis.T @ basis


def shrunk(lr: float, decay: float, updates: int) -> float:
    """What weight decay leaves of the part off the subspace: (1 - ηλ)^T."""
    return (1 - lr * decay) ** updates


def predicted_gradient(active: Tensor, width: int, codimension: int, d: int, scale: float) -> Tensor:
    """β √(k_x ℓ/(k d)), the length of the gradient's part off the subspace."""  # (n,) -> (n,)
    return scale * (active * codimension / (width * d)).sqrt()


def gradients(net: TwoLayer, x: Tensor) -> tuple[Tensor, Tensor]:
    """∇N(x_i), and how many neurons x_i activates; of a single network."""  # (n, d) -> (n, d), (n,)
    active = (net.preactivations(x[None])[0] > 0).to(x.dtype)
    return (active * net.v[0]) @ net.w[0], active.sum(1)


def flip_sizes(net: TwoLayer, x: Tensor, y: Tensor, basis: Tensor) -> Tensor:
    """How far each sample is from the boundary along its own gradient's part off the subspace; ∞ where there is none.

    The boundary is found exactly, because N is piecewise linear along a line.
    """  # (n, d), (n,), (r, d) -> (n,)
    return along(net, x, y, -y[:, None] * off(gradients(net, x)[0], basis)).size


def smallest(net: nn.Module, x: Tensor, y: Tensor, basis: Tensor, high: float) -> float:
    """The size of the smallest perturbation found orthogonal to the subspace: the median over samples, of any network.

    PGD never leaves x + P⊥ if it is given the gradient's part there. ∞ where most samples withstand all sizes up to
    `high`; nan where the subspace is all there is.
    """  # (n, d), (n,), (r, d)
    if len(basis) == x.shape[1]:
        return math.nan
    basis = basis.to(x)

    def f(points: Tensor) -> Tensor:
        if points.requires_grad:
            points = points.clone()
            points.register_hook(lambda gradient: off(gradient, basis))
        return net(points)

    return float(minimal(f, x, y, "l2", high, STEPS, HALVINGS).size.median())
