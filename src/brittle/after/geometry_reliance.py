"""Train by Muon beside the optimisers of SB's Table 4, and measure which features the networks rely on (O2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import pandas as pd
import torch
from torch import Tensor

from brittle.after.geometry_params import Geometry, GeometryParams, Rates, Reliance
from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.parse import family
from brittle.probes.randomised import randomised
from brittle.train.sgd import Member, SgdPlan, train
from brittle.worlds import slabs

B = 1.0  # SB's width of a coordinate


@dataclass(frozen=True)
class Drawn:
    """One world's data, rotated."""

    x: Tensor  # (n, d)
    y: Tensor  # (n,)
    x_test: Tensor  # (n', d)
    y_test: Tensor
    q_s: Tensor  # (1, d) the direction of the simple feature


def main(params: GeometryParams) -> None:
    g, where = params.geometry, device.pick(params.device)
    worlds = {name: draw(g.reliance, name, where) for name in g.reliance.worlds}
    cells = list(product(g.reliance.models, Rates.model_fields))
    rows = [row for cell in tracked(cells, "training") for row in trained(g, *cell, worlds)]
    store.save_table("plots/geometry_reliance.csv", pd.DataFrame(rows))


def draw(p: Reliance, name: str, where: torch.device) -> Drawn:
    world = slabs.world(name, p.d, gamma=p.gamma, b=B, noise=p.noise)
    q = slabs.rotation(p.d, rng(0, f"geometry {name} rotation"))
    parts = []
    for part, n in (("train", p.samples), ("test", p.test)):
        u, y = world.sample(n, rng(0, f"geometry {name} {part}"))
        parts += [torch.from_numpy(u @ q).to(where), torch.from_numpy(y).to(where)]
    return Drawn(*parts, torch.from_numpy(q[:1]).to(where))


def trained(g: Geometry, model: str, optimiser: str, worlds: dict[str, Drawn]) -> list[dict[str, object]]:
    """The rows of one architecture and optimiser: every world, learning rate and seed, side by side."""
    p, net = g.reliance, family(model, g.reliance.d)
    cells = list(product(worlds, getattr(p.lr, optimiser), g.seeds))
    members = [Member(seed, list(worlds).index(world), lr, p.momentum) for world, lr, seed in cells]
    x, y = (torch.stack([getattr(world, name) for world in worlds.values()]) for name in ("x", "y"))
    plan = SgdPlan(epochs=p.epochs, batch=p.batch, optimiser=optimiser, target=p.target)
    state = train(net, members, x, y, plan)
    rows = []
    for i, (world, lr, seed) in enumerate(cells):
        losses = state.losses[:, i][~state.losses[:, i].isnan()]
        row = {"world": world, "model": model, "optimiser": optimiser, "lr": lr, "seed": seed}
        row |= {"epochs": len(losses), "loss": float(losses[-1])}
        theta = state.theta[i : i + 1]
        rows.append(row | relied(lambda points, theta=theta: net(theta, points[None])[0], worlds[world], seed, p))
    return rows


def relied(f: Callable[[Tensor], Tensor], world: Drawn, seed: int, p: Reliance) -> dict[str, float]:
    """Training accuracy, and the areas under the ROC curve as is, with S and with the rest from other samples."""
    found = randomised(f, world.x_test, world.y_test, world.q_s, rng(seed, "donors"), p.permutations, ("s", "rest"))
    right = torch.cat([f(part) for part in world.x.split(1 << 13)]) * world.y > 0
    areas = {f"auc_{name}": each.mean.auc_roc for name, each in found.items()}
    return {"accuracy": float(right.float().mean())} | areas


if __name__ == "__main__":
    run(main, GeometryParams)
