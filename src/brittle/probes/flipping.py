"""What the headline experiment measures on one network (VYS §6.1): z beside a random direction, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.attacks.line import Crossings
from brittle.nets.two_layer import TwoLayer
from brittle.probes.margin import MarginProbe, along, probe


@dataclass(frozen=True)
class Flipping:
    found: MarginProbe
    random: Crossings  # of the samples on the margin, along a random direction

    def numbers(self, norm: float) -> dict[str, float]:
        """One row of the table of seeds; `norm` is that of the data."""
        c = self.found.c
        return {
            "c": c,
            "c_over_norm": c / norm,
            "c_median": float(self.found.z.first().median()),
            "random_at_c": float(self.random.flipped(self.found.outputs.new_tensor([c]))),
            "on_margin": float(self.found.margin.double().mean()),
        }

    def samples(self) -> dict[str, Tensor]:
        """Each sample's output relative to the smallest, whether it is on the margin, and its own c if it is."""
        outputs, margin = self.found.outputs, self.found.margin
        own = torch.full_like(outputs, torch.nan).masked_scatter(margin, self.found.z.first())
        return {"output": outputs / outputs.min(), "on_margin": margin.int(), "c": own}

    def curve(self, sizes: Tensor) -> dict[str, Tensor]:
        """The shares of the margin samples that perturbations of these sizes flip."""  # (g,)
        return {"z": self.found.z.flipped(sizes), "random": self.random.flipped(sizes)}


def flipping(net: TwoLayer, x: Tensor, y: Tensor, slack: float, u: Tensor) -> Flipping:
    """Follow z, and the direction u for comparison, on the samples on the margin; float64."""  # (m, d), (m,), (d,)
    found = probe(net, x, y, slack)
    return Flipping(found, along(net, x[found.margin], y[found.margin], u / u.norm()))
