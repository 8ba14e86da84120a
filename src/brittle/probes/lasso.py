"""Pictures as sparse combinations of features: the convolutional Lasso of FP §8.3 (Fig 4 and 12, footnote 18),

    min_y ‖Wy - x‖² + λ‖y‖₁,    W the transpose of a convolutional layer,

solved for many pictures at once by FISTA. A picture is done when its duality gap is small enough, not after a fixed
number of steps: the curves compare features whose W are conditioned differently, and the same number of steps would
favour some of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d, conv_transpose2d, pad, pixel_shuffle, pixel_unshuffle

from brittle.core.rng import rng

TINY = 1e-30
MARGIN = 1.02  # on ‖W‖², which power iteration approaches from below
RIDGE = 1e-11  # of ‖W‖²: what Cholesky in float64 tolerates; see `unreachable`
ROWS = 256  # unit pictures at a time when WWᵀ is computed


@dataclass(frozen=True)
class Dictionary:
    """The matrix W: copies of m filters at all positions of a convolution over size × size pictures."""

    weight: Tensor  # (m, c, k, k)
    stride: int
    padding: int
    size: int

    @classmethod
    def unit(cls, weight: Tensor, stride: int, padding: int, size: int = 32) -> Dictionary:
        """The filters of a layer, each scaled to norm 1.

        A small filter needs large coefficients, which λ penalises. But a filter's size has a meaning only together with
        the layers after it (batch norm undoes it altogether). We remove it, so that λ means the same for each filter
        and set of filters. The part of a filter that is left at the border of the picture is still shorter than 1.
        """
        weight = weight.detach()
        return cls(weight / weight.flatten(1).norm(dim=1).clamp(min=TINY)[:, None, None, None], stride, padding, size)

    @cached_property
    def side(self) -> int:
        """The number of positions of a filter along either axis."""
        return (self.size + 2 * self.padding - self.weight.shape[-1]) // self.stride + 1

    @cached_property
    def packed(self) -> Tensor:
        """The filters with each stride × stride block of pixels as channels."""  # (m, c s², k/s, k/s), k/s rounded up
        more = -self.weight.shape[-1] % self.stride
        return pixel_unshuffle(pad(self.weight, (0, more, 0, more)), self.stride)

    def analyse(self, x: Tensor) -> Tensor:
        """Wᵀx: the layer itself, without its bias."""  # (n, c, size, size) -> (n, m, side, side)
        return conv2d(x, self.weight, stride=self.stride, padding=self.padding)

    def synthesise(self, y: Tensor) -> Tensor:
        """Wy: conv_transpose2d with this stride and padding, and with the output_padding that gives `size` back.

        It is written with stride 1, where each position makes a block of stride × stride pixels: for AlexNet's first
        layer that is five times as fast as PyTorch with strides on a CPU, and twelve times as fast as the matrix W.
        """  # (n, m, side, side) -> (n, c, size, size)
        wide = pixel_shuffle(conv_transpose2d(y, self.packed), self.stride)
        before, after = -self.padding, self.size + self.padding - wide.shape[-1]  # < 0: crop; > 0: read by no filter
        return pad(wide, (before, after, before, after))

    @cached_property
    def norm(self) -> float:
        """‖W‖ by power iteration, from below."""
        shape = (1, self.weight.shape[0], self.side, self.side)
        y = torch.from_numpy(rng(0, "power iteration").standard_normal(shape)).to(self.weight)
        before, square = 0.0, 1.0
        for _ in range(1000):
            y = self.analyse(self.synthesise(y / y.norm().clamp(min=TINY)))
            before, square = square, float(y.norm())
            if abs(square - before) <= 1e-5 * square:
                break
        return math.sqrt(square)

    def lam_max(self, x: Tensor) -> Tensor:
        """2‖Wᵀx‖_∞ of each picture: from this λ on, y = 0."""  # (n, c, size, size) -> (n,)
        return 2 * self.analyse(x).flatten(1).abs().amax(1)


@dataclass(frozen=True)
class Solution:
    y: Tensor  # (n, m, side, side)
    gap: Tensor  # (n,) relative: the objective is at most this share of itself above its minimum (up to rounding)
    steps: Tensor  # (n,)
    converged: Tensor  # (n,) bool


def dots(a: Tensor, b: Tensor) -> Tensor:
    """The inner product for each picture, summed in float64: the gap is a small difference of large numbers."""
    return (a * b).flatten(1).sum(1, dtype=torch.float64)


def solve(
    dictionary: Dictionary, x: Tensor, lam: Tensor, tolerance: float, most: int, start: Tensor | None = None
) -> Solution:
    """Run FISTA until gap ≤ tolerance for each picture, but for no more than `most` steps.

    The momentum is restarted when it points uphill (O'Donoghue and Candès). Any θ with ‖Wᵀθ‖_∞ ≤ λ bounds the minimum
    from below by ⟨θ, x⟩ - ‖θ‖²/4. At the minimum θ = 2r, r = x - Wy; before that we take the best feasible multiple of
    r. This bound lags behind: where it says 1e-2, the objective is typically within 1e-4 of its minimum, and of the
    coefficients that are not 0, one in 20 to 100 would still become 0; at 3e-2, one in five may. W is applied to y
    only; at the extrapolated point z everything follows linearly.
    """  # (n, c, size, size), (n,)
    n, eta = len(x), 1 / (2 * MARGIN * dictionary.norm**2)
    y = x.new_zeros(n, len(dictionary.weight), dictionary.side, dictionary.side) if start is None else start
    lam, live = lam.to(x), torch.arange(n, device=x.device)
    found = Solution(y.clone(), *(torch.zeros(n, dtype=kind, device=x.device) for kind in (torch.double, int, bool)))
    r = x - dictionary.synthesise(y)
    c = dictionary.analyse(r)  # -1/2 of the gradient
    y_old, c_old, t = y, c, torch.ones_like(lam)
    below = torch.full_like(found.gap, -math.inf)
    for step in range(most + 1):
        rr, rx = dots(r, r), dots(r, x)
        allowed = lam.double() / (2 * c.flatten(1).abs().amax(1).double()).clamp(min=TINY)
        scale = (rx / rr.clamp(min=TINY)).clamp(-allowed, allowed)  # θ = 2 scale r; r may point away from x
        below = below.maximum(2 * scale * rx - scale.square() * rr)
        objective = rr + lam * y.flatten(1).abs().sum(1, dtype=torch.float64)
        gap = (objective - below) / objective.clamp(min=TINY)
        done = gap <= tolerance
        if step == most or done.any():
            found.y[live], found.gap[live], found.steps[live], found.converged[live] = y, gap, step, done
            on = ~done  # the others continue
            live, x, lam, r, c, y, y_old, c_old, t, below = (
                each[on] for each in (live, x, lam, r, c, y, y_old, c_old, t, below)
            )
        if step == most or len(live) == 0:
            break
        t_new = (1 + (1 + 4 * t * t).sqrt()) / 2
        momentum = ((t - 1) / t_new)[:, None, None, None]
        z = y + momentum * (y - y_old)
        ahead = z + 2 * eta * (c + momentum * (c - c_old))
        threshold = (eta * lam)[:, None, None, None]
        y_old, c_old, y = y, c, ahead - ahead.clamp(-threshold, threshold)  # exactly 0 below the threshold
        r = x - dictionary.synthesise(y)
        c = dictionary.analyse(r)
        uphill = dots(z - y, y - y_old) > 0
        t = torch.where(uphill, 1.0, t_new)
    return found


@dataclass(frozen=True)
class Point:
    """The results for one λ, as means over pictures."""

    lam: float  # as a share of each picture's λ_max
    sparsity: float  # the share of coefficients that are not 0
    error: float  # ‖Wy - x‖²/‖x‖²
    gap: float  # the largest
    steps: float
    converged: float  # the share of pictures


@dataclass(frozen=True)
class Curve:
    points: tuple[Point, ...]  # from the largest λ to the smallest
    pictures: Tensor | None  # (n, c, size, size) Wy for the λ to keep
    errors: Tensor  # (λs, n) of each picture


def path(
    dictionary: Dictionary, x: Tensor, lams: Iterable[float], tolerance: float, most: int, keep: float | None = None
) -> Curve:
    """Solve for each λ, a share of each picture's λ_max, from the largest down, each from the solution before it.

    At most `most` steps for each λ. `keep` is the λ of the pictures to return.
    """  # (n, c, size, size)
    lams = sorted(lams, reverse=True)
    if lams[-1] <= 0 or (keep is not None and keep not in lams):
        raise ValueError(f"lams = {lams}, keep = {keep}: λ is positive, and the one to keep is among them")
    largest, energy = dictionary.lam_max(x), dots(x, x).clamp(min=TINY)
    points, errors, kept, y = [], [], None, None
    for lam in lams:
        found = solve(dictionary, x, lam * largest, tolerance, most, y)
        y = found.y
        again = dictionary.synthesise(y)
        error = dots(again - x, again - x) / energy
        means = ((y != 0).double(), error)
        checks = (found.gap.max(), found.steps.double().mean(), found.converged.double().mean())
        points.append(Point(lam, *(float(each.mean()) for each in means), *map(float, checks)))
        errors.append(error)
        if lam == keep:
            kept = again
    return Curve(tuple(points), kept, torch.stack(errors))


def error_at(curve: Curve, sparsity: float) -> float:
    """The error at a given sparsity, by which curves are compared: interpolated in log sparsity, NaN outside."""
    known = sorted((math.log(point.sparsity), point.error) for point in curve.points if point.sparsity > 0)
    if not known:
        return math.nan
    return float(np.interp(math.log(sparsity), *zip(*known, strict=True), left=math.nan, right=math.nan))


def errors_at(curve: Curve, sparsity: float) -> np.ndarray:
    """Each picture's error where the curve has this sparsity, so that their mean is `error_at`; NaN outside."""
    known = zip(curve.points, curve.errors.tolist(), strict=True)
    known = sorted((math.log(point.sparsity), errors) for point, errors in known if point.sparsity > 0)
    places, of_pictures = [place for place, _ in known], zip(*(errors for _, errors in known), strict=True)
    at = {"left": math.nan, "right": math.nan}
    return np.array([np.interp(math.log(sparsity), places, each, **at) for each in of_pictures])


def unreachable(dictionary: Dictionary, x: Tensor) -> Tensor:
    """‖Wy - x‖²/‖x‖² of each picture for λ = 0: the part of x outside the span of the features (Remark 8.2).

    Least squares with a very small ridge μ, where r = μ(WWᵀ + μ)⁻¹x: a direction in which W is 3e-6 times as strong
    as in its strongest counts as half out of reach, since it takes coefficients as many times larger. It is computed
    in float64 with WWᵀ itself, whose size depends on the picture, not on the number of features.
    """  # (n, c, size, size) -> (n,)
    exact = Dictionary(dictionary.weight.double(), dictionary.stride, dictionary.padding, dictionary.size)
    flat = x.double().flatten(1)
    pictures = torch.eye(flat.shape[1], dtype=torch.float64, device=x.device).unflatten(1, x.shape[1:])
    gram = torch.cat([exact.synthesise(exact.analyse(some)).flatten(1) for some in pictures.split(ROWS)])
    mu = RIDGE * exact.norm**2
    gram = (gram + gram.T) / 2
    gram.diagonal().add_(mu)
    r = mu * torch.cholesky_solve(flat.T, torch.linalg.cholesky(gram)).T
    return r.square().sum(1) / flat.square().sum(1).clamp(min=TINY)


def centred(images: Tensor) -> Tensor:
    """Pictures with zero mean in each colour (footnote 18): features cannot be expected to make a flat colour."""
    return images - images.mean((2, 3), keepdim=True)


def alike(delta: Tensor, images: Tensor) -> Tensor:
    """Perturbations rescaled to the mean and the standard deviation of the picture each belongs to (footnote 19)."""
    over = (1, 2, 3)
    size = images.std(over, keepdim=True) / delta.std(over, keepdim=True).clamp(min=TINY)
    return images.mean(over, keepdim=True) + size * (delta - delta.mean(over, keepdim=True))
