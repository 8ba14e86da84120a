"""What is probed: a user's network with labelled samples, checked once, and seen as attacks and probes see it.

Attacks and probes are written for one score and two labels. A network with k classes has such scores in two ways: of a
sample, how far its own class is ahead of the best other one (`Ahead`), which is what robustness is about; and of a
class, how far it is ahead of the best other one (`Ahead` with that class for every sample), one against the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from brittle.attacks.image_pgd import margin
from brittle.core.errors import BadInput
from brittle.nets.relu_mlp import ReluMlp, as_relu_mlp

LEAST = 8  # samples


class Logits(nn.Module):
    """The network on flat samples, with one output for each class. A single score f becomes -f/2 and f/2."""

    def __init__(self, net: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.net, self.shape = net, shape

    def forward(self, x: Tensor) -> Tensor:
        out = self.net(x.unflatten(1, self.shape))
        if out.ndim == 2 and out.shape[1] > 1:
            return out
        half = out.flatten() / 2
        return torch.stack([-half, half], 1)  # (n, d) -> (n, classes)


class Ahead(nn.Module):
    """How far a class is ahead of the best other one: of each sample's own label, or of one class for all samples."""

    def __init__(self, logits: nn.Module, of: Tensor | int) -> None:
        super().__init__()
        self.logits, self.of = logits, of

    def forward(self, x: Tensor) -> Tensor:
        of = torch.full_like(x[:, 0], self.of, dtype=torch.long) if isinstance(self.of, int) else self.of
        return margin(self.logits(x), of)  # (n, d) -> (n,)


class Versus(nn.Module):
    """How far each sample's label is ahead of one other class."""

    def __init__(self, logits: nn.Module, label: Tensor, rival: Tensor) -> None:
        super().__init__()
        self.logits, self.label, self.rival = logits, label, rival

    def forward(self, x: Tensor) -> Tensor:
        out = self.logits(x)
        return (out.gather(1, self.label[:, None]) - out.gather(1, self.rival[:, None]))[:, 0]  # (n, d) -> (n,)


@dataclass(frozen=True)
class Subject:
    logits: Logits
    x: Tensor  # (n, d) float32
    label: Tensor  # (n,) 0 … classes - 1
    classes: int
    shape: tuple[int, ...]  # of one sample
    groups: Mapping[str, Tensor]  # masks (d,)
    mlp: ReluMlp | None  # the same function in the form that certificates are for


def subject(net: nn.Module, x: object, y: object, groups: Mapping[str, object] | None = None) -> Subject:
    """The network and its samples, if they fit together; else BadInput with one line that says what does not."""
    if not isinstance(net, nn.Module):
        raise BadInput(f"the network: is a {type(net).__name__}; must be a torch.nn.Module")
    x, y = _numbers("x", x), _numbers("y", y)
    if x.ndim < 2 or len(x) < LEAST or x[0].numel() == 0:
        raise BadInput(f"x: has the shape {tuple(x.shape)}; must be (samples, …), with {LEAST} samples or more")
    if y.shape != x.shape[:1]:
        raise BadInput(f"y: has the shape {tuple(y.shape)}; must be ({len(x)},), one label for each sample of x")
    if not bool((y == y.round()).all()):
        raise BadInput("y: has labels that are no integers; must be 0, 1, …, or -1 and 1")
    shape = tuple(x.shape[1:])
    logits = Logits(net.cpu().float().eval(), shape)
    classes = _outputs(logits, x[:2])
    label = y.long()
    if classes == 2 and set(label.tolist()) <= {-1, 1}:
        label = (label + 1) // 2
    known = label.unique().tolist()
    if known[0] < 0 or known[-1] >= classes or len(known) < 2:
        first = ", ".join(map(str, known[:5])) + (", …" if len(known) > 5 else "")
        allowed = "0 and 1, or -1 and 1" if classes == 2 else f"0 to {classes - 1}"
        raise BadInput(
            f"y: has the labels {first}; must be {allowed}, as many as the network has outputs, and not all the same"
        )
    flat, masks = x.float().flatten(1), {name: _mask(name, group, shape) for name, group in (groups or {}).items()}
    with torch.no_grad():
        if not bool(torch.cat([logits(part) for part in flat.split(1 << 10)]).isfinite().all()):
            raise BadInput("the network: has outputs that are not finite on these samples")
    return Subject(logits, flat, label, classes, shape, masks, _mlp(logits, flat))


def _numbers(name: str, values: object) -> Tensor:
    """The values as a tensor of their own."""
    try:
        tensor = values.detach().cpu().clone() if isinstance(values, Tensor) else torch.from_numpy(np.array(values))
    except (TypeError, ValueError):
        raise BadInput(f"{name}: is no array of numbers") from None
    if tensor.is_complex() or not bool(tensor.isfinite().all()):
        raise BadInput(f"{name}: has values that are not finite real numbers")
    return tensor


def _outputs(logits: Logits, x: Tensor) -> int:
    """The number of classes that the network tells apart."""
    try:
        with torch.no_grad():
            raw = logits.net(x.float())
    except Exception as error:
        words = " ".join(str(error).split())[:200]
        raise BadInput(f"the network: fails on samples of the shape {tuple(x.shape[1:])}: {words}") from None
    if not isinstance(raw, Tensor) or raw.shape[:1] != x.shape[:1] or raw.ndim > 2 or raw.numel() == 0:
        got = tuple(raw.shape) if isinstance(raw, Tensor) else type(raw).__name__
        raise BadInput(
            f"the network: gives {got} for 2 samples; must be (2, classes), or (2,) with the score of label 1"
        )
    return max(2, raw.numel() // len(x))


def _mask(name: str, group: object, shape: tuple[int, ...]) -> Tensor:
    """Which coordinates are in the group: given as a mask of a sample's shape, or by their places in a flat sample."""
    places, d = _numbers(f"group {name}", group), math.prod(shape)
    wrong = f"group {name}: must be booleans of the shape {shape}, or different integers from 0 to {d - 1}"
    if places.dtype == torch.bool:
        if tuple(places.shape) not in (shape, (d,)):
            raise BadInput(wrong)
        mask = places.flatten()
    else:
        found = set(places.flatten().tolist())
        if len(found) != places.numel() or not all(place in range(d) for place in found):
            raise BadInput(wrong)
        mask = torch.zeros(d, dtype=torch.bool)
        mask[places.flatten().long()] = True
    if not 0 < int(mask.sum()) < d:
        raise BadInput(f"group {name}: has {int(mask.sum())} of {d} coordinates; must have some, and leave some out")
    return mask


def _mlp(logits: Logits, flat: Tensor) -> ReluMlp | None:
    found = as_relu_mlp(logits.net, flat[:100].unflatten(1, logits.shape))
    if found is None or len(found.biases[-1]) > 1:
        return found
    halves = [torch.cat([-each[-1] / 2, each[-1] / 2]) for each in (found.weights, found.biases)]
    return ReluMlp([*found.weights[:-1], halves[0]], [*found.biases[:-1], halves[1]])
