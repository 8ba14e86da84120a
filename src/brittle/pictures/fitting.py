"""Training on pictures within a stage: with a progress bar, a checkpoint, and measurements after each epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor, nn

from brittle.core.device import check_bfloat16, keep_freed_memory
from brittle.core.errors import BadInput
from brittle.core.progress import Bar, Checkpoints
from brittle.nets.weights import flat
from brittle.pictures.params import Images
from brittle.train import image_sgd
from brittle.train.image_sgd import Attack, ImagePlan, Progress

Look = Callable[[nn.Module], dict[str, np.ndarray]]


@dataclass
class Fit:
    """A trained network, with the measurements before training and after each epoch."""

    net: nn.Module
    losses: list[float]
    seen: dict[str, np.ndarray]  # (epochs + 1, ...)


def fit(
    checkpoints: Checkpoints,
    images: Images,
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    plan: ImagePlan,
    seed: int,
    bar: Bar,
    attack: Attack | None = None,
    look: Look = lambda net: {},
    purpose: str = "",
    enough: Callable[[dict[str, np.ndarray]], bool] = lambda seen: False,
) -> Fit:
    """Train the network in place, saving checkpoints on the way; end early when what is seen is enough."""
    keep_freed_memory()
    if images.precision == "bfloat16":
        check_bfloat16(x.device)
    plan = replace(plan, precision=images.precision, compile=images.compile)
    begin = flat(net)
    frozen = [name for name, p in net.named_parameters() if not p.requires_grad]
    parts = (*begin.values(), x.cpu().numpy(), y.cpu().numpy(), plan, seed, attack, frozen, purpose, str(x.device))
    checkpoint = checkpoints.of(*parts)
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
        if enough(seen[-1]):
            plan = replace(plan, epochs=done)
    batches = len(x) // plan.batch or 1
    count = done * batches

    def each_batch() -> None:
        nonlocal count
        count += 1
        bar.reach(before + effort(plan, len(x), attack) * count / (plan.epochs * batches))

    def each_epoch(now: Callable[[], Progress]) -> bool:
        seen.append(look(net))
        if checkpoint.due():
            save(now())
        return enough(seen[-1])

    def save(progress: Progress) -> None:
        arrays = {f"weights.{name}": array for name, array in progress.weights.items()}
        arrays |= {f"momenta.{name}": array for name, array in progress.momenta.items()}
        arrays |= {f"seen.{name}": np.stack([row[name] for row in seen]) for name in seen[0]}
        checkpoint.save(arrays | {"losses": np.array(progress.losses)})

    losses = image_sgd.train(net, x, y, plan, seed, attack, start, each_epoch, each_batch, purpose)
    if not np.isfinite(losses[-1]):
        words = f"the loss is no longer finite after {len(losses)} epochs; use a lower lr"
        raise BadInput(f"params.yaml: {checkpoints.stage}: {words}")
    bar.reach(before + effort(plan, len(x), attack))
    save(Progress(len(losses), flat(net), {}, losses))  # kept until the stage has written its outputs
    return Fit(net, losses, {name: np.stack([row[name] for row in seen]) for name in seen[0]})


def effort(plan: ImagePlan, n: int, attack: Attack | None) -> float:
    """A job's share of the progress bar, counted in pictures through the network."""
    copies, steps = (getattr(attack, name, 0) for name in ("copies", "steps"))
    return plan.epochs * n * ((1 + 0.7 * steps) * max(1, copies))


def _under(kind: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{kind}.")}
