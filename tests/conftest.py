"""A copy of this repository, as it is now (committed or not), in which tests run the real commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENV = os.environ | {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "GIT_AUTHOR_NAME": "test",
    "GIT_AUTHOR_EMAIL": "test@example.org",
    "GIT_COMMITTER_NAME": "test",
    "GIT_COMMITTER_EMAIL": "test@example.org",
    "DVC_NO_ANALYTICS": "1",
}
ENV.pop("PYTHONPATH", None)


class Repo:
    """A working copy and the commands that are run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *command: str, fails: bool = False, timeout: float = 300) -> str:
        done = subprocess.run(command, cwd=self.path, env=ENV, capture_output=True, text=True, timeout=timeout)
        out = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"{' '.join(command)} exited with {done.returncode}:\n{out}"
        return out

    def stages_run(self, *command: str, **options: float) -> list[str]:
        """Run a command; the names of the stages that it ran."""
        out = self.run(*command, **options)
        return [line.split("'")[1] for line in out.splitlines() if line.startswith("Running stage")]

    def commit(self, message: str) -> None:
        self.run("git", "add", "--all")
        self.run("git", "commit", "--quiet", "--message", message)

    def set(self, key: str, value: str) -> None:
        """Change the line of params.yaml that holds `key`."""
        file = self.path / "params.yaml"
        lines = file.read_text().splitlines(keepends=True)
        (at,) = [i for i, line in enumerate(lines) if line.lstrip().startswith(f"{key}:")]
        indent = len(lines[at]) - len(lines[at].lstrip())
        lines[at] = f"{' ' * indent}{key}: {value}\n"
        file.write_text("".join(lines))

    def copy(self, path: Path) -> Repo:
        shutil.copytree(self.path, path, symlinks=True)
        return Repo(path)


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """This repository in its first commit, nothing run."""
    path = tmp_path_factory.mktemp("fresh") / "brittle"
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name)
    repo = Repo(path)
    repo.run("git", "init", "--quiet", "--initial-branch", "main")
    repo.commit("the repository")
    return repo


@pytest.fixture(scope="session")
def reproduced(fresh: Repo, tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The same after `dvc repro`, at the scale of params.yaml."""
    repo = fresh.copy(tmp_path_factory.mktemp("reproduced") / "brittle")
    repo.run("dvc", "repro")
    repo.run("git", "commit", "--all", "--allow-empty", "--quiet", "--message", "dvc repro")
    return repo


@pytest.fixture
def repo(reproduced: Repo, tmp_path: Path) -> Repo:
    """A reproduced copy for one test to change."""
    return reproduced.copy(tmp_path / "brittle")
