"""Data in a subspace (Melamed, Yehudai & Vardi 2023), and the two pictures of their experiments."""

from __future__ import annotations

import numpy as np


def sample(d: int, m: int, codimension: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standard normal samples of a random subspace, alternating labels, and an orthonormal basis of the subspace.

    (m, d), (m,), (d - codimension, d)
    """
    basis = np.linalg.qr(rng.standard_normal((d, d - codimension)))[0].T
    return rng.standard_normal((m, d - codimension)) @ basis, _alternating(m), basis


def diagonal() -> tuple[np.ndarray, np.ndarray]:
    """Seven points (t, t), t from -1 to 1, with alternating labels."""  # (7, 2), (7,)
    t = np.linspace(-1, 1, 7)
    return np.stack([t, t], axis=1), _alternating(7)


def chess_board() -> tuple[np.ndarray, np.ndarray]:
    """The 5 × 5 points (s, t, ½), s and t from 0 to 1; the label changes from each to the next."""  # (25, 3), (25,)
    s, t = (each.ravel() for each in np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 1, 5), indexing="ij"))
    return np.stack([s, t, np.full(25, 0.5)], axis=1), -_alternating(25)


def _alternating(m: int) -> np.ndarray:
    return np.where(np.arange(m) % 2 == 0, -1.0, 1.0)
