"""Train by every rule, on smooth homogeneous networks and on ReLU networks; measure margins in every norm (O1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.after.geometry_params import Geometry, GeometryParams
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.deep import Deep, initial
from brittle.nets.smooth_deep import SmoothDeep
from brittle.probes.steepest import GEOMETRIES, margin, residual
from brittle.train.optimisers import OPTIMISERS, train
from brittle.train.state import NotReached
from brittle.worlds import sphere

NETWORKS = {"smooth": SmoothDeep, "relu": Deep}


def main(params: GeometryParams) -> None:
    p, where, rows = params.geometry, device.pick(params.device), []
    for kind, rule in tracked(list(product(p.networks, p.rules)), "training"):
        for level, nets, x, y in trained(p, kind, rule, where):
            for i, seed in enumerate(p.seeds):
                one = nets.like(nets.flat()[i : i + 1]).to(torch.device("cpu")).to(torch.float64)
                cell = {"network": kind, "rule": rule, "d": p.d, "m": p.m, "width": p.width, "seed": seed}
                rows.append(cell | {"log10_loss": level} | measured(one, x[i].cpu().double(), y[i].cpu().double()))
    store.save_table("plots/geometry_margins.csv", pd.DataFrame(rows))


def trained(p: Geometry, kind: str, rule: str, where: torch.device) -> Iterator[tuple[float, Deep, Tensor, Tensor]]:
    """The networks of all seeds at each level of the loss, with their data: those of the open question M14."""
    drawn = zip(*(sphere.sample(p.d, p.m, rng(seed, "margin data")) for seed in p.seeds), strict=True)
    x, y = (torch.from_numpy(np.stack(each)).float().to(where) for each in drawn)
    start = initial(p.d, [p.width], p.init_scale, [rng(seed, "margin init") for seed in p.seeds]).to(where)
    net, state = NETWORKS[kind](start.ws, start.b), None
    for level in sorted(p.log10_levels, reverse=True):
        how = {"loss": "exponential", "ln_target": level * math.log(10), "max_steps": p.max_steps}
        try:
            net, state = train(x, y, net, optimiser=OPTIMISERS[rule], state=state, **how)
        except NotReached as short:
            cell = f"geometry_margins: {kind}, {rule}"
            raise BadInput(f"{cell}: stopped at {short}; a larger geometry.max_steps may help") from None
        yield level, net, x, y


def measured(net: Deep, x: Tensor, y: Tensor) -> dict[str, float]:
    """The normalised margin, and the KKT residual, in every norm."""
    margins = {f"margin_{name}": margin(net, x, y, geometry) for name, geometry in GEOMETRIES.items()}
    return margins | {f"kkt_{name}": residual(net, x, y, geometry) for name, geometry in GEOMETRIES.items()}


if __name__ == "__main__":
    run(main, GeometryParams)
