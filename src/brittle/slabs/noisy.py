"""The networks of SB Table 2: every FCN with all hyper-parameters of a grid, and the same networks without S."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from brittle.nets.parse import family
from brittle.slabs.draws import Sample
from brittle.slabs.groups import Group
from brittle.slabs.noisy_params import NoisyParams
from brittle.train.sgd import Member, SgdPlan

ENOUGH = 0.999  # accuracy at which samples without S count as learnt


def searches(params: NoisyParams, load: Callable[[str, int], Sample]) -> list[Group]:
    """The grid on data with the noisy feature S, then the networks on as many samples without S."""
    p, alone, fcn, d = params.noisy, params.noisy.alone, params.slabs.training.fcn, params.slabs.d
    every = []
    for batch in p.grid.batch:
        settings = list(product([batch], p.grid.lr, p.grid.momentum, p.grid.weight_decay))
        plan = SgdPlan(epochs=p.epochs, batch=batch)
        every += _groups(params, f"noisy-lms-{p.k}", load(f"noisy-lms-{p.k}", d), settings, plan, pick=False)
    for world in alone.worlds:
        settings = [(params.slabs.training.batch, alone.lr, fcn.momentum, alone.weight_decay)]
        plan = SgdPlan(epochs=alone.epochs, batch=params.slabs.training.batch, enough=ENOUGH)
        every += _groups(params, world, load(world, d - 1), settings, plan, pick=True)
    return every


def _groups(
    params: NoisyParams,
    world: str,
    sample: Sample,
    settings: list[tuple[int, float, float, float]],
    plan: SgdPlan,
    pick: bool,
) -> list[Group]:
    found = []
    for model in params.noisy.models:
        rows = [
            {"world": world, "model": model, "batch": batch, "lr": lr, "momentum": momentum}
            | {"weight_decay": decay, "seed": seed}
            for (batch, lr, momentum, decay), seed in product(settings, params.noisy.seeds)
        ]
        members = [Member(row["seed"], 0, row["lr"], row["momentum"], row["weight_decay"]) for row in rows]
        net = family(model, sample.x.shape[1])
        cost = len(rows) * plan.epochs * net.width ** min(net.depth, 2)
        found.append(Group(f"{world}-{model}-{plan.batch}", net, members, [sample], plan, rows, pick, size=cost))
    return found
