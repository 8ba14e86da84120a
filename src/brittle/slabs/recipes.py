"""The networks of SB Tables 4 and 5 (Appendix C): every activation with every optimiser, every dropout and decay."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from brittle.nets.parse import family
from brittle.slabs.draws import Sample
from brittle.slabs.groups import Group
from brittle.slabs.recipes_params import RecipesParams
from brittle.train.sgd import Member, SgdPlan


def recipes(params: RecipesParams, load: Callable[[str], Sample]) -> list[Group]:
    return [*_table4(params, load), *_table5(params, load)]


def _table4(params: RecipesParams, load: Callable[[str], Sample]) -> list[Group]:
    p, training, d = params.recipes, params.slabs.training, params.slabs.d
    samples = [load(world) for world in p.worlds]
    every = []
    for activation, optimiser in product(p.activations, p.optimisers):
        plan = SgdPlan(epochs=training.epochs, batch=training.batch, optimiser=optimiser, target=training.target)
        worlds = [world for world in p.worlds if f"{activation}-{optimiser}@{world}" not in p.skip]
        rows = [
            {"table": 4, "model": p.model, "world": world, "activation": activation, "optimiser": optimiser}
            | {"dropout": 0.0, "weight_decay": training.weight_decay, "seed": seed}
            for world, seed in product(worlds, p.seeds)
        ]
        lr = p.lr.tanh if activation == "tanh" and optimiser != "sgd" else getattr(p.lr, optimiser)
        members = [
            Member(row["seed"], p.worlds.index(row["world"]), lr, p.momentum, training.weight_decay) for row in rows
        ]
        net = family(p.model, d, activation=activation)
        every.append(Group(f"{activation}-{optimiser}", net, members, samples, plan, rows))
    return [group for group in every if group.members]


def _table5(params: RecipesParams, load: Callable[[str], Sample]) -> list[Group]:
    p, training = params.recipes, params.slabs.training
    r = p.regularised
    sample, plan = load(r.world), SgdPlan(epochs=r.epochs, batch=training.batch, target=training.target)
    every = []
    for model, dropout in product(r.models, r.dropouts):
        rows = [
            {"table": 5, "model": model, "world": r.world, "activation": "relu", "optimiser": "sgd"}
            | {"dropout": dropout, "weight_decay": decay, "seed": seed}
            for decay, seed in product(r.decays, p.seeds)
        ]
        members = [Member(row["seed"], 0, p.lr.sgd, p.momentum, row["weight_decay"]) for row in rows]
        net = family(model, params.slabs.d, dropout=dropout)
        every.append(Group(f"{model}-{dropout}", net, members, [sample], plan, rows))
    return every
