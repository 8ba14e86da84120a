"""Write a params.yaml with some values changed, for benchmarks that run stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML


def write(source: Path, file: Path, changes: dict[str, Any]) -> None:
    """Write `source` to `file` with these changes, given by dotted names."""
    yaml = YAML()
    yaml.width = 4096
    content = yaml.load(source)
    for key, value in changes.items():
        *path, last = key.split(".")
        section = content
        for part in path:
            section = section[part]
        if last not in section:
            raise KeyError(f"{source}: there is no {key}")
        section[last] = value
    yaml.dump(content, file)
