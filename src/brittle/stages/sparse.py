"""What the stages of the sparse coding model share: the world, the schedules, the networks on disk."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from brittle import store
from brittle.attacks.fgm import Attack, fgm
from brittle.attacks.pgd import pgd
from brittle.attacks.pieces import NORMS
from brittle.nets import symmetric
from brittle.nets.symmetric import Symmetric
from brittle.params.sparse import Pure, Random, Sparse
from brittle.rng import normal32, rng
from brittle.train.purify import Rules, Stretch, Training
from brittle.worlds.sparse_coding import DICTIONARIES, SparseCoding, labelling

Scores = Callable[[Tensor], Tensor]  # (n, d) -> (n,)
DATA = "data/sparse.safetensors"
PGD_STEPS = 20  # of the attack that robust accuracy is reported under, from two beginnings
SOFTER = 10  # its second beginning is found on a network this many times smoother
PRUNE = 2  # blocks of steps between two looks for dead neurons, while the bias grows


def draw_world(p: Sparse) -> SparseCoding:
    """The distribution that the parameters describe, its dictionary and labelling drawn."""
    return SparseCoding(
        dictionary=DICTIONARIES[p.dictionary](p.d, p.words, rng(p.seed, "dictionary")),
        w_star=labelling(p.words, p.spread, rng(p.seed, "labelling")),
        **_shape(p),
    )


def _shape(p: Sparse) -> dict[str, float]:
    return {name: getattr(p, name) for name in ("k", "c1", "c2", "sigma_x", "spikes", "spike_size", "margin")}


@dataclass(frozen=True)
class Setting:
    """A world and samples of it to test on."""

    world: SparseCoding
    dictionary: Tensor  # (d, D)
    w_star: Tensor  # (D,)
    dense: Tensor  # (d,)
    x: Tensor  # (n, d)
    y: Tensor  # (n,)

    @classmethod
    def of(cls, world: SparseCoding, x: Tensor, y: Tensor) -> Setting:
        there = (torch.from_numpy(array).to(x.device) for array in (world.dictionary, world.w_star, world.dense))
        return cls(world, *there, x, y)

    def first(self, n: int) -> Setting:
        """With fewer samples."""
        return replace(self, x=self.x[:n], y=self.y[:n])


def load(p: Sparse, where: torch.device) -> Setting:
    """What stage `sparse_data` drew."""
    axes = {"dictionary": "d D", "w_star": "D", "x": "n d", "y": "n"}
    arrays = store.load_tensors(DATA, axes, d=p.d, D=p.words, n=p.test)
    world = SparseCoding(dictionary=arrays["dictionary"], w_star=arrays["w_star"], **_shape(p))
    return Setting.of(world, *(torch.from_numpy(arrays[name]).to(where) for name in ("x", "y")))


def words_on(world: SparseCoding) -> float:
    """K: the mean number of words in a sample, the filter's effect included."""
    z = world.hidden(20_000, rng(0, "words on"))
    return z.nnz / z.shape[0]


def rules(p: Sparse, d: int) -> Rules:
    return Rules(p.momentum, p.decay / d, p.rho)


@dataclass(frozen=True)
class Job:
    """One training: its network's name, the network that it goes on from (None: the start), and its stretch."""

    name: str
    source: str | None
    stretch: Stretch


def jobs(p: Sparse, start: str, attack: Attack) -> list[Job]:
    """Clean training, adversarial training from there (Algorithm 2), and what else `also` asks for."""
    how: Random | Pure = getattr(p, start)
    clean = Stretch(how.clean.steps, how.clean.batch, how.clean.lr)
    hard = Stretch(how.adversarial.steps, how.adversarial.batch, how.adversarial.lr, attack=attack)
    lottery = _lottery(p) if start == "random" else None
    every = [Job("lottery", None, lottery)] if lottery else []
    every += [Job("clean", "lottery" if lottery else None, clean), Job("robust", "clean", hard)]
    if "pgd" in how.also:
        every.append(Job("pgd", "clean", replace(hard, attack=replace(attack, steps=p.pgd))))
    if "direct" in how.also:  # adversarial from its first step; at the full radius from there on, all neurons would die
        every += [Job("direct_lottery", None, replace(lottery, attack=attack, warm=1.0))] if lottery else []
        every.append(Job("direct", "direct_lottery" if lottery else None, hard))
    return every


