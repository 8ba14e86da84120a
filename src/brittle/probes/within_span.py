"""Certificates of a network with few neurons in many dimensions, computed in the few that its neurons see."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.nets.two_layer import TwoLayer
from brittle.probes.certify import Certificate, certified


def certified_within_span(net: TwoLayer, x: Tensor, y: Tensor) -> Certificate:
    """`certified` in coordinates of the span of the w_j.

    Outputs do not change outside of it, so that the smallest perturbation that flips a sample lies within it.
    """  # (m, d), (m,)
    basis, _ = torch.linalg.qr(net.w[0].T)  # (d, k) orthonormal columns, k ≤ d
    return certified(TwoLayer(net.w @ basis, net.b, net.v), x @ basis, y)
