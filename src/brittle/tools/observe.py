"""Run every stage at a tiny scale, in this process, and record what it reads and writes."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib.pyplot as plt
import numpy as np
from ruamel.yaml import YAML

from brittle.core import store
from brittle.core.params import load, read
from brittle.core.progress import FOLDER, tracked
from brittle.params import leaves, overlaid
from brittle.tools.graph import ROOT, Stage
from brittle.tools.reads import Reads

HEADLINE = {"d": 8, "width": 20, "seeds": [0, 1], "figures": {"dpi": 50}}  # the headline experiment at a tiny scale


@dataclass(frozen=True)
class Observed:
    keys: set[str]  # parameters that the stage read
    read: set[str]  # files that it read
    written: set[str]  # files that it wrote, without checkpoints
    changed: set[str]  # written files that were different in a second run


def observe(every: dict[str, Stage], folder: Path, *, twice: bool = False) -> dict[str, Observed]:
    """Run the stages in order in this empty folder; with `twice`, run each again to see whether its outputs change."""
    values = write_tiny(folder / "params.yaml")
    for name in ("evidence", "pyproject.toml", "requirements.lock"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, folder / name)
    write_plugins(folder / "plugins")
    seen: dict[str, Observed] = {}
    with contextlib.chdir(folder), mock.patch("brittle.pictures.fetch.obtain", few_pictures):
        for stage in tracked(every.values(), "stages"):
            module = importlib.import_module(stage.module)
            params = Reads(load(getattr(module, module.main.__annotations__["params"])))
            digests = []
            with recorded() as (read, written):
                for _ in range(2 if twice else 1):
                    for cell in stage.cells(values):
                        module.main(params, *([] if cell is None else [cell]))
                    made = {path for path in written if not path.startswith(str(FOLDER))}
                    digests.append({path: hashlib.sha256(Path(path).read_bytes()).digest() for path in made})
            plt.close("all")
            changed = {path for path, digest in digests[0].items() if digests[-1][path] != digest}
            seen[stage.name] = Observed(params.keys, read, made, changed)
    return seen


@contextlib.contextmanager
def recorded() -> Iterator[tuple[set[str], set[str]]]:
    """Record the paths that store.py is asked to read and to write inside the block."""
    read: set[str] = set()
    written: set[str] = set()
    existing, replacing = store.existing, store.replacing

    def reading(path: store.PathLike) -> Path:
        read.add(os.fspath(path))
        return existing(path)

    def writing(path: store.PathLike) -> Any:
        written.add(os.fspath(path))
        return replacing(path)

    with mock.patch.object(store, "existing", reading), mock.patch.object(store, "replacing", writing):
        yield read, written


def write_tiny(file: Path) -> dict[str, Any]:
    """Write a params.yaml at the tiny scale and return its values by dotted name."""
    content = overlaid(overlaid(read(ROOT / "params.yaml"), read(ROOT / "presets/tiny.yaml")), HEADLINE)
    with file.open("w", encoding="utf-8") as stream:
        YAML(typ="safe", pure=True).dump(content, stream)
    return dict(leaves(content))


def write_plugins(folder: Path) -> list[str]:
    """Write the example plugins of docs/plugins.md to this folder and return their names."""
    text = (ROOT / "docs/plugins.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n# plugins/(\w+\.py)\n(.*?)```", text, re.DOTALL)
    folder.mkdir(exist_ok=True)
    for name, content in found:
        (folder / name).write_text(content, encoding="utf-8")
    return [name for name, _ in found]


def few_pictures(name: str, root: str) -> dict[str, np.ndarray]:
    """Random pictures in the shape of MNIST or CIFAR-10, with every label."""
    shape, draws = {"mnist": (28, 28), "cifar10": (32, 32, 3)}[name], np.random.default_rng(0)
    x = {f"{split}_x": draws.integers(0, 256, (100, *shape), dtype=np.uint8) for split in ("train", "test")}
    return x | {f"{split}_y": np.arange(100, dtype=np.uint8) % 10 for split in ("train", "test")}