def _lottery(p: Sparse) -> Stretch:
    how, first = p.random.lottery, first_bias(p)
    time = how.lr / (1 - p.momentum)
    steps = math.ceil((how.until - 1) * first * p.d / (time * how.growth))
    return Stretch(steps, how.batch, how.lr, how.growth, how.until * first, slow=0.0, prune=PRUNE)


def first_bias(p: Sparse) -> float:
    """b0 = Θ(σ0 √log d)."""
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
class Trained:
    """The networks of one start and seed, by name, and where the neurons of the clean one began."""

    start: Tensor  # (m, d)
    nets: dict[str, Symmetric]


def load_nets(p: Sparse, start: str, seed: int, where: torch.device) -> Trained:
    """What stage `sparse_train` left."""
    every = [job.name for job in jobs(p, start, Attack("l2", p.tau))]
    axes = {f"{seed}.start": "m d"} | {f"{seed}.{name}.b": "one" for name in every}
    axes |= {
        f"{seed}.{name}.w": "..." if name == "direct_lottery" else "n d" if name == "direct" else "m d"
        for name in every
    }
    arrays = store.load_tensors(f"models/sparse/{start}.safetensors", axes, d=p.d, one=1)

    def net(name: str) -> Symmetric:
        b = float(arrays[f"{seed}.{name}.b"][0])
        return Symmetric(torch.from_numpy(arrays[f"{seed}.{name}.w"]).to(where), b, p.rho * b)

    return Trained(torch.from_numpy(arrays[f"{seed}.start"]).to(where), {name: net(name) for name in every})


def perturbed(f: Scores, setting: Setting, norm: str, tau: float, softer: Scores | None = None) -> dict[str, Tensor]:
    """δ of every attack within τ: dense (it needs no network), random of the same size, FGM, PGD.

    A purified network hides its gradient: words that are off have none, so that PGD does not see which of them it could
    turn on. So it also begins where PGD ends on a `softer` network, of which no neuron is quite off.
    """  # each (n, d)
    x, y, steepest = setting.x, setting.y[:, None], NORMS[norm].normalise
    noise = torch.from_numpy(normal32(x.shape, rng(0, "sparse noise"))).to(x.device)
    noise = tau * steepest(noise)
    single = fgm(gradient(f, x), setting.y, norm, tau)
    start = pgd(softer, x, setting.y, norm, tau, PGD_STEPS // 2) if softer else noise
    twice = [pgd(f, x, setting.y, norm, tau, PGD_STEPS)]
    twice += [pgd(f, x, setting.y, norm, tau, PGD_STEPS, step_size=2 / PGD_STEPS, start=start)]
    scores = [setting.y * f(x + delta).detach() for delta in (single, *twice)]
    first = torch.where((scores[0] < scores[1])[:, None], single, twice[0])
    worst = torch.where((scores[2] < torch.minimum(scores[0], scores[1]))[:, None], twice[1], first)
    return {"dense": -tau * y * steepest(setting.dense[None]), "random": noise, "fgm": single, "pgd": worst}


def soft(net: Symmetric) -> Symmetric:
    """The same weights, the ReLU smoothed over more than the bias."""
    return replace(net, sigma=SOFTER * max(net.sigma, 0.05 * net.b))


def gradient(f: Scores, x: Tensor) -> Tensor:
    """∇_x f(x_i)."""  # (n, d) -> (n, d)
    leaf = x.detach().requires_grad_()
    return torch.autograd.grad(f(leaf).sum(), leaf)[0]


@torch.no_grad()
def accuracy(f: Scores, setting: Setting, delta: Tensor | float = 0.0) -> float:
    return float((setting.y * f(setting.x + delta) > 0).double().mean())
