"""SB Theorem 1: the weights that one pass of mini-batch descent on LSN data ends with, against the dimension."""

from __future__ import annotations

import math
from itertools import product

import pandas as pd
import torch

from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.fixed_output import FixedOutput
from brittle.slabs.lsn_params import LsnParams
from brittle.train import sgd
from brittle.worlds import lsn


def main(params: LsnParams) -> None:
    p = params.lsn
    where = device.pick(params.device)
    rows = []
    sizes = [(d, p.units) for d in p.ds] + [(d, most_units(d)) for d in p.wide_ds]
    for (d, units), margin, seed in tracked(list(product(sizes, p.margins, p.seeds)), "Theorem 1"):
        steps = max(1, math.floor(4 / p.eta * (1 - p.c / math.sqrt(math.log(d)))))  # t̂ in the proof
        n = math.ceil(p.samples * d * d)  # samples in a batch; m = t̂ n in all
        family, state = FixedOutput(d, units), None
        for step in range(steps):  # fresh samples in every batch: a single pass over the data
            x, y = draw(d, n, margin, seed, f"batch {step}", where)
            plan = sgd.SgdPlan(epochs=step + 1, batch=n, loss="hinge")
            state = sgd.train(family, [sgd.Member(seed, lr=p.eta)], x, y, plan, state=state)
        x, y = draw(d, p.test, margin, seed, "test", where)
        with torch.no_grad():
            margins = y * family(state.theta, x)
        w = family.weights(state.theta)[0]
        linear, slab, noise = w[:, 0].abs(), w[:, 1].abs(), w[:, 2:].norm(dim=1)
        rows.append(
            {"d": d, "margin": margin, "seed": seed, "units": units, "steps": steps, "samples": steps * n}
            | {"linear": float(linear.mean()), "slab": float(slab.mean()), "noise": float(noise.mean())}
            | {"predicted": margin * steps * p.eta / (2 * math.sqrt(units))}
            | {"ratio": float(linear.mean() / slab.mean())}
            | {"error": float((margins <= 0).double().mean()), "active": float((margins < 1).double().mean())}
        )
    store.save_table("plots/lsn.csv", pd.DataFrame(rows))


def most_units(d: int) -> int:
    """k of the order of d²/log d, up to which the theorem's remark says that it holds; even."""
    return 2 * math.ceil(d**2 / math.log(d) / 2)


def draw(d: int, n: int, margin: float, seed: int, what: str, where: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = lsn.sample(d, n, rng(seed, f"lsn {what}"), margin)  # (1, n, d), (1, n)
    return torch.from_numpy(x)[None].to(where), torch.from_numpy(y)[None].to(where)


if __name__ == "__main__":
    run(main, LsnParams)
