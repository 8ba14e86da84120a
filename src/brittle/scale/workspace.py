"""The working copy, in which no one but DVC writes, and one command at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from brittle import store


class Command:
    """A command under way in the working copy, out of reach of Ctrl-C: DVC does not write dvc.lock in one piece."""

    def __init__(self, root: Path, words: Sequence[str]) -> None:
        # To a file: a pipe that no one reads would fill up.
        self.said = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            words, cwd=root, stdout=self.said, stderr=subprocess.STDOUT, start_new_session=True
        )

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait(self) -> tuple[int, str]:
        """The exit code, and all it said."""
        code = self.process.wait()
        self.said.seek(0)
        return code, self.said.read().decode(errors="replace")


class Workspace:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".dvc/tmp/scale"  # which neither Git nor DVC looks into

    def dvc(self, *words: str) -> Command:
        return Command(self.root, ["dvc", *words])

    def bring(self, entries: dict[str, Any], pull: bool) -> Command:
        """What workers have run, from the cache; each with its entry of dvc.lock."""
        file = self.folder / "home.json"
        store.save_bytes(file, json.dumps(entries).encode())
        return Command(
            self.root, [sys.executable, "-m", "brittle.scale.home", *(["--pull"] if pull else []), str(file)]
        )

    # By its token a worker knows the workspace when it sees it.

    @property
    def token(self) -> Path:
        return self.folder / "token"

    # How long each stage took when it last ran on a worker

    def times(self) -> dict[str, float]:
        with suppress(OSError, ValueError):
            return json.loads((self.folder / "times.json").read_text(encoding="utf-8"))
        return {}

    def keep_times(self, times: dict[str, float]) -> None:
        store.save_metrics(self.folder / "times.json", times)

    def keep_log(self, stage: str, log: str) -> Path:
        store.save_bytes(self.folder / f"{stage}.log", log.encode())
        return (self.folder / f"{stage}.log").relative_to(self.root)
