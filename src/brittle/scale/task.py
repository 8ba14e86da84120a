"""What travels to a worker: a stage with everything it needs, and files packed into an archive."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Task:
    """A stage, and everything that a folder must contain so that DVC can run it there."""

    stage: str
    packed: bytes = field(repr=False)  # the files in Git that it depends on
    pipeline: str = field(repr=False)  # a dvc.yaml with this stage and those that feed it
    entries: dict[str, Any] = field(repr=False)  # their entries in dvc.lock
    kept: bool  # whether the results of its own entry are in the workspace's cache
    cached: tuple[str, ...]  # dependencies that come from the cache
    uncached: tuple[str, ...]  # outputs that are not cached: metrics and tables


def pack(root: Path, files: Iterable[Path]) -> bytes:
    """An archive of the files, by their names relative to root."""
    return zipped({str(path.relative_to(root)): path.read_bytes() for path in files})


def unpack(packed: bytes) -> dict[str, bytes]:
    archive = zipfile.ZipFile(io.BytesIO(packed))
    return {name: archive.read(name) for name in archive.namelist()}


def zipped(files: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(name, content)
    return buffer.getvalue()
