"""The networks of SB's appendix on adversarial training: one group without it, and one for either norm."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from brittle.attacks.pgd import pgd
from brittle.nets.named import family
from brittle.params.slabs import AdversarialParams
from brittle.stages.groups import Group
from brittle.stages.slabs import Sample
from brittle.train.sgd import Member, Perturb, Plan


def hardened(params: AdversarialParams, sample: Sample) -> list[Group]:
    p, training = params.adversarial, params.slabs.training
    plan = Plan(epochs=p.epochs, batch=training.batch, optimiser=training.fcn.optimiser, target=training.target)
    net = family(p.model, params.slabs.d)
    every = []
    for norm, radii in (("none", [0.0]), ("l2", p.l2), ("linf", p.linf)):
        rows = [{"norm": norm, "eps": eps, "seed": seed} for eps in radii for seed in p.seeds]
        members = [Member(row["seed"], 0, p.lr, training.fcn.momentum, training.weight_decay) for row in rows]
        if norm == "none":
            every.append(Group(norm, net, members, [sample], plan, rows))
            continue
        eps = torch.tensor([row["eps"] for row in rows], device=sample.x.device)
        attack, key = adversary(norm, eps, p.steps, p.step), (norm, p.steps, p.step, radii)
        size = len(rows) * p.steps
        every.append(Group(norm, net, members, [sample], plan, rows, perturb=attack, key=key, size=size))
    return every


def adversary(norm: str, eps: Tensor, steps: int, step: float) -> Callable[[Tensor], Perturb]:
    """PGD on the batches of the networks that still train, each within its own radius (Madry et al. 2018)."""

    def among(active: Tensor) -> Perturb:
        def perturb(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
            s, n, d = x.shape
            radii = eps[active].repeat_interleave(n)
            flat = pgd(lambda z: f(z.view(s, n, d)).flatten(), x.flatten(0, 1), y.flatten(), norm, radii, steps, step)
            return x + flat.view(s, n, d)

        return perturb

    return among
