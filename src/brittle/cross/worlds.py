"""Store and load the worlds of the comparison across the papers, with a table in Git that represents each."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.core import store
from brittle.worlds.common import World


def path(world: str) -> str:
    return f"data/cross/{world}.safetensors"


def save_world(name: str, world: World) -> None:
    """Save the world, and a table in Git with its digest: stages that depend on that table depend on the world."""
    parts = {f.name: getattr(world, f.name) for f in fields(world)}
    tensors = {name: part.cpu().numpy() for name, part in parts.items() if isinstance(part, Tensor)}
    words = {name: part for name, part in parts.items() if name not in tensors and part is not None}
    content = tensors | {"about": np.frombuffer(json.dumps(words).encode(), dtype=np.uint8)}
    digest = hashlib.sha256()
    for key in sorted(content):
        digest.update(key.encode() + content[key].tobytes())
    store.save_tensors(path(name), content)
    sizes = {"samples": len(world.y), "test": len(world.y_test), "dimension": world.x.shape[1]}
    known = {"radius": world.radius, "best": world.best, "best_robust": world.best_robust}
    row = {"world": name} | sizes | known | {"digest": digest.hexdigest()}
    store.save_table(f"plots/cross_worlds/{name}.csv", pd.DataFrame([row]))


def load_world(name: str, where: torch.device) -> World:
    arrays = store.load_tensors(path(name), {"x": "n d", "y": "n", "x_test": "t d", "y_test": "t", "about": "bytes"})
    words = json.loads(arrays.pop("about").tobytes())
    words["shape"] = tuple(words["shape"])
    return World(**{key: torch.from_numpy(array) for key, array in arrays.items()}, **words).to(where)
