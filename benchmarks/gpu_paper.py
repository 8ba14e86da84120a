"""How long presets/paper.yaml would train on one GPU, by chapter: predicted, not measured.

Counted are the updates of the networks, with the attacks in them, as each stage itself would ask for them, for all
epochs and as if no neuron died. Every kind of update is counted on the pretended device at two small sizes, and each of
its operators is put on the straight line through both: in the number of neurons for flow and purification, of networks
side by side for SGD, of pictures. (Dropout and two layers of convolutions are more operators for more networks: there
all networks are counted.) Flow tries one step size a step; how many steps it takes is measured on small cells
and extrapolated (grid.py).

Not counted: drawing samples, measuring, attacking and certifying what was trained, figures; and of training the stages
`kkt_train`, `regime_train`, `optimisers_train`, `lsn`, `sparse_low`, and all that compares the papers (`cross`).
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import torch

import grid
from bars import bar
from brittle.attacks.fgm import Attack
from brittle.attacks.image_pgd import Attacker
from brittle.core import machine
from brittle.core.rng import rng
from brittle.margin.networks import TOGETHER
from brittle.margin.variants import headline, transfer
from brittle.nets import symmetric
from brittle.nets.two_layer import initial
from brittle.params import Schema, at_scale
from brittle.pictures import cifar10_nets, cifar10_train, mnist_cifar, mnist_cifar_train
from brittle.slabs import (
    adversarial_train,
    data,
    draws,
    features_train,
    groups,
    noisy_train,
    recipes_train,
)
from brittle.slabs import train as slabs_train
from brittle.sparse import grid as sparse_grid
from brittle.sparse import schedules
from brittle.sparse.world import draw_world
from brittle.train import flow, image_sgd, purify, sgd
from brittle.train.image_sgd import ImagePlan
from brittle.train.passes import FEW
from brittle.train.search import Armijo
from brittle.train.state import NotReached
from brittle.worlds.sparse_coding import SparseCoding
from gpu_counts import GPUS, Counted, count
from pretend_cuda import pretended

CUDA = torch.device("cuda")
ONE_TRIAL = Armijo(share=-1e9, little=-1.0)  # accepts the first step size


@dataclass(frozen=True)
class Work:
    """Updates of one kind: how many, how to take some of them at any size, and the size wanted."""

    steps: float
    take: Callable[[int, int], object]  # size, number of updates
    size: int
    small: tuple[int, int]  # sizes to count at

    def seconds(self) -> dict[str, float]:
        """Predicted, of all updates, on each GPU."""
        machine.use_threads(1)  # the sizes to count at are small
        found = self.on_a_line() or count(partial(self.take, self.size), 1)
        return {name: self.steps * found.seconds(*gpu)[0] for name, gpu in GPUS.items()}

    def on_a_line(self) -> Counted | None:
        """The straight line; None where a larger size has more operators, not larger ones."""
        low, high = self.small
        if self.size <= high:
            return None
        less, more = (count(partial(self.take, size), 1) for size in self.small)
        same = len(less.kernels) == len(more.kernels)
        return less.at(more, (self.size - low) / (high - low)) if same else None


# --- VYS: full batches, by flow


def flowing(cell: grid.Cell, nets: int, width: int, n: int) -> None:
    d, m = cell.d, cell.m
    x, y = torch.randn(nets, m, d).to(CUDA), torch.ones(nets, m).to(CUDA)
    net = initial(d, width, 1.0, [rng(seed, "benchmark init") for seed in range(nets)]).to(CUDA)
    few = cell.width >= flow.NARROW and nets * m * cell.width <= FEW
    search = ONE_TRIAL if few else replace(ONE_TRIAL, glances=0)
    how = {"loss": "exponential", "ln_target": -1e9, "momentum": cell.momentum, "search": search}
    with contextlib.suppress(NotReached):  # expected: only the first steps are counted
        flow.train(x, y, net, max_steps=n, **how)


def margin(p: Schema, small: grid.Small) -> Iterator[Work]:
    v = p.variants
    changed = [(grid.Cell("variants", v.d, 1.0, each.width, v.momentum), each) for each in headline(v) + transfer(v)]
    nets = {cell: len(each.init_seeds) for cell, each in changed}
    every = [*grid.cells(p), *(cell for cell, _ in changed)]
    for cell, steps in grid.steps_of(every, p, small).items():
        seeds = nets.get(cell, len(p.sweep.seeds))
        together = min(seeds, max(1, TOGETHER // (cell.m * cell.width)))
        times = every.count(cell) * -(-seeds // together)
        yield Work(steps * times, partial(flowing, cell, together), cell.width, (8, 16))


# --- SB's slabs: mini-batches, many networks side by side


def by_sgd(group: groups.Group, networks: int, n: int) -> None:
    batch, d = min(group.plan.batch, len(group.samples[0].x)), group.samples[0].x.shape[1]
    x, y = torch.randn(1, n * batch, d).to(CUDA), torch.ones(1, n * batch).to(CUDA)
    member = replace(max(group.members, key=lambda member: member.momentum), data=0)
    plan = replace(group.plan, epochs=1)
    sgd.train(group.family, [member] * networks, x, y, plan, perturb=group.perturb)


def slabs(p: Schema) -> Iterator[Work]:
    sizes, found = data.needed(p), []

    def sample(part: str, name: str, d: int, where: torch.device) -> draws.Sample:
        x, y = torch.empty(sizes[part][name, d], d, device=where), torch.empty(0, device=where)
        return draws.Sample(x, y, x, y, x, y, torch.zeros(d, d, device=where))

    stages = [partial(slabs_train.main, model=model) for model in p.slabs.models]
    stages += [each.main for each in (features_train, recipes_train, noisy_train, adversarial_train)]
    for stage in stages:  # each says what it would train, and is stopped
        with contextlib.ExitStack() as stack:
            stack.enter_context(patch.object(draws, "load_sample", sample))
            stack.enter_context(patch.object(groups, "train_all", partial(stopped, found)))
            stack.enter_context(contextlib.suppress(Stopped))
            stack.enter_context(pretended())
            stage(p.model_copy(update={"device": "cuda"}))
    for group in found:
        updates = len(group.samples[0].x) // min(group.plan.batch, len(group.samples[0].x))
        yield Work(group.plan.epochs * updates, partial(by_sgd, group), len(group.members), (2, 3))


class Stopped(Exception):
    """A stage has said what it would train."""


def stopped(found: list[groups.Group], stage: str, path: str, every: list[groups.Group]) -> None:
    found += every
    raise Stopped


# --- FP's sparse coding model: fresh samples, one network


def purifying(p: Any, world: SparseCoding, stretch: purify.Stretch, neurons: int, n: int) -> None:
    w = symmetric.random(neurons, p.d, p.random.scale, rng(0, "benchmark")).to(CUDA)
    state = purify.Training.begin(w, 1.0)
    purify.run(state, world, replace(stretch, steps=n, prune=0, warm=0.0), schedules.rules(p, p.d), 0, "benchmark")


def sparse(p: Schema) -> Iterator[Work]:
    own = [(p.sparse, start, "l2") for start in p.sparse.starts]
    for each, start, norm in own + [(cell.p, cell.start, cell.norm) for cell in sparse_grid.cells(p.sparse)]:
        how = getattr(each, start)
        neurons = how.neurons if start == "random" else how.copies * each.words
        seeds, world = how.seeds if each is p.sparse else [None], draw_world(each)
        jobs = [schedules.jobs(each, start, Attack(norm, each.tau), seed) for seed in seeds]
        names = [job.name for some in jobs for job in some]
        for job in jobs[0]:
            times = names.count(job.name)
            yield Work(job.stretch.steps * times, partial(purifying, each, world, job.stretch), neurons, (16, 32))


# --- FP's and SB's pictures


@dataclass(frozen=True)
class Kind:
    """What the cost of an update on pictures depends on."""

    net: str
    high: int  # of the pictures
    batch: int
    attack: Attacker | None

    @classmethod
    def of(cls, net: str, high: int, plan: ImagePlan, attack: Attacker | None) -> Kind:
        same = {"eps": 1.0, "warmup": 0.0}  # whatever the radius
        return cls(net, high, plan.batch, attack and replace(attack, sigma=float(attack.sigma > 0), **same))

    def take(self, p: Schema, batch: int, n: int) -> None:
        x = torch.zeros(n * batch, self.high, 32, 3, dtype=torch.uint8).to(CUDA)
        y = torch.ones(n * batch, dtype=torch.long).to(CUDA)
        if self.net in p.mnist_cifar.models:
            net = mnist_cifar.build(p.mnist_cifar, self.net, 0, CUDA)
        else:
            net = cifar10_nets.build(self.net, CUDA)
        image_sgd.train(net, x, y, ImagePlan(1, batch, 0.1, 0.9, 1e-4), 0, self.attack)


def pictures(p: Schema) -> Iterator[Work]:
    updates: Counter[Kind] = Counter()
    for kind, plan, samples, times in (*cifar10(p.cifar10), *on_mnist_cifar(p.mnist_cifar)):
        updates[kind] += times * plan.epochs * (samples // plan.batch or 1)
    for kind, steps in updates.items():
        yield Work(steps, partial(kind.take, p), kind.batch, (2, 4))


def cifar10(p: Any) -> Iterator[tuple[Kind, ImagePlan, int, int]]:
    """Every training, its samples, and how often. Of a layer alone, the ones below it count as if learnt."""
    for net in p.nets:
        for job in cifar10_train.jobs(p, net):
            yield Kind.of(net, 32, job.plan, job.attack), job.plan, p.samples, len(p.seeds)
        clean, robust = (cifar10_nets.plan(p, net, stretch) for stretch in (p.layers.clean, p.layers.robust))
        attack = cifar10_nets.attack(p, p.attackers[0], p.layers.robust)
        deeper = sum(number > 1 for number in cifar10_nets.within(net, p.layers.numbers))
        for plan, against in ((clean, None), (robust, attack), (robust, None)):
            yield Kind.of(net, 32, plan, against), plan, p.samples, len(p.seeds) * deeper


def on_mnist_cifar(p: Any) -> Iterator[tuple[Kind, ImagePlan, int, int]]:
    for model in p.models:
        for job in mnist_cifar.jobs(p, model):
            plan, samples, attack = mnist_cifar_train.how(p, job)
            yield Kind.of(model, 32 if job.kind == "alone" else 64, plan, attack), plan, samples, 1


def chapters(preset: str) -> dict[str, Iterator[Work]]:
    p = at_scale(Schema, grid.ROOT / f"presets/{preset}.yaml", grid.ROOT / "params.yaml")
    small = grid.Small((16, 20), 50) if preset == "tiny" else grid.Small((50, 100), 300)
    return {"margin": margin(p, small), "slabs": slabs(p), "sparse": sparse(p), "pictures": pictures(p)}


def main(preset: str) -> None:
    print(f"{f'presets/{preset}.yaml':<30}{'updates':>14}" + "".join(f"{name:>12}" for name in GPUS))
    for chapter, works in chapters(preset).items():
        total, updates = dict.fromkeys(GPUS, 0.0), 0.0
        for work in works:
            updates += work.steps
            total = {name: total[name] + seconds for name, seconds in work.seconds().items()}
        hours = "".join(f"{seconds / 3600:>10.3g} h" for seconds in total.values())
        print(f"{chapter:<30}{updates:>14,.0f}{hours}", flush=True)
        bar(f"{chapter}: predicted on an A100", total["A100"] / 3600, unit="hours")
