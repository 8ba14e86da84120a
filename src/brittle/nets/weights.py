"""A torch module's weights as named arrays: to store, to compare by digest, to restore."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import nn

from brittle.core.errors import BadInput


def flat(net: nn.Module) -> dict[str, np.ndarray]:
    """Weights and statistics, by name, as they are stored."""
    return {name: value.detach().cpu().numpy().copy() for name, value in net.state_dict().items()}


def restore(net: nn.Module, arrays: dict[str, np.ndarray]) -> None:
    net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})


def digest(net: nn.Module) -> str:
    """The digest of the weights. It is in Git, so that what depends on the table with it depends on the network."""
    content = hashlib.sha256()
    for name, array in flat(net).items():
        content.update(name.encode() + array.tobytes())
    return content.hexdigest()


def named(prefix: str, net: nn.Module) -> dict[str, np.ndarray]:
    """A network's arrays, named as one part of a file."""
    return {f"{prefix}.{name}": array for name, array in flat(net).items()}


def take(net: nn.Module, arrays: dict[str, np.ndarray], prefix: str, path: str) -> nn.Module:
    """The network with the weights of the part named `prefix`."""
    part = {name.removeprefix(f"{prefix}."): a for name, a in arrays.items() if name.startswith(f"{prefix}.")}
    try:
        restore(net, part)
    except RuntimeError:
        raise BadInput(f"{path}: has no network {prefix} of this kind; remove it and run `dvc repro`") from None
    return net.eval()
