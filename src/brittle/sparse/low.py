"""Clean and adversarial training of models with fixed features: a linear one and the NTK (FP §3, Theorem 5.6).

In l2, the world is the chapter's own; in l∞, M = I, the case of Theorem 5.6, with the radius at which the dense
perturbation is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from torch import Tensor

from brittle.attacks import softened_pgd
from brittle.attacks.fgm import fgm
from brittle.attacks.pgd import pgd
from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets import symmetric
from brittle.nets.family import Family
from brittle.nets.linear import Linear
from brittle.nets.ntk import Ntk
from brittle.sparse import params as schema
from brittle.sparse import settings
from brittle.sparse.params import SparseParams
from brittle.sparse.settings import Setting
from brittle.train import sgd
from brittle.train.purify import drawn
from brittle.train.sgd import Member, Perturb, SgdPlan
from brittle.worlds.sparse_coding import labelling

ATTACKED = 1000  # test samples under attack


@dataclass(frozen=True)
class Model:
    name: str
    family: Family
    width: int
    optimiser: str
    how: schema.Linear | schema.Ntk  # its epochs and learning rate


def main(params: SparseParams) -> None:
    p, low = params.sparse, params.sparse.low
    where = device.pick(params.device)
    own = settings.load_setting(p, where)
    labels = labelling(p.d, p.spread, rng(p.seed, "labelling"))
    identity = replace(own.world, dictionary=np.eye(p.d, dtype=np.float32), w_star=labels)
    plain = Setting.of(identity, *drawn(identity, p.test, rng(p.seed, "sparse test"), where))
    features = symmetric.random(low.ntk.width, p.d, 1.0, rng(p.seed, "ntk")).to(where)
    models = [
        Model("linear", Linear(p.d), 1, "sgd", low.linear),
        Model("NTK", Ntk(features, low.ntk.bias, low.ntk.rho), low.ntk.width, "adam", low.ntk),
    ]
    steps_of = {"clean": 0, "fgm": 1, "pgd": p.pgd}
    cases = [
        (norm, tau, setting, training, model)
        for norm, tau, setting in (("l2", p.tau, own), ("linf", p.tau / math.sqrt(p.d), plain))
        for training in low.trainings
        for model in models
    ]
    rows = []
    for norm, tau, setting, training, model in tracked(cases, "linear and NTK models"):
        x, y = (part[None] for part in drawn(setting.world, low.samples, rng(p.seed, f"low {norm}"), where))
        plan = SgdPlan(epochs=model.how.epochs, batch=low.batch, optimiser=model.optimiser)
        member, perturb = Member(p.seed, lr=model.how.lr, momentum=p.momentum), adversary(norm, tau, steps_of[training])
        theta = sgd.train(model.family, [member], x, y, plan, perturb=perturb).theta

        def f(points: Tensor, theta: Tensor = theta, family: Family = model.family) -> Tensor:
            return family(theta, points[None])[0]

        few = setting.first(ATTACKED)
        found = {name: few.accuracy(f, delta) for name, delta in few.perturbed(f, norm, tau).items()}
        rows.append(
            {"model": model.name, "width": model.width, "training": training, "norm": norm, "tau": tau, "d": p.d}
            | {"k": p.k, "margin": p.margin, "accuracy": setting.accuracy(f)}
            | found
        )
    store.save_table("plots/sparse_low.csv", pd.DataFrame(rows))


def adversary(norm: str, tau: float, steps: int) -> Callable[[Tensor], Perturb] | None:
    """An attack by FGM or PGD on every batch; None for 0 steps."""
    if steps == 0:
        return None

    def perturb(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
        def single(points: Tensor) -> Tensor:
            return f(points[None])[0]

        if steps == 1:
            return x + fgm(softened_pgd.gradient(single, x[0]), y[0], norm, tau)[None]
        return x + pgd(single, x[0], y[0], norm, tau, steps)[None]

    return lambda active: perturb


if __name__ == "__main__":
    run(main, SparseParams)
