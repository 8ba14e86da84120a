"""The networks of SB Fig 3(b): with more and more complex features beside S, and on the same features without S."""

from __future__ import annotations

from dataclasses import replace

import torch

from brittle.nets.parse import family
from brittle.slabs import draws
from brittle.slabs.draws import Sample
from brittle.slabs.features_params import FeaturesParams
from brittle.slabs.groups import Group
from brittle.train.sgd import Member, SgdPlan


def wide(params: FeaturesParams, where: torch.device) -> list[Group]:
    """A group for each number of complex features, with S and, of those in `alone`, without."""
    p, training = params.features, params.slabs.training
    plan = SgdPlan(
        epochs=training.epochs, batch=training.batch, optimiser=training.fcn.optimiser, target=training.target
    )
    members = [Member(seed, 0, p.lr, training.fcn.momentum, training.weight_decay) for seed in p.seeds]
    every = []
    for complex in p.complex:
        sample = draws.load_sample("features", p.world, 1 + complex, where)
        for simple in (1, 0) if complex in p.alone else (1,):
            seen = sample if simple else without_s(sample)
            d = complex + simple
            rows = [
                {"model": p.model, "world": p.world, "complex": complex, "simple": simple, "seed": seed}
                for seed in p.seeds
            ]
            name = f"{complex}" if simple else f"{complex}.alone"
            every.append(Group(name, family(p.model, d), members, [seen], plan, rows, size=d))
    return every


def without_s(sample: Sample) -> Sample:
    """The same samples seen through their complex features alone: what is left is as hard to learn as before."""
    rest = sample.q[1:]  # (d - 1, d)
    parts = {name: getattr(sample, name) @ rest.T for name in ("x", "x_valid", "x_test")}
    return replace(sample, **parts, q=torch.eye(len(rest), device=rest.device))
