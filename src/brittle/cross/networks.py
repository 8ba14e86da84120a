"""Train, store and load the network of one remedy in one world, for the stages across the papers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
import torch
from torch import Tensor, nn

from brittle import plugins
from brittle.attacks.pgd import pgd
from brittle.core import store
from brittle.core.progress import Checkpoint
from brittle.cross.kept import Kept
from brittle.cross.measured import Row
from brittle.cross.params import Cross, Strength
from brittle.nets import weights
from brittle.nets.modules import Average
from brittle.plugins import Plugin
from brittle.train.remedies import RemedyPlan, Task
from brittle.worlds.common import World

OWN_NETWORK = {"power_relu": "power_relu"}  # remedies that put a network of their own in the place of the world's


@dataclass(frozen=True)
class TrainedRemedy:
    """One network, what it is called in the tables, and what training it cost."""

    world: str
    architecture: str
    remedy: str
    seed: int
    make: Callable[[], tuple[nn.Module, int]]  # called only if needed: the rows of this network may exist already
    user_supplied: bool = False

    @cached_property
    def made(self) -> tuple[nn.Module, int]:
        return self.make()

    @property
    def net(self) -> nn.Module:
        return self.made[0]

    @property
    def spent(self) -> int:
        """The number of samples that went through the network in training."""
        return self.made[1]

    @property
    def about(self) -> Row:
        return {"world": self.world, "net": self.architecture, "remedy": self.remedy, "seed": self.seed}


def how(p: Cross, world: World) -> tuple[RemedyPlan, dict[str, float]]:
    """The settings of SGD and the strengths of the remedies in this world."""
    t, s = p.training, p.strength
    few = bool(world.shape)  # pictures take longer
    strength = {name: getattr(s, name) for name in Strength.model_fields}
    if few:
        strength["adversarial"] = s.pictures_adversarial
    return RemedyPlan(
        t.pictures_updates if few else t.updates,
        t.pictures_batch if few else t.batch,
        t.pictures_lr if few else t.lr,
        t.momentum,
        t.target,
    ), strength


def train(
    p: Cross, name: str, world: World, net: Plugin, remedy: Plugin, seed: int, kept: Kept | None = None
) -> TrainedRemedy | None:
    """The network that a remedy makes; None if the architecture does not take inputs of this shape."""
    if net(world.input_shape, seed) is None:
        return None
    plan, strength = how(p, world)

    def keeper(fit: int) -> Checkpoint:
        return kept.training(net.name, remedy.name, seed, plan, strength, fit)

    def make() -> tuple[nn.Module, int]:
        task = Task(
            world,
            build=lambda number: _built(net, world.input_shape, number),
            seed=seed,
            plan=plan,
            strength=strength,
            attack=lambda f, x, y, radius: x + pgd(f, x, y, "l2", radius, strength["steps"]),
            # A user's remedy may keep state besides the network, which a checkpoint would not restore.
            keeper=keeper if kept and not remedy.user_supplied else None,
        )
        made = remedy(task)
        if not isinstance(made, nn.Module):
            raise remedy.wrong(f"must return a torch module, not {type(made).__name__}")
        made, spent = made.eval(), task.spent
        _check_scores(made, world.x_test[:5], remedy)
        return made, spent

    architecture = OWN_NETWORK.get(remedy.name, net.name)
    return TrainedRemedy(name, architecture, remedy.name, seed, make, net.user_supplied or remedy.user_supplied)


def _built(net: Plugin, shape: tuple[int, ...], seed: int) -> nn.Module:
    made = net(shape, seed)
    if not isinstance(made, nn.Module):
        raise net.wrong(f"must return a torch module, not {type(made).__name__}")
    _check_scores(made, torch.zeros(2, math.prod(shape)), net)
    return made


def _check_scores(net: nn.Module, x: Tensor, source: Plugin) -> None:
    """Check that the network gives one finite score per sample; otherwise raise a one-line error."""
    try:
        with torch.no_grad():
            out = net(x)
    except Exception as error:
        words = " ".join(str(error).split())[:200]
        raise source.wrong(f"made a network that fails on inputs {tuple(x.shape)}: {words}") from None
    if not isinstance(out, Tensor) or out.shape != x.shape[:1]:
        got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise source.wrong(f"made a network with scores of the shape {got} for {len(x)} samples; must be ({len(x)},)")
    if not bool(out.isfinite().all()):
        raise source.wrong("made a network whose scores are not finite")


def networks(world: str) -> str:
    return f"models/cross/{world}.safetensors"


def about_networks(world: str) -> str:
    return f"plots/cross/{world}.csv"


def save_networks(world: str, trained: Sequence[TrainedRemedy]) -> None:
    """Save the weights, and a table in Git with their digests."""
    arrays, rows = {}, []
    for each in trained:
        arrays |= weights.named(f"{each.remedy}.{each.seed}", each.net)
        members = len(each.net.members) if isinstance(each.net, Average) else 1
        rows.append(each.about | {"members": members, "spent": each.spent, "weights": weights.digest(each.net)})
    store.save_tensors(networks(world), arrays)
    store.save_table(about_networks(world), pd.DataFrame(rows))


def load_networks(p: Cross, world: str, there: World) -> list[TrainedRemedy]:
    """Load the networks that the parameters ask for: single ones, or averages of several."""
    table = store.load_table(about_networks(world), ["seed", "members", "spent"], text=["net", "remedy"])
    arrays, found = store.load_tensors(networks(world), {}), []
    for row in table[table["remedy"].isin(p.remedies) & table["seed"].isin(p.seeds)].itertuples():
        nets = [plugins.named("net", row.net)(there.input_shape, 0) for _ in range(row.members)]
        net = weights.take(
            nets[0] if len(nets) == 1 else Average(nets), arrays, f"{row.remedy}.{row.seed}", networks(world)
        )
        made = net.to(there.x.device), row.spent
        found.append(TrainedRemedy(world, row.net, row.remedy, row.seed, lambda made=made: made))
    return found
