"""The working copy, in which only DVC writes, one command at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from brittle.core import store


class Command:
    """A command running in the working copy, protected from Ctrl-C because DVC does not write dvc.lock atomically."""

    def __init__(self, root: Path, words: Sequence[str]) -> None:
        # Output goes to a file, because a pipe that nobody reads would fill up.
        self.said = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            words, cwd=root, stdout=self.said, stderr=subprocess.STDOUT, start_new_session=True
        )

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and all the command printed."""
        code = self.process.wait()
        self.said.seek(0)
        return code, self.said.read().decode(errors="replace")


class Workspace:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".dvc/tmp/scale"  # ignored by both Git and DVC

    def dvc(self, *words: str) -> Command:
        return Command(self.root, ["dvc", *words])

    def restore(self, entries: dict[str, Any], pull: bool) -> Command:
        """Restore stages that workers have run from the cache, given their entries of dvc.lock."""
        file = self.folder / "restore.json"
        store.save_bytes(file, json.dumps(entries).encode())
        return Command(
            self.root, [sys.executable, "-m", "brittle.scale.restore", *(["--pull"] if pull else []), str(file)]
        )

    # A worker recognises the workspace by this token.

    @property
    def token(self) -> Path:
        return self.folder / "token"

    # All that a stage printed

    def log(self, stage: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{stage}.log"

    def keep_log(self, stage: str, log: str) -> Path:
        store.save_bytes(self.log(stage), log.encode())
        return self.log(stage).relative_to(self.root)
