"""Numbers about pictures: how rough they are, and how dense in bases that suit pictures (FP Fig 1 and 7).

FP shows such pictures and leaves the judgement to the eye: purified filters look smooth, and perturbations of clean
models look "dense". Density depends on the basis: in pixels every picture is dense, in cosines or wavelets a natural
one is not.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

TINY = 1e-30


def total_variation(x: Tensor) -> float:
    """The median over pictures of their total variation."""
    return float(total_variations(x).median())


def total_variations(x: Tensor) -> Tensor:
    """Mean |difference of neighbours| over mean |x - mean of the colour| of each picture.

    0 for flat colours, √2 for independent Gaussian pixels, more only for patterns like a chessboard (2).
    """  # (n, c, h, w) -> (n,)
    across, down = x.diff(dim=3).abs().flatten(1), x.diff(dim=2).abs().flatten(1)
    contrast = (x - x.mean((2, 3), keepdim=True)).abs().flatten(1).mean(1)
    return torch.cat([across, down], 1).mean(1) / contrast.clamp(min=TINY)


def high_frequency(w: Tensor) -> float:
    """The median over filters of their share of energy at high frequencies."""
    return float(high_frequencies(w).median())


def high_frequencies(w: Tensor) -> Tensor:
    """The share of each filter's energy beyond half the Nyquist frequency, without its mean.

    For white noise it is a bit more than 0.8. Filters of 3 × 3 have no other frequencies, so for them it is always 1.
    """  # (n, c, h, w) -> (n,)
    energy = torch.fft.fft2(w - w.mean((2, 3), keepdim=True)).abs().square().sum(1)  # (n, h, w)
    down, across = (torch.fft.fftfreq(side, dtype=energy.dtype, device=w.device) for side in w.shape[2:])
    high = (down[:, None].square() + across.square()).sqrt() > 0.25  # in cycles per pixel; Nyquist is at 1/2
    return energy[:, high].sum(1) / energy.sum((1, 2)).clamp(min=TINY)


def cosines(n: int) -> Tensor:
    """The orthonormal DCT-II, one cosine per row."""  # (n, n)
    places, frequencies = torch.arange(n, dtype=torch.float64) + 0.5, torch.arange(n, dtype=torch.float64)
    rows = math.sqrt(2 / n) * torch.cos(math.pi / n * frequencies[:, None] * places)
    rows[0] /= math.sqrt(2)
    return rows


def haar(n: int) -> Tensor:
    """The orthonormal Haar wavelets, one per row, from the mean to the finest; n is a power of 2."""  # (n, n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"Haar wavelets are for a power of 2, not for {n}")
    rows = torch.ones(1, 1, dtype=torch.float64)
    while len(rows) < n:
        fine = torch.eye(len(rows), dtype=torch.float64)
        pairs = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64) / math.sqrt(2)
        rows = torch.cat([torch.kron(rows, pairs[:1]), torch.kron(fine, pairs[1:])])
    return rows


def spread(x: Tensor) -> Tensor:
    """‖x‖₁/(√n ‖x‖₂): 1/√n if one number is not 0, 1 if all are equal in size; √(2/π) = 0.8 for Gaussian noise."""
    flat = x.flatten(1)  # (pictures, n) -> (pictures,)
    return flat.abs().mean(1) / flat.square().mean(1).sqrt().clamp(min=TINY)


def densities(delta: Tensor) -> dict[str, float]:
    """The medians over pictures of their `spreads`."""
    return {name: float(values.median()) for name, values in spreads(delta).items()}


def spreads(delta: Tensor) -> dict[str, Tensor]:
    """`spread` of each picture in pixels, cosines and Haar wavelets (along either axis, each colour on its own).

    White noise is equally dense in each of them. A perturbation that is sparse in any one of them has structure.
    """  # (n, c, h, w), h and w powers of 2
    found = {"pixels": delta}
    for name, basis in {"dct": cosines, "haar": haar}.items():
        down, across = (basis(side).to(delta) for side in delta.shape[2:])
        found[name] = down @ delta @ across.T
    return {name: spread(coefficients) for name, coefficients in found.items()}
