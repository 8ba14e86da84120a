"""Train networks without biases on XOR, straight and skewed, from small weights: which directions do neurons take?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.after.xor_params import Xor, XorParams
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.family import Members
from brittle.nets.power_relu import PowerRelu
from brittle.probes.directions import directions
from brittle.train.optimisers import Fall, GradientDescent, Optimiser, OptimiserState, train
from brittle.train.state import NotReached
from brittle.worlds import xor

STAGE = "xor"
EVERY = 5  # steps between two measurements


def main(params: XorParams) -> None:
    p, where = params.xor, device.pick(params.device)
    rows = []
    for angle, width in tracked(list(product(p.angles, p.widths)), "training"):
        for step, state, family in path(p, angle, width, where):
            for i, seed in enumerate(p.seeds):
                w, _ = family.weights(state.theta[i : i + 1])
                found = directions(w[0])
                rows.append(
                    {"angle": angle, "width": width, "seed": seed, "step": step}
                    | {"loss": float(state.ln_loss[i].exp()), "norm": float(state.theta[i].norm())}
                    | {"mass": found.mass, "count": found.count}
                    | {f"direction_{n}": degrees for n, degrees in enumerate(found.angles, 1)}
                )
    store.save_table("plots/xor.csv", pd.DataFrame(rows))


def path(p: Xor, angle: float, width: int, where: torch.device) -> Iterator[tuple[int, OptimiserState, PowerRelu]]:
    """The networks, one for each seed, every few steps and at the end."""
    x, y = draw(p, angle, where)
    family = PowerRelu(2, width, 1.0)
    theta = p.init_scale * family.initial([rng(seed, "xor init") for seed in p.seeds]).to(where)
    kept: list[tuple[int, OptimiserState]] = []

    def watch(state: OptimiserState) -> None:
        if len(state.history) % EVERY == 0 or bool((state.ln_loss <= target).all()):
            kept.append((len(state.history), OptimiserState(**vars(state) | {"history": []})))

    target = p.log10_target * math.log(10)
    settings = {"optimiser": Optimiser(GradientDescent(), Fall(p.fall, p.stride)), "loss": "logistic"}
    try:
        train(x, y, Members(family, theta), ln_target=target, max_steps=p.max_steps, watch=watch, **settings)
    except NotReached as short:
        raise BadInput(f"{STAGE}: stopped at {short}; a larger xor.max_steps may help") from None
    return ((step, state, family) for step, state in kept)


def draw(p: Xor, angle: float, where: torch.device) -> tuple[Tensor, Tensor]:
    """One dataset for each seed."""  # (s, n, 2), (s, n)
    drawn = zip(*(xor.sample(p.n, math.radians(angle), rng(seed, "xor data")) for seed in p.seeds), strict=True)
    x, y = (torch.from_numpy(np.stack(part).astype("f4")).to(where) for part in drawn)
    return x, y


if __name__ == "__main__":
    run(main, XorParams)
