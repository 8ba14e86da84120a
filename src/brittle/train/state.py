"""The state of a training run: all that its next step depends on, as named tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import torch
from torch import Tensor


class NotReached(Exception):
    """Training stopped short of its target."""


def standing(ln_loss: Tensor, ln_target: float) -> Tensor:
    """Whether any loss is NaN, and whether any is above its target: both at once, because to read means to wait."""
    return torch.stack([ln_loss.isnan().any(), (ln_loss > ln_target).any()])  # (s,) -> (2,)


@dataclass(kw_only=True)
class State:
    """The state of training, which can be saved and restored to resume exactly."""

    ln_loss: Tensor  # (s,) of each network now
    history: list[Tensor]  # and before each step so far, each (s,)

    def arrays(self) -> dict[str, np.ndarray]:
        history = torch.stack(self.history) if self.history else self.ln_loss[None][:0]
        return {name: tensor.cpu().numpy() for name, tensor in (vars(self) | {"history": history}).items()}

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], device: torch.device) -> Self:
        tensors = {
            name: torch.tensor(array, device=device) for name, array in arrays.items()
        }  # copies: training writes to them
        return cls(**tensors | {"history": list(tensors["history"])})

    def unfinished(self, ln_target: float, max_steps: int, seen: Sequence[bool] | None = None) -> Tensor | None:
        """Which networks have yet to reach the target; None if all have.

        Raise NotReached after max_steps, or if a loss is NaN.
        seen: what `standing` says of `ln_loss`, where it has been read already.
        """
        lost, some = standing(self.ln_loss, ln_target).tolist() if seen is None else seen
        if lost:
            raise NotReached(
                f"a loss that is not a number (NaN) after {len(self.history)} steps, target ln loss {ln_target:.4g}"
            )
        if len(self.history) >= max_steps and some:
            raise NotReached(f"ln loss {self.ln_loss.max():.4g} after {max_steps} steps, target {ln_target:.4g}")
        return self.ln_loss > ln_target if some else None  # (s,) bool
