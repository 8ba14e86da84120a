"""The worked example of VYS §5.1: orthogonal samples, the first half positive."""

from __future__ import annotations

import numpy as np


def sample(d: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """x_i = √d·e_i for i < m ≤ d; y = 1 on the first half, -1 on the second."""  # (m, d), (m,)
    y = np.where(np.arange(m) < (m + 1) // 2, 1.0, -1.0)
    return np.sqrt(d) * np.eye(m, d), y
