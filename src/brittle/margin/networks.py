"""Training within a stage: seeds side by side, a progress bar, checkpoints, and an error if the target is missed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.core import store
from brittle.core.device import keep_freed_memory
from brittle.core.errors import BadInput
from brittle.core.progress import Checkpoint, Checkpoints, Pace, bar, resumable
from brittle.core.rng import rng
from brittle.nets.two_layer import TwoLayer, initial
from brittle.train import flow, protocol
from brittle.train.state import NotReached, State

TOGETHER = 1 << 21  # samples × neurons of the networks that train side by side: tensors of 8 MB stay in the cache
LARGE = 1 << 23  # samples × neurons of a network whose tensors have 32 MB; glibc keeps no larger ones when freed


@dataclass(frozen=True)
class Method:
    """A way to train depth-2 networks to a target loss, with its settings."""

    name: str
    train: Callable[..., tuple[TwoLayer, State]]
    state: type[State]
    settings: dict[str, Any]


def flow_method(*, loss: str, log10_target: float, momentum: float, max_steps: int) -> Method:
    settings = {"momentum": momentum, "max_steps": max_steps, "loss": loss, "ln_target": log10_target * math.log(10)}
    return Method("flow", flow.train, flow.FlowState, settings)


def protocol_method(*, loss: str, log10_target: float, **settings: float) -> Method:
    settings |= {"loss": loss, "ln_target": log10_target * math.log(10)}
    return Method("protocol", protocol.train, protocol.ProtocolState, settings)


@dataclass(frozen=True)
class TrainedNets:
    net: dict[str, np.ndarray]  # w (s, k, d), b (s, k), v (s, k)
    histories: list[np.ndarray]  # of each seed, ln loss step by step


def train(
    checkpoints: Checkpoints,
    x: np.ndarray,  # (s, m, d)
    y: np.ndarray,  # (s, m)
    seeds: Sequence[int],
    *,
    width: int,
    init_scale: float,
    method: Method,
    where: torch.device,
    advise: str,
    watch: Callable[[float], None] = lambda done: None,
) -> TrainedNets:
    """Train one network per seed, as many side by side as fit; `watch` is told how many are done, with fractions."""
    together = max(1, TOGETHER // (x.shape[1] * width))
    if where.type == "cpu" and x.shape[1] * width >= LARGE:
        keep_freed_memory()
    pace = Pace()
    groups = [slice(i, i + together) for i in range(0, len(seeds), together)]
    ln_target = method.settings["ln_target"]
    nets, histories = [], []
    for group in groups:
        start = initial(x.shape[2], width, init_scale, [rng(seed, "margin init") for seed in seeds[group]])
        parts = (x[group], y[group], seeds[group], width, init_scale, method.name, method.settings, where)
        checkpoint = checkpoints.of(*parts)
        saved = checkpoint.load(method.state.names())

        def each_step(state: State, group: slice = group, checkpoint: Checkpoint = checkpoint) -> None:
            # ln loss falls ever faster; its square root is roughly linear in time.
            if pace.due():
                watch(group.start + float((state.ln_loss / ln_target).clamp(0, 1).sqrt().sum()))
            if checkpoint.due():
                checkpoint.save(state.arrays())

        def on(array: np.ndarray, group: slice = group) -> Tensor:
            return torch.from_numpy(array[group]).to(where)

        restored = method.state.restore(saved, where) if saved else None
        try:
            net, state = method.train(on(x), on(y), start.to(where), state=restored, watch=each_step, **method.settings)
        except NotReached as short:
            raise BadInput(f"{checkpoints.stage}: stopped at {short}; {advise}") from None
        watch(min(group.stop, len(seeds)))
        checkpoint.save(state.arrays())  # also when done: the process may be killed before the stage ends
        nets.append({name: tensor.cpu().numpy() for name, tensor in vars(net).items()})
        histories += list(torch.stack([*state.history, state.ln_loss], dim=1).cpu().numpy())
    return TrainedNets({n: np.concatenate([net[n] for net in nets]) for n in nets[0]}, histories)


@dataclass(frozen=True)
class NetworkJob:
    """Networks of one shape and method, one per seed, under one name in a file of many."""

    name: str
    draw: Callable[[], tuple[np.ndarray, np.ndarray]]  # (s, m, d), (s, m)
    seeds: Sequence[int]  # of the initial weights
    width: int
    method: Method
    init_scale: float = 1.0
    size: float = 1.0  # its share of the progress bar


def train_all(stage: str, path: str, jobs: Sequence[NetworkJob], where: torch.device, advise: str) -> None:
    """Train every job's networks and store them in one file, as NAME.w, NAME.b and NAME.v."""
    tensors = {}
    with resumable(stage) as checkpoints, bar(sum(len(job.seeds) * job.size for job in jobs), "training") as shown:
        for job in jobs:
            before = shown.n
            trained = train(
                checkpoints,
                *job.draw(),
                job.seeds,
                width=job.width,
                init_scale=job.init_scale,
                method=job.method,
                where=where,
                advise=advise,
                watch=lambda done, before=before, job=job: shown.reach(before + done * job.size),
            )
            tensors |= {f"{job.name}.{name}": array for name, array in trained.net.items()}
        store.save_tensors(path, tensors)
