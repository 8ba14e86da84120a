"""Train networks, and look for their training samples in the weights, at every level of the loss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.after.reconstruct_params import Reconstruct, ReconstructParams
from brittle.attacks.reconstruct import Search, differences, from_kkt, nearest
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.two_layer import TwoLayer, initial
from brittle.probes.kkt import residuals
from brittle.probes.margin import on_margin
from brittle.train import flow
from brittle.train.state import NotReached
from brittle.worlds import sphere

STAGE = "reconstruct"
MATCHED = 0.9  # the cosine from which a candidate counts as a sample
SLACK, KINK = 1.1, 1e-3  # of the margin, and of the KKT residual, as in VYS's experiments


@dataclass(frozen=True)
class Data:
    x: Tensor  # (s, m, d)
    y: Tensor  # (s, m)
    foreign: Tensor  # (s, m, d) other samples of the same distribution, which no network has seen


def main(params: ReconstructParams) -> None:
    p, where = params.reconstruct, device.pick(params.device)
    rows = []
    for m in tracked(sorted(p.ms), "training and reconstructing"):
        data = draw(p, m, where)
        for level, nets in trained(p, data, p.log10_levels if m == min(p.ms) else [p.log10_level]):
            rows += measured(p, data, nets, level)
    store.save_table("plots/reconstruct.csv", pd.DataFrame(rows))


def draw(p: Reconstruct, m: int, where: torch.device) -> Data:
    x, y = zip(*(sphere.sample(p.d, m, rng(seed, "reconstruct data")) for seed in p.seeds), strict=True)
    foreign = [sphere.points(p.d, m, rng(seed, "reconstruct foreign")) for seed in p.seeds]
    return Data(*(torch.from_numpy(np.stack(part).astype("f4")).to(where) for part in (x, y, foreign)))


def trained(p: Reconstruct, data: Data, levels: list[float]) -> Iterator[tuple[float, TwoLayer]]:
    """The networks whenever the loss falls below a level; among several levels, 0 is before training."""
    start = initial(p.d, p.width, p.init_scale, [rng(seed, "reconstruct init") for seed in p.seeds]).to(data.x.device)
    if len(levels) > 1:
        yield 0.0, start
    state = None
    for level in sorted(levels, reverse=True):
        settings = {"momentum": p.momentum, "max_steps": p.max_steps, "ln_target": level * math.log(10)}
        try:
            net, state = flow.train(data.x, data.y, start, loss="exponential", state=state, **settings)
        except NotReached as short:
            raise BadInput(f"{STAGE}: stopped at {short}; a larger reconstruct.max_steps may help") from None
        yield level, net


def measured(p: Reconstruct, data: Data, nets: TwoLayer, level: float) -> list[dict[str, float]]:
    """One row a seed: how many samples either attack finds, and how near the network is to a KKT point."""
    found, residual = candidates(p, nets, data.x.shape[1])
    rows = []
    for i, seed in enumerate(p.seeds):
        net = TwoLayer(nets.w[i : i + 1], nets.b[i : i + 1], nets.v[i : i + 1])
        outputs = (data.y * nets(data.x))[i]
        margin = on_margin(outputs, SLACK) if level < 0 else torch.ones_like(outputs, dtype=torch.bool)
        cell = {"d": p.d, "m": data.x.shape[1], "width": p.width, "seed": seed, "log10_loss": level}
        near = {"kkt": kkt(net, data, i) if level < 0 else math.nan, "on_margin": float(margin.double().mean())}
        rows.append(cell | near | {"residual": float(residual[i]), "candidates": found.shape[1]})
        for name, pool in (("search", found[i]), ("pairs", differences(net))):
            every, others = nearest(pool, data.x[i]), nearest(pool, data.foreign[i])
            groups = {"all": every, "margin": every[margin], "foreign": others}
            rows[-1] |= {f"{name}_{group}": float((each >= MATCHED).double().mean()) for group, each in groups.items()}
            rows[-1] |= {f"{name}_cosine": float(every.median()), f"{name}_foreign_cosine": float(others.median())}
    return rows


def candidates(p: Reconstruct, nets: TwoLayer, m: int) -> tuple[Tensor, Tensor]:
    """All candidates of all restarts, and the best restart's residual."""  # -> (s, restarts · n, d), (s,)
    how = Search(round(p.candidates * m), p.steps, p.lr, (p.sharpness_first, p.sharpness_last))
    many = TwoLayer(*(part.repeat_interleave(p.restarts, 0) for part in vars(nets).values()))
    found = from_kkt(many, how, [rng(seed, f"reconstruct start {r}") for seed in p.seeds for r in range(p.restarts)])
    per_seed = found.x.unflatten(0, (len(p.seeds), p.restarts))
    return per_seed.flatten(1, 2), found.residual.view(len(p.seeds), p.restarts).amin(1)


def kkt(net: TwoLayer, data: Data, i: int) -> float:
    """The residual of VYS Eq. 3 with the true samples, σ' free at the kinks."""
    x, y = (part[i].cpu().double() for part in (data.x, data.y))
    return residuals(net.to(torch.device("cpu")).to(torch.float64), x, y, KINK).stationarity


if __name__ == "__main__":
    run(main, ReconstructParams)
