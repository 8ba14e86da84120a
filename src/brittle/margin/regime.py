"""The settings in which VYS Thm 4.1 applies: orthogonal samples, and a handful of samples on the sphere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.core.errors import BadInput
from brittle.core.rng import rng
from brittle.margin.theory_params import Regime
from brittle.nets.two_layer import TwoLayer, initial
from brittle.worlds import orthogonal, sphere

TRIES, APART = 10_000, 1_000_000  # initial weights to try for a network, and how far their seeds are apart


@dataclass(frozen=True)
class Setting:
    world: str
    d: int
    m: int
    width: int
    init_scale: float
    law: bool = True  # one of those that differ in d and m alone, for the size of z against d/m

    @property
    def name(self) -> str:
        return f"{self.world}.{self.d}.{self.m}.{self.width}.{self.init_scale:g}"

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        if self.world == "orthogonal":
            x, y = orthogonal.sample(self.d, self.m)
        else:  # alternating labels, so that both occur
            x = sphere.points(self.d, self.m, rng(seed, "regime data"))
            y = np.where(np.arange(self.m) % 2 == 0, 1.0, -1.0)
        return x.astype("f4"), y.astype("f4")

    def draws(self, seeds: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """One dataset per seed; orthogonal data are the same for all."""
        x, y = zip(*(self.draw(seed) for seed in seeds), strict=True)
        return np.stack(x), np.stack(y)

    def start(self, seed: int) -> int:
        """The seed of the initial weights: the first of seed, seed + 10⁶ … from which training can end.

        Thm 4.1 is about networks whose loss goes to 0, from any initial weights. A sample that no neuron of its own
        label sees has no gradient that helps it; in a network of two neurons there nearly always is one.
        """
        x, y = (torch.from_numpy(a) for a in self.draw(seed))
        for candidate in range(seed, seed + TRIES * APART, APART):
            if all_seen(initial(self.d, self.width, self.init_scale, [rng(candidate, "margin init")]), x, y):
                return candidate
        raise BadInput(f"theory.regime.widths = {self.width}: no initial weights see all {self.m} samples; a larger "
                       "width or a smaller theory.regime.large_m may help")  # fmt: skip


def all_seen(net: TwoLayer, x: Tensor, y: Tensor) -> bool:
    """Whether at every sample a neuron is active whose output weight has the sign of the label."""  # (m, d), (m,)
    helps = (net.preactivations(x[None])[0] > 0) & (net.v[0] * y[:, None] > 0)  # (m, k)
    return bool(helps.any(1).all())


def settings(p: Regime) -> list[Setting]:
    """All settings: the law, c against d/m, and then the theorem's "any width, any initialisation".

    The law: orthogonal samples, p = 0, so m up to (d + 1)/3; on the sphere p is about √d·log, which allows two samples.
    The others: m = large_m orthogonal samples, and as many on a sphere of so many dimensions that the theorem applies.
    """
    most = {d: (d + 1) // 3 for d in p.ds}
    ms = {(d, max(2, round(share * most[d]))) for d in p.ds for share in p.shares}
    data = [("orthogonal", d, m) for d, m in sorted(ms)] + [("sphere", d, 2) for d in p.sphere_ds]
    law = [Setting(*each, p.width, p.init_scale) for each in data]
    d = min(p.ds)
    any_data = [("sphere", p.large_d, p.large_m), ("orthogonal", d, min(p.large_m, most[d]))]
    any_net = [(width, scale) for width in p.widths for scale in p.init_scales]
    every = law + [Setting(*each, *net, law=False) for each in any_data for net in any_net]
    return list({each.name: each for each in reversed(every)}.values())[::-1]  # each once, those of the law first
