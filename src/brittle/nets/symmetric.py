"""The symmetric two-layer network of FP §4, f(x) = Σ_i R(⟨w_i, x⟩ - b) - R(-⟨w_i, x⟩ - b).

R(u) = E_ρ ReLU(u + ρ) for ρ ~ N(0, σ_ρ²) is the smoothed ReLU, in closed form. To the precision of float32 a neuron is
off where |⟨w_i, x⟩| < b - 5σ_ρ. In a trained network nearly all are off on any one sample, so after the first
product everything, gradients included, is a sum over the few that are on.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from brittle.core.rng import normal32

warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")

REACH = 5.0  # Φ(-5) = 3e-7
SPARSE = 0.1  # up to this share of active neurons a sparse product is the faster one, on a CPU
BLOCK = 1 << 17  # numbers
ROOT, HALF = 1 / math.sqrt(2 * math.pi), 1 / math.sqrt(2)


def smoothed_relu(u: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
    """E ReLU(u + ρ) = u Φ(u/σ) + σ φ(u/σ), and its derivative Φ(u/σ); at σ = 0 the ReLU itself."""
    if sigma == 0:
        return u.relu(), (u > 0).to(u.dtype)
    t = u / sigma
    step = (t * HALF).erf_().add_(1).mul_(0.5)
    return u * step + sigma * ROOT * (-t * t / 2).exp(), step


def odd(a: Tensor, b: float, sigma: float) -> tuple[Tensor, Tensor]:
    """g(a) = R(a - b) - R(-a - b), and g'(a) = Φ((a - b)/σ) + Φ((-a - b)/σ): Fact A.1's plus sign."""
    (up, on), (down, off) = smoothed_relu(a - b, sigma), smoothed_relu(-a - b, sigma)
    return up - down, on + off


@dataclass(frozen=True)
class Symmetric:
    w: Tensor  # (m, d)
    b: float
    sigma: float  # σ_ρ

    def __call__(self, x: Tensor) -> Tensor:
        """f(x_i); its gradient with respect to x is the hand-written one."""  # (n, d) -> (n,)
        return _Scores.apply(x, self)

    def look(self, x: Tensor) -> Look:
        """The scores and slopes of the neurons on these samples."""  # (n, d)
        return Look(self.w, self.w @ x.T, self.b, self.sigma)

    def input_gradient(self, x: Tensor) -> Tensor:
        """∇_x E_ρ f(x_i)."""  # (n, d) -> (n, d)
        return self.look(x).input_gradient()

    def features(self, x: Tensor) -> Tensor:
        """The NTK's features: the derivatives of f(x_i) by the weights, x_i times the neuron's slope (Fact A.1)."""
        return torch.einsum("nm,nd->nmd", odd(x @ self.w.T, self.b, self.sigma)[1], x)  # (n, d) -> (n, m, d)

    def to(self, target: torch.device | torch.dtype) -> Symmetric:
        """The network on another device, or in another precision."""
        return replace(self, w=self.w.to(target))


class _Scores(torch.autograd.Function):
    """The network as an autograd function, for attacks that differentiate any network."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, net: Symmetric) -> Tensor:
        ctx.look = net.look(x)
        return ctx.look.scores.clone()  # a copy: an output that its own node holds would never be freed

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0][:, None] * ctx.look.input_gradient(), None


class Look:
    """Scores and slopes of the neurons on a batch; the products that gradients are made of."""

    def __init__(self, w: Tensor, a: Tensor, b: float, sigma: float) -> None:
        self.w, self.shape, self.sparse = w, a.shape, False  # (m, n)
        if b <= REACH * sigma:  # every neuron is on, at least slightly
            values, self.slopes = odd(a, b, sigma)  # (m, n)
            self.scores = values.sum(0)  # (n,)
            return
        if a.device.type != "cpu":  # the list of those that are on would have to be waited for
            on = a.abs() > b - REACH * sigma
            values, slopes = smoothed_relu(a.abs() - b, sigma)
            self.scores = torch.where(on, values.copysign(a), 0.0).sum(0)
            self.slopes = torch.where(on, slopes, 0.0)
            return
        neuron, sample = _beyond(a, b - REACH * sigma)
        some = a[neuron, sample]
        values, slopes = smoothed_relu(some.abs() - b, sigma)  # (active,); R(-|a| - b) is negligible
        self.scores = a.new_zeros(a.shape[1]).index_add_(0, sample, values.copysign_(some))
        self.sparse = len(some) < SPARSE * a.numel()
        if self.sparse:
            counts = torch.bincount(neuron, minlength=a.shape[0])
            self.starts, self.sample, self.slopes = torch.cat([counts.new_zeros(1), counts.cumsum(0)]), sample, slopes
        else:
            self.slopes = torch.zeros_like(a).index_put_((neuron, sample), slopes)

    def _matrix(self, values: Tensor) -> Tensor:
        return torch.sparse_csr_tensor(self.starts, self.sample, values, self.shape, check_invariants=False)  # (m, n)

    def input_gradient(self) -> Tensor:
        """∇_x f(x_i) = Σ_j g'(a_ji) w_j."""  # (n, d)
        return (self._matrix(self.slopes).t() if self.sparse else self.slopes.T) @ self.w

    def weight_gradient(self, c: Tensor, x: Tensor) -> Tensor:
        """∇_w Σ_i c_i f(x_i): row j is Σ_i c_i g'(a_ji) x_i."""  # (n,), (n, d) -> (m, d)
        return (self._matrix(self.slopes * c[self.sample]) if self.sparse else self.slopes * c) @ x


def _beyond(a: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """The rows and columns where |a| > least, on a CPU: |a| is looked at in blocks that stay in the cache of a core."""
    mask = torch.cat([part.abs() > least for part in a.split(max(1, BLOCK // max(1, a.shape[1])))])
    places = torch.from_numpy(np.flatnonzero(mask.numpy()))
    row = places // a.shape[1]
    return row, places - row * a.shape[1]


def random(m: int, d: int, scale: float, rng: np.random.Generator) -> Tensor:
    """w_i ~ N(0, σ0² I)."""  # (m, d)
    return torch.from_numpy(normal32((m, d), rng) * np.float32(scale))


def pure(
    dictionary: np.ndarray, w_star: np.ndarray, m: int, size: float, noise: float, rng: np.random.Generator
) -> Tensor:
    """w_i = size · sign(w*_j) M_j + N(0, noise² I), every word in turn: the pure features of FP §6.2's last remark."""
    words = np.arange(m) % dictionary.shape[1]
    features = (dictionary * np.sign(w_star))[:, words].T * np.float32(size)
    return torch.from_numpy(np.ascontiguousarray(features)) + random(m, dictionary.shape[0], noise, rng)  # (m, d)
