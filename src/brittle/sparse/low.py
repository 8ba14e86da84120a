"""Train models with fixed features cleanly and adversarially: linear, the NTK, polynomials (FP §3, Thm 5.6, Cor 5.7).

In l2, the world is the chapter's own; in l∞, M = I, the case of Theorem 5.6. Both with the margin filter and without.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
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
from brittle.nets.polynomial import Polynomial
from brittle.sparse import params as schema
from brittle.sparse import settings
from brittle.sparse.params import Sparse, SparseParams
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
    how: schema.Linear | schema.Ntk | schema.Polynomial  # its epochs and learning rate


@dataclass(frozen=True)
class Case:
    """A world, and the radii that models are attacked and trained with there."""

    norm: str
    taus: tuple[float, ...]
    setting: Setting


def main(params: SparseParams) -> None:
    p = params.sparse
    where = device.pick(params.device)
    work = [(case, model) for case in cases(p, where) for model in models(p, case.setting, where)]
    rows = [row for case, model in tracked(work, "linear, NTK and polynomials") for row in trained(p, case, model)]
    store.save_table("plots/sparse_low.csv", pd.DataFrame(rows))


def cases(p: Sparse, where: torch.device) -> Iterator[Case]:
    """The chapter's own world, and that of Theorem 5.6, each with its filter and without."""
    own = settings.load_setting(p, where)
    labels = labelling(p.d, p.spread, rng(p.seed, "labelling"))
    identity = replace(own.world, dictionary=np.eye(p.d, dtype=np.float32), w_star=labels)
    for margin in dict.fromkeys((p.margin, 0.0)):
        for norm, world, taus in (
            ("l2", own.world, (p.tau,)),
            ("linf", identity, tuple(p.k**-power for power in p.linf)),
        ):
            world = replace(world, margin=margin)
            yield Case(norm, taus, Setting.of(world, *drawn(world, p.test, rng(p.seed, "sparse test"), where)))


def models(p: Sparse, setting: Setting, where: torch.device) -> list[Model]:
    low = p.low
    features = symmetric.random(low.ntk.width, p.d, 1.0, rng(p.seed, "ntk")).to(where)
    return [
        Model("linear", Linear(p.d), 1, "sgd", low.linear),
        Model("NTK", Ntk(features, low.ntk.bias, low.ntk.rho), low.ntk.width, "adam", low.ntk),
        *(
            Model(f"degree {n}", Polynomial(setting.dictionary, n, math.sqrt(p.k)), 1, "adam", low.polynomial)
            for n in low.polynomial.degrees
        ),
    ]


def trained(p: Sparse, case: Case, model: Model) -> Iterator[dict[str, object]]:
    """Train a model in every way, adversarially for each radius, and measure it at the radii that it is meant for."""
    few = case.setting.first(ATTACKED)
    x, y = (t[None] for t in drawn(case.setting.world, p.low.samples, rng(p.seed, f"low {case.norm}"), few.x.device))
    plan = SgdPlan(epochs=model.how.epochs, batch=p.low.batch, optimiser=model.optimiser)
    member, steps = Member(p.seed, lr=model.how.lr, momentum=p.momentum), {"clean": 0, "fgm": 1, "pgd": p.pgd}
    for training in p.low.trainings:
        for taus in [case.taus] if training == "clean" else [(tau,) for tau in case.taus]:
            perturb = adversary(case.norm, taus[0], steps[training])
            theta = sgd.train(model.family, [member], x, y, plan, perturb=perturb).theta

            def f(points: Tensor, theta: Tensor = theta) -> Tensor:
                return model.family(theta, points[None])[0]

            about = {"model": model.name, "width": model.width, "training": training, "norm": case.norm}
            about |= {"d": p.d, "k": p.k, "margin": case.setting.world.margin, "accuracy": case.setting.accuracy(f)}
            about |= {"attacked": len(few.x), "test": len(case.setting.x)}
            for tau in taus:
                deltas = few.perturbed(f, case.norm, tau)
                yield about | {"tau": tau} | {name: few.accuracy(f, delta) for name, delta in deltas.items()}


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
