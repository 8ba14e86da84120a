"""Train on noise with a network's perturbations, and on the same noise without: what is learnt of the samples?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.after.perturbed_noise_params import PerturbedNoise, PerturbedNoiseParams
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.family import Members
from brittle.nets.fixed_output import LeakyFixedOutput
from brittle.probes.perturbed_noise import agreement, direction, towards
from brittle.train.optimisers import OPTIMISERS, train
from brittle.train.state import NotReached
from brittle.worlds import cube

STAGE = "perturbed_noise"


def main(params: PerturbedNoiseParams) -> None:
    p, where = params.perturbed_noise, device.pick(params.device)
    cells = [(d, max(p.noises)) for d in p.ds] + [(max(p.ds), n) for n in p.noises if n < max(p.noises)]
    rows = []
    for d, n in tracked(cells, "training"):
        rows += measured(p, d, n, where)
    store.save_table("plots/perturbed_noise.csv", pd.DataFrame(rows))


def measured(p: PerturbedNoise, d: int, n: int, where: torch.device) -> list[dict[str, float]]:
    """One row a seed: n noise points in d dimensions, learnt with the perturbations and without."""
    eps = p.radius * math.sqrt(d)
    (x, y), (noise, targets), (fresh, _) = (
        draws(p.seeds, d, size, what, where)
        for size, what in ((p.samples, "samples"), (n, "noise"), (p.fresh, "fresh"))
    )
    net = fit(p, x, y, "first")
    one = [Members(net.family, net.theta[i : i + 1]) for i in range(len(p.seeds))]
    delta = torch.stack([towards(*each, eps) for each in zip(one, noise, targets, strict=True)])
    learnt, control = fit(p, noise + delta, targets, "second"), fit(p, noise, targets, "second")
    right = {
        "accuracy": accuracy(learnt, x, y),
        "control": accuracy(control, x, y),
        "fooled": accuracy(net, noise + delta, targets),
        "agree": agreement(net, learnt, fresh),
        "agree_control": agreement(net, control, fresh),
    }
    return [
        {"d": d, "samples": p.samples, "noises": n, "width": p.width, "eps": eps, "seed": seed}
        | {name: float(each[i]) for name, each in right.items()}
        | vars(direction(delta[i], noise[i], targets[i], x[i], y[i]))
        for i, seed in enumerate(p.seeds)
    ]


def draws(seeds: Sequence[int], d: int, n: int, what: str, where: torch.device) -> tuple[Tensor, Tensor]:
    """Points with random labels, for each seed its own."""  # (s, n, d), (s, n)
    drawn = zip(*(cube.sample(d, n, rng(seed, f"perturbed noise {what}")) for seed in seeds), strict=True)
    x, y = (torch.from_numpy(np.stack(part).astype("f4")).to(where) for part in drawn)
    return x, y


def fit(p: PerturbedNoise, x: Tensor, y: Tensor, which: str) -> Members:
    """One network for each seed, by gradient descent on ln L."""  # (s, n, d), (s, n)
    family = LeakyFixedOutput(x.shape[2], p.width)
    start = family.initial([rng(seed, f"perturbed noise init {which}") for seed in p.seeds]).to(x.device)
    target = p.log10_target * math.log(10)
    settings = {"optimiser": OPTIMISERS["gd"], "loss": "exponential", "ln_target": target, "max_steps": p.max_steps}
    try:
        return train(x, y, Members(family, start), **settings)[0]
    except NotReached as short:
        raise BadInput(f"{STAGE}: stopped at {short}; a larger perturbed_noise.max_steps may help") from None


@torch.no_grad()
def accuracy(net: Members, x: Tensor, y: Tensor) -> Tensor:
    """The share of its own points that each network labels right."""  # (s, n, d), (s, n) -> (s,)
    return (net(x) * y > 0).double().mean(1)


if __name__ == "__main__":
    run(main, PerturbedNoiseParams)
