"""The networks of SB's appendix on adversarial training: one group without it, and one for each norm."""

from __future__ import annotations

from itertools import product

import torch

from brittle.attacks.side_by_side import adversary
from brittle.nets.parse import family
from brittle.slabs.adversarial_params import AdversarialParams
from brittle.slabs.draws import Sample
from brittle.slabs.groups import Group
from brittle.train.sgd import Member, SgdPlan


def hardened(params: AdversarialParams, sample: Sample) -> list[Group]:
    p, training = params.adversarial, params.slabs.training
    plan = SgdPlan(epochs=p.epochs, batch=training.batch, optimiser=training.fcn.optimiser, target=training.target)
    net = family(p.model, params.slabs.d)
    every = []
    for norm, radii in (("none", [0.0]), ("l2", p.l2), ("linf", p.linf)):
        rows = [
            {"norm": norm, "eps": eps, "momentum": momentum, "seed": seed}
            for eps, momentum, seed in product(radii, p.momentum, p.seeds)
        ]
        members = [Member(row["seed"], 0, p.lr, row["momentum"], training.weight_decay) for row in rows]
        if norm == "none":
            every.append(Group(norm, net, members, [sample], plan, rows, along=p.along))
            continue
        eps = torch.tensor([row["eps"] for row in rows], device=sample.x.device)
        attack, key = adversary(norm, eps, p.steps, p.step), (norm, p.steps, p.step, radii)
        size = len(rows) * p.steps
        every.append(Group(norm, net, members, [sample], plan, rows, perturb=attack, key=key, size=size, along=p.along))
    return every
