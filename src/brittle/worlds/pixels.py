"""Pictures as they are stored (bytes) and as networks see them."""

from __future__ import annotations

from torch import Tensor


def shown(x: Tensor) -> Tensor:
    """Bytes as pixels in [0, 1]."""  # (n, h, w, 3) uint8 -> (n, 3, h, w), channels last in memory
    return x.permute(0, 3, 1, 2).float() / 255
