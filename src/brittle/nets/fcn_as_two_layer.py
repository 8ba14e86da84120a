"""An FCN with one hidden layer of ReLUs as the depth-2 network of VYS, which the certificates support."""

from __future__ import annotations

import torch
from torch import Tensor

from brittle.nets.family import Family, split
from brittle.nets.fcn import Fcn
from brittle.nets.two_layer import TwoLayer


def two_layer(family: Family, theta: Tensor) -> TwoLayer | None:
    """The same networks, or None for other architectures. The score's bias becomes a neuron that is always 1."""
    if not isinstance(family, Fcn) or family.depth != 1 or family.activation != "relu":
        return None
    k = family.width  # (s, p)
    w, b, v, c = split(theta, [(k, family.d), (k,), (k,), (1,)])
    w = torch.cat([w, torch.zeros_like(w[:, :1])], 1)
    return TwoLayer(w, torch.cat([b, torch.ones_like(c)], 1), torch.cat([v, c], 1))
