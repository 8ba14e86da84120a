"""Mini-batch training as a stage does it: groups of networks side by side, a bar, a checkpoint, one file of weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from brittle import store
from brittle.nets.family import Family
from brittle.stages.progress import Bar, Checkpoint, bar, fingerprint
from brittle.stages.slabs import Sample
from brittle.train import sgd
from brittle.train.sgd import Member, Perturb, Plan, SgdState


@dataclass(frozen=True)
class Group:
    """Networks of one shape that train side by side, under one name in a file of many."""

    name: str
    family: Family
    members: Sequence[Member]
    samples: Sequence[Sample]  # what `Member.data` counts; of equal sizes
    plan: Plan
    rows: Sequence[dict[str, object]] = ()  # what tells the members apart, for the tables
    pick: bool = False  # whether the weights kept are those that did best on the validation set
    perturb: Callable[[Tensor], Perturb] | None = None
    key: object = None  # what else the result depends on: the settings of perturb
    size: float = 1.0  # of its share of the progress bar


def train_all(stage: str, path: str, groups: Sequence[Group]) -> None:
    """Train every group and store, for each, its weights, the loss of every epoch and the validation accuracy."""
    arrays, checkpoints = {}, []
    with bar(sum(group.size for group in groups), "training") as shown:
        for group in groups:
            state, checkpoint = _train(stage, group, shown)
            checkpoints.append(checkpoint)
            arrays |= {
                f"{group.name}.theta": state.best.cpu().numpy(),
                f"{group.name}.losses": state.losses.cpu().numpy(),
                f"{group.name}.valid": state.best_accuracy.cpu().numpy(),
            }
    store.save_tensors(path, arrays)
    for checkpoint in checkpoints:
        checkpoint.forget()


def _train(stage: str, group: Group, shown: Bar) -> tuple[SgdState, Checkpoint]:
    before = shown.n
    x, y = (torch.stack([getattr(sample, name) for sample in group.samples]) for name in ("x", "y"))
    valid = None
    if group.pick:
        valid = tuple(torch.stack([getattr(s, name) for s in group.samples]) for name in ("x_valid", "y_valid"))
    settings = (group.family, group.members, group.plan, group.pick, group.key, str(x.device))
    checkpoint = Checkpoint(stage, fingerprint(x.cpu().numpy(), y.cpu().numpy(), *settings))
    saved = checkpoint.load([field.name for field in fields(SgdState)])

    def watch(state: SgdState) -> None:
        running = len(state.losses) / group.plan.epochs
        shown.reach(before + group.size * float(torch.where(state.done, 1.0, running).mean()))
        if checkpoint.due():
            checkpoint.save(state.arrays())

    state = sgd.train(
        group.family,
        group.members,
        x,
        y,
        group.plan,
        validation=valid,
        perturb=group.perturb,
        state=SgdState.restore(saved, x.device) if saved else None,
        watch=watch,
    )
    shown.reach(before + group.size)
    checkpoint.save(state.arrays())
    return state, checkpoint


@dataclass(frozen=True)
class Trained:
    theta: np.ndarray  # (s, p)
    losses: np.ndarray  # (epochs, s); NaN once a network is done
    valid: np.ndarray  # (s,) the best accuracy on the validation set; -1 where it was not looked at

    def row(self, i: int) -> dict[str, float]:
        """For how many epochs network i trained, and its loss in the last of them."""
        epochs = int((~np.isnan(self.losses[:, i])).sum())
        return {"epochs": epochs, "loss": float(self.losses[epochs - 1, i])}


def load(path: str, names: Sequence[str], **sizes: int) -> dict[str, Trained]:
    """The groups of a file by name."""
    axes = {"theta": "s p", "losses": "e s", "valid": "s"}
    loaded = {}
    for name in names:
        arrays = store.load_tensors(path, {f"{name}.{key}": shape for key, shape in axes.items()}, **sizes)
        loaded[name] = Trained(*(arrays[f"{name}.{key}"] for key in axes))
    return loaded
