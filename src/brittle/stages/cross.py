"""What the stages across the papers share: worlds and networks on disk, one remedy in one world, and checkpoints."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from brittle import plugins, store
from brittle.attacks.pgd import pgd
from brittle.nets.modules import Average
from brittle.params.cross import Cross, Strength
from brittle.plugins import Plugin
from brittle.stages import pictures
from brittle.stages.progress import Checkpoint, fingerprint
from brittle.train.remedies import Plan, Task
from brittle.worlds.common import World

Row = dict[str, object]
T = TypeVar("T")

# --- Worlds on disk


def path(world: str) -> str:
    return f"data/cross/{world}.safetensors"


def save(name: str, world: World) -> None:
    parts = {f.name: getattr(world, f.name) for f in fields(world)}
    tensors = {name: part.cpu().numpy() for name, part in parts.items() if isinstance(part, Tensor)}
    words = {name: part for name, part in parts.items() if name not in tensors and part is not None}
    about = json.dumps(words).encode()
    store.save_tensors(path(name), tensors | {"about": np.frombuffer(about, dtype=np.uint8)})


def load(name: str, where: torch.device) -> World:
    arrays = store.load_tensors(path(name), {"x": "n d", "y": "n", "x_test": "t d", "y_test": "t", "about": "bytes"})
    words = json.loads(arrays.pop("about").tobytes())
    words["shape"] = tuple(words["shape"])
    return World(**{key: torch.from_numpy(array) for key, array in arrays.items()}, **words).to(where)


# --- Checkpoints


class Kept:
    """What a stage has done in one world, in checkpoints that go when its outputs are written.

    Of trainings each has its own; what was measured, in numbers and words, is in one.
    """

    def __init__(self, stage: str, there: World, *parts: object) -> None:
        whole = (getattr(there, f.name) for f in fields(there))
        arrays = (part.cpu().numpy() if isinstance(part, Tensor) else part for part in whole)
        self.stage, self.name = stage, fingerprint(*arrays, str(there.x.device), *parts)
        self.trainings: list[Checkpoint] = []
        self.measured = Checkpoint(stage, self.name)
        saved = self.measured.load(["found"])
        self.found = json.loads(saved["found"].tobytes()) if saved else {}

    def training(self, *parts: object) -> Checkpoint:
        self.trainings.append(Checkpoint(self.stage, fingerprint(self.name, *parts)))
        return self.trainings[-1]

    def once(self, what: str, find: Callable[[], T]) -> T:
        """What was found under this name before it was stopped, or what is found now."""
        if what not in self.found:
            self.found[what] = find()
            if self.measured.due():
                self.save()
        return self.found[what]

    def save(self) -> None:
        self.measured.save({"found": np.frombuffer(json.dumps(self.found).encode(), dtype=np.uint8)})

    def forget(self) -> None:
        for checkpoint in (self.measured, *self.trainings):
            checkpoint.forget()


# --- Networks


@dataclass(frozen=True)
class Trained:
    """One network, what it is called in the tables, and what training it cost."""

    world: str
    architecture: str
    remedy: str
    seed: int
    make: Callable[[], tuple[nn.Module, int]]  # not before it is asked for: its rows may be there already
    yours: bool = False

    @cached_property
    def made(self) -> tuple[nn.Module, int]:
        return self.make()

    @property
    def net(self) -> nn.Module:
        return self.made[0]

    @property
    def spent(self) -> int:
        """Samples that went through the network."""
        return self.made[1]

    @property
    def about(self) -> Row:
        return {"world": self.world, "net": self.architecture, "remedy": self.remedy, "seed": self.seed}


def how(p: Cross, world: World) -> tuple[Plan, dict[str, float]]:
    """SGD's settings and the remedies' strengths there."""
    t, s = p.training, p.strength
    few = bool(world.shape)  # pictures take longer
    strength = {name: getattr(s, name) for name in Strength.model_fields}
    if few:
        strength["adversarial"] = s.pictures_adversarial
    return Plan(
        t.pictures_updates if few else t.updates,
        t.pictures_batch if few else t.batch,
        t.pictures_lr if few else t.lr,
        t.momentum,
        t.target,
    ), strength


def train(
    p: Cross, name: str, world: World, net: Plugin, remedy: Plugin, seed: int, kept: Kept | None = None
) -> Trained | None:
    """The network that a remedy makes; None where the network is not for inputs of this shape."""
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
            # What a remedy of yours remembers of a training, beside the network, would be missing.
            keeper=keeper if kept and not remedy.yours else None,
        )
        made = remedy(task)
        if not isinstance(made, nn.Module):
            raise remedy.wrong(f"must return a torch module, not {type(made).__name__}")
        made, spent = made.eval(), task.spent
        _check_scores(made, world.x_test[:5], remedy)
        return made, spent

    return Trained(name, net.name, remedy.name, seed, make, net.yours or remedy.yours)


def _built(net: Plugin, shape: tuple[int, ...], seed: int) -> nn.Module:
    made = net(shape, seed)
    if not isinstance(made, nn.Module):
        raise net.wrong(f"must return a torch module, not {type(made).__name__}")
    _check_scores(made, torch.zeros(2, math.prod(shape)), net)
    return made


def _check_scores(net: nn.Module, x: Tensor, source: Plugin) -> None:
    """One finite score a sample, or a line that says what else came."""
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


def save_networks(world: str, trained: Sequence[Trained]) -> None:
    """The weights, and a table in Git that has their digests."""
    arrays, rows = {}, []
    for each in trained:
        arrays |= pictures.named(f"{each.remedy}.{each.seed}", each.net)
        members = len(each.net.members) if isinstance(each.net, Average) else 1
        rows.append(each.about | {"members": members, "spent": each.spent, "weights": pictures.digest(each.net)})
    store.save_tensors(networks(world), arrays)
    store.save_table(about_networks(world), pd.DataFrame(rows))


def load_networks(p: Cross, world: str, there: World) -> list[Trained]:
    """Those that the parameters ask for. Our own remedies return a network of the world's kind, or a mean of some."""
    table = store.load_table(about_networks(world), ["seed", "members", "spent"], text=["net", "remedy"])
    arrays, build, found = store.load_tensors(networks(world), {}), plugins.named("net", there.net), []
    for row in table[table["remedy"].isin(p.remedies) & table["seed"].isin(p.seeds)].itertuples():
        nets = [build(there.input_shape, 0) for _ in range(row.members)]
        net = pictures.take(
            nets[0] if len(nets) == 1 else Average(nets), arrays, f"{row.remedy}.{row.seed}", networks(world)
        )
        made = net.to(there.x.device), row.spent
        found.append(Trained(world, row.net, row.remedy, row.seed, lambda made=made: made))
    return found
