"""What a linear classifier can read from a network's features."""

from __future__ import annotations

import torch
from torch import Tensor

RIDGE = 1e-3  # of the features' mean variance


def decodable(h: Tensor, y: Tensor, h_test: Tensor, y_test: Tensor) -> float:
    """The accuracy, on test samples, of the ridge regression of labels ±1 on features."""  # (n, k), (n,), (t, k), (t,)
    middle, level = h.double().mean(0), y.double().mean()
    centred = h.double() - middle
    gram = centred.T @ centred
    ridge = RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    weights = torch.linalg.solve(gram + ridge, centred.T @ (y.double() - level))
    scores = (h_test.double() - middle) @ weights + level
    return float((scores * y_test > 0).double().mean())
