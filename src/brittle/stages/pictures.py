"""What the stages on real pictures share: the data, and training that goes on where it was stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from brittle import store
from brittle.device import check_bfloat16
from brittle.nets.pictures import flat, restore
from brittle.params.base import BadInput
from brittle.params.images import Images
from brittle.stages.progress import Bar, Checkpoint, fingerprint
from brittle.train import pictures
from brittle.train.pictures import Attack, Plan, Progress

Look = Callable[[nn.Module], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Split:
    x: Tensor  # uint8: (n, 28, 28) or (n, 32, 32, 3)
    y: Tensor  # (n,) int64


def load(name: str, device: torch.device) -> dict[str, Split]:
    """`train` and `test` of a data set that was fetched."""
    axes = "h w c" if name == "cifar10" else "h w"
    shapes = {f"{split}_{part}": f"{split} {axes}" if part == "x" else split for split in SPLITS for part in "xy"}
    arrays = store.load_tensors(f"data/{name}.safetensors", shapes)
    return {
        split: Split(torch.from_numpy(arrays[f"{split}_x"]).to(device), _labels(arrays[f"{split}_y"]).to(device))
        for split in SPLITS
    }


SPLITS = ("train", "test")


def _labels(y: np.ndarray) -> Tensor:
    return torch.from_numpy(y.astype(np.int64))


@dataclass
class Fit:
    """A network that was trained, with what was seen of it before, and after each epoch."""

    net: nn.Module
    losses: list[float]
    seen: dict[str, np.ndarray]  # (epochs + 1, ...)
    checkpoint: Checkpoint


def fit(
    stage: str,
    images: Images,
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    plan: Plan,
    seed: int,
    bar: Bar,
    attack: Attack | None = None,
    look: Look = lambda net: {},
    purpose: str = "",
) -> Fit:
    """Train the network in place, saving its state on the way."""
    if images.precision == "bfloat16":
        check_bfloat16(x.device)
    plan = replace(plan, precision=images.precision, compile=images.compile)
    begin = flat(net)
    frozen = [name for name, p in net.named_parameters() if not p.requires_grad]
    parts = (*begin.values(), x.cpu().numpy(), y.cpu().numpy(), plan, seed, attack, frozen, purpose, str(x.device))
    checkpoint = Checkpoint(stage, fingerprint(*parts))
    names = [f"weights.{name}" for name in begin] + ["losses"]
    saved = checkpoint.load(names)
    seen: list[dict[str, np.ndarray]] = []
    start, done, before = None, 0, bar.n
    if saved is None:
        seen.append(look(net))
    else:
        groups = {kind: _under(kind, saved) for kind in ("weights", "momenta", "seen")}
        done = len(saved["losses"])
        start = Progress(done, groups["weights"], groups["momenta"], saved["losses"].tolist())
        seen = [{name: rows[i] for name, rows in groups["seen"].items()} for i in range(done + 1)]
    batches = len(x) // plan.batch or 1
    count = done * batches

    def each_batch() -> None:
        nonlocal count
        count += 1
        bar.reach(before + effort(plan, len(x), attack) * count / (plan.epochs * batches))

    def each_epoch(progress: Progress) -> None:
        seen.append(look(net))
        if checkpoint.due():
            save(progress)

    def save(progress: Progress) -> None:
        arrays = {f"weights.{name}": array for name, array in progress.weights.items()}
        arrays |= {f"momenta.{name}": array for name, array in progress.momenta.items()}
        arrays |= {f"seen.{name}": np.stack([row[name] for row in seen]) for name in seen[0]}
        checkpoint.save(arrays | {"losses": np.array(progress.losses)})

    losses = pictures.train(net, x, y, plan, seed, attack, start, each_epoch, each_batch, purpose)
    if not np.isfinite(losses[-1]):
        raise BadInput(f"params.yaml: {stage}: the loss is no longer finite after {len(losses)} epochs; use a lower lr")
    bar.reach(before + effort(plan, len(x), attack))
    save(Progress(len(losses), flat(net), {}, losses))  # until the stage has written its outputs
    return Fit(net, losses, {name: np.stack([row[name] for row in seen]) for name in seen[0]}, checkpoint)


def effort(plan: Plan, n: int, attack: Attack | None) -> float:
    """In pictures through the network: a job's share of the progress bar."""
    copies, steps = (getattr(attack, name, 0) for name in ("copies", "steps"))
    return plan.epochs * n * ((1 + 0.7 * steps) * max(1, copies))


def _under(kind: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{kind}.")}


def digest(net: nn.Module) -> str:
    """Of the weights: in Git, so that what depends on the table that holds it depends on the network."""
    content = hashlib.sha256()
    for name, array in flat(net).items():
        content.update(name.encode() + array.tobytes())
    return content.hexdigest()


def named(prefix: str, net: nn.Module) -> dict[str, np.ndarray]:
    """A network's arrays as one part of a file."""
    return {f"{prefix}.{name}": array for name, array in flat(net).items()}


def take(net: nn.Module, arrays: dict[str, np.ndarray], prefix: str, path: str) -> nn.Module:
    """The network with the weights of that part."""
    part = {name.removeprefix(f"{prefix}."): a for name, a in arrays.items() if name.startswith(f"{prefix}.")}
    try:
        restore(net, part)
    except RuntimeError:
        raise BadInput(f"{path}: has no network {prefix} of this kind; remove it and run `dvc repro`") from None
    return net.eval()
