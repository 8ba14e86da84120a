"""The whole pipeline at a scale of seconds: presets/tiny.yaml laid over a copy of this repository."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from brittle.core.params import read
from brittle.params import changes, leaves
from brittle.tools.graph import ROOT, files
from brittle.tools.observe import few_pictures, write_plugins

# By dotted names: everything but the headline experiment, for tests of how stages fit together, not of numbers.
TINY: dict[str, Any] = changes(ROOT / "presets/tiny.yaml", ROOT / "params.yaml")
VALUES = dict(leaves(read(ROOT / "params.yaml")))  # every parameter
SMALL = VALUES | TINY
CELLS = ("sweep", "widths", "slabs", "mnist_cifar", "cross", "cross_worlds")  # the committed tables are of another grid

__all__ = ["CELLS", "SMALL", "TINY", "VALUES", "few_pictures", "make_tiny", "set_params", "write_plugins"]


def set_params(file: Path, values: dict[str, Any]) -> None:
    """Change values of a parameter file by their dotted names; comments stay."""
    yaml = YAML()
    yaml.width = 4096
    content = yaml.load(file)
    for key, value in values.items():
        *path, last = key.split(".")
        section = content
        for part in path:
            section = section[part]
        assert last in section, key
        section[last] = value
    yaml.dump(content, file)


def make_tiny(folder: Path) -> None:
    """All parts of a copy of this repository but the headline experiment at a scale of seconds, nothing run."""
    set_params(folder / "params.yaml", TINY | {"cifar10.nets": ["alexnet"]})
    for file in files(folder):
        file.with_name("dvc.lock").unlink(missing_ok=True)
    for name in CELLS:
        shutil.rmtree(folder / "plots" / name, ignore_errors=True)


if __name__ == "__main__":
    make_tiny(Path(sys.argv[1]))
