"""Mini-batch training within a stage: groups of networks side by side, a progress bar, checkpoints, a weight file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from brittle.core import store
from brittle.core.progress import Bar, Checkpoints, Pace, bar, resumable
from brittle.nets.family import Family
from brittle.slabs.draws import Sample
from brittle.train import sgd
from brittle.train.sgd import Member, Perturb, SgdPlan, SgdState


@dataclass(frozen=True)
class Group:
    """Networks of one shape that train side by side, under one name in a file of many."""

    name: str
    family: Family
    members: Sequence[Member]
    samples: Sequence[Sample]  # `Member.data` is an index into these; they have equal sizes
    plan: SgdPlan
    rows: Sequence[dict[str, object]] = ()  # what distinguishes the members, for the tables
    pick: bool = False  # whether the weights kept are those that did best on the validation set
    perturb: Callable[[Tensor], Perturb] | None = None
    key: object = None  # what else the result depends on: the settings of perturb
    size: float = 1.0  # its share of the progress bar
    along: Sequence[int] = ()  # the weights after so many epochs are kept, too


def train_all(stage: str, path: str, groups: Sequence[Group]) -> None:
    """Train every group and store, for each, its weights, the loss of every epoch and the validation accuracy."""
    arrays = {}
    with resumable(stage) as checkpoints, bar(sum(group.size for group in groups), "training") as shown:
        for group in groups:
            state, along = _train(checkpoints, group, shown)
            arrays |= {f"{group.name}.{name}": theta for name, theta in along.items()}
            arrays |= {
                f"{group.name}.theta": state.best.cpu().numpy(),
                f"{group.name}.losses": state.losses.cpu().numpy(),
                f"{group.name}.valid": state.best_accuracy.cpu().numpy(),
            }
        store.save_tensors(path, arrays)


def _train(checkpoints: Checkpoints, group: Group, shown: Bar) -> tuple[SgdState, dict[str, np.ndarray]]:
    """Train a group; return its state at the end, and the weights `along` the way by name."""
    before, pace = shown.n, Pace()
    x, y = (torch.stack([getattr(sample, name) for sample in group.samples]) for name in ("x", "y"))
    valid = None
    if group.pick:
        valid = tuple(torch.stack([getattr(s, name) for s in group.samples]) for name in ("x_valid", "y_valid"))
    settings = (group.family, group.members, group.plan, group.pick, group.along, group.key, str(x.device))
    checkpoint = checkpoints.of(x.cpu().numpy(), y.cpu().numpy(), *settings)
    names = [field.name for field in fields(SgdState)]
    saved = checkpoint.load(names) or {}
    along = {name: array for name, array in saved.items() if name not in names}

    def watch(state: SgdState) -> None:
        if (now := len(state.losses)) in group.along:
            along[along_name(now)] = state.theta.cpu().numpy().copy()
        if pace.due():
            running = len(state.losses) / group.plan.epochs
            shown.reach(before + group.size * float(torch.where(state.done, 1.0, running).mean()))
        if checkpoint.due():
            checkpoint.save(state.arrays() | along)

    state = sgd.train(
        group.family,
        group.members,
        x,
        y,
        group.plan,
        validation=valid,
        perturb=group.perturb,
        state=SgdState.restore({name: saved[name] for name in names}, x.device) if saved else None,
        watch=watch,
    )
    shown.reach(before + group.size)
    checkpoint.save(state.arrays() | along)
    return state, along


def along_name(epoch: int) -> str:
    return f"along.{epoch}"


@dataclass(frozen=True)
class TrainedGroup:
    theta: np.ndarray  # (s, p)
    losses: np.ndarray  # (epochs, s); NaN once a network is done
    valid: np.ndarray  # (s,) the best accuracy on the validation set; -1 where it was not measured

    def after(self, theta: np.ndarray, epoch: int) -> TrainedGroup:
        """The same networks with the weights that they had after so many epochs."""
        return replace(self, theta=theta, losses=self.losses[:epoch])

    def row(self, i: int) -> dict[str, float]:
        """The number of epochs that network i trained for, and its loss in the last of them."""
        epochs = int((~np.isnan(self.losses[:, i])).sum())
        return {"epochs": epochs, "loss": float(self.losses[epochs - 1, i])}


def load_along(path: str, group: Group, trained: TrainedGroup) -> list[TrainedGroup]:
    """A trained group as it was on the way, at those of its epochs `along` that it came to."""
    names = {epoch: f"{group.name}.{along_name(epoch)}" for epoch in group.along if epoch < len(trained.losses)}
    arrays = store.load_tensors(path, dict.fromkeys(names.values(), "s p"), s=len(group.rows))
    return [trained.after(arrays[name], epoch) for epoch, name in names.items()]


def load_groups(path: str, names: Sequence[str], **sizes: int) -> dict[str, TrainedGroup]:
    """The trained groups in a file, by name."""
    axes = {"theta": "s p", "losses": "e s", "valid": "s"}
    loaded = {}
    for name in names:
        arrays = store.load_tensors(path, {f"{name}.{key}": shape for key, shape in axes.items()}, **sizes)
        loaded[name] = TrainedGroup(*(arrays[f"{name}.{key}"] for key in axes))
    return loaded
