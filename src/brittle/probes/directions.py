"""Around how many directions do a network's neurons cluster? For neurons in the plane."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

NEAR = 10  # degrees: how far from a direction a neuron may be
MOST = 4  # directions
SHARE = 0.95  # of the mass that they are to have


@dataclass(frozen=True)
class Directions:
    mass: float  # the share of Σ ‖w_j‖² within NEAR of the best MOST directions
    count: int  # directions needed for SHARE of it
    angles: list[float]  # of the best MOST, in degrees, in [0, 360), in order


def directions(w: Tensor) -> Directions:
    """The fullest direction, then the fullest of what is left, and so on; to a degree.

    Each takes the mass within NEAR of it, and its angle is the mean of what it took.
    """  # (k, 2)
    degrees = torch.rad2deg(torch.atan2(w[:, 1], w[:, 0])).round().long() % 360
    left = torch.zeros(360, dtype=torch.float64).index_add_(0, degrees.cpu(), w.double().square().sum(1).cpu())
    left /= left.sum()
    window = torch.arange(-NEAR, NEAR + 1)
    taken, angles = [], []
    while sum(taken) < SHARE or len(taken) < MOST:
        around = torch.stack([left.roll(-int(shift)) for shift in window])  # (2 NEAR + 1, 360)
        middle = int(around.sum(0).argmax())
        share = around[:, middle]
        taken.append(float(share.sum()))
        angles.append((middle + float(share @ window.double()) / max(taken[-1], 1e-12)) % 360)
        left[(middle + window) % 360] = 0.0
    count = 1 + sum(total < SHARE for total in torch.tensor(taken).cumsum(0).tolist())
    return Directions(sum(taken[:MOST]), count, sorted(angles[:MOST]))
