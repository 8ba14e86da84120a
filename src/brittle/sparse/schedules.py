"""Which networks are trained on the sparse coding model, from what, for how long, and how they are stored."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from brittle.attacks.fgm import Attack
from brittle.core import store
from brittle.core.rng import rng
from brittle.nets import symmetric
from brittle.nets.symmetric import Symmetric
from brittle.sparse.params import Pure, Random, Sparse
from brittle.train.purify import Rules, Stretch, Training
from brittle.worlds.sparse_coding import SparseCoding

PRUNE = 2  # blocks of steps between two searches for dead neurons, while the bias grows


def rules(p: Sparse, d: int) -> Rules:
    return Rules(p.momentum, p.decay / d, p.rho)


@dataclass(frozen=True)
class Phase:
    """One training: its network's name, the network that it continues from (None: the start), and its stretch."""

    name: str
    source: str | None
    stretch: Stretch


def jobs(p: Sparse, start: str, attack: Attack, seed: int | None = None) -> list[Phase]:
    """Clean training, adversarial training from there (Algorithm 2), and, with the first seed, what `also` asks for."""
    how: Random | Pure = getattr(p, start)
    clean = Stretch(how.clean.steps, how.clean.batch, how.clean.lr)
    hard = Stretch(how.adversarial.steps, how.adversarial.batch, how.adversarial.lr, attack=attack)
    lottery = _lottery(p) if start == "random" else None
    every = [Phase("lottery", None, lottery)] if lottery else []
    every += [Phase("clean", "lottery" if lottery else None, clean), Phase("robust", "clean", hard)]
    also = how.also if seed is None or seed == how.seeds[0] else ()
    if "pgd" in also:
        every.append(Phase("pgd", "clean", replace(hard, attack=replace(attack, steps=p.pgd))))
    if "direct" in also:  # adversarial from the first step; the radius grows, or else all neurons would die
        every += [Phase("direct_lottery", None, replace(lottery, attack=attack, warm=1.0))] if lottery else []
        every.append(Phase("direct", "direct_lottery" if lottery else None, hard))
    return every


def _lottery(p: Sparse) -> Stretch:
    how, first = p.random.lottery, first_bias(p)
    time = how.lr / (1 - p.momentum)
    steps = math.ceil((how.until - 1) * first * p.d / (time * how.growth))
    return Stretch(steps, how.batch, how.lr, how.growth, how.until * first, slow=0.0, prune=PRUNE)


def first_bias(p: Sparse) -> float:
    """The initial bias, b0 = Θ(σ0 √log d)."""
    return p.random.lottery.bias * p.random.scale * math.sqrt(math.log(p.d))


def begin(p: Sparse, world: SparseCoding, start: str, seed: int, where: torch.device) -> Training:
    """The network before any training."""
    stream = rng(seed, f"sparse {start}")
    if start == "random":
        w, b = symmetric.random(p.random.neurons, p.d, p.random.scale, stream), first_bias(p)
    else:
        how = p.pure
        m = how.copies * world.words
        w, b = symmetric.pure(world.dictionary, world.w_star, m, how.size, how.noise, stream), how.bias
    return Training.begin(w.to(where), b)


@dataclass(frozen=True)
class TrainedPhases:
    """The networks of one start and seed, by name, and the initial weights of the clean one's neurons."""

    start: Tensor  # (m, d)
    nets: dict[str, Symmetric]


def load_nets(p: Sparse, start: str, seed: int, where: torch.device) -> TrainedPhases:
    """Load the networks that stage `sparse_train` saved."""
    every = [job.name for job in jobs(p, start, Attack("l2", p.tau), seed)]
    axes = {f"{seed}.start": "m d"} | {f"{seed}.{name}.b": "one" for name in every}
    axes |= {
        f"{seed}.{name}.w": "..." if name == "direct_lottery" else "n d" if name == "direct" else "m d"
        for name in every
    }
    arrays = store.load_tensors(f"models/sparse/{start}.safetensors", axes, d=p.d, one=1)

    def net(name: str) -> Symmetric:
        b = float(arrays[f"{seed}.{name}.b"][0])
        return Symmetric(torch.from_numpy(arrays[f"{seed}.{name}.w"]).to(where), b, p.rho * b)

    return TrainedPhases(torch.from_numpy(arrays[f"{seed}.start"]).to(where), {name: net(name) for name in every})
