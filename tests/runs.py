"""Runs of `python -m brittle.scale` in a copy of the repository, and what they leave there."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil

from conftest import ENV, MODULES, Repo

SCALE = [sys.executable, "-m", "brittle.scale"]


def results(repo: Repo) -> dict[str, bytes]:
    """The lock files and everything that stages make."""
    files = [path for room in ("data", "models", "metrics", "plots") for path in (repo.path / room).rglob("*")]
    made = [path for path in files if path.is_file() and path.name != ".gitignore"]
    locks = [repo.path / "dvc.lock", *repo.path.glob("pipelines/*/dvc.lock")]
    return {str(path.relative_to(repo.path)): path.read_bytes() for path in (*locks, *made)}


def part(made: dict[str, bytes], word: str) -> dict[str, bytes]:
    return {path: content for path, content in made.items() if word in path}


def scale(repo: Repo, *options: str, code: int = 0, timeout: float = 600, **environment: str) -> str:
    done = subprocess.run(
        [*SCALE, *options], cwd=repo.path, env=ENV | environment, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def until(condition: Callable[[], object], what: str, seconds: float = 120) -> object:
    deadline = time.monotonic() + seconds
    while True:
        with suppress(FileNotFoundError):  # a folder may go while it is being searched
            if found := condition():
                return found
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def stages_of(process: psutil.Process, name: str) -> list[psutil.Process]:
    """Processes of that stage below this one."""
    found = []
    for child in process.children(recursive=True):
        try:
            own = MODULES[name] in child.cmdline() and "python" in child.cmdline()[0]
            if own or child.name() == MODULES[name][-15:]:  # the name of what a preloaded process has forked
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


@contextmanager
def begun(repo: Repo, *options: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """`brittle.scale` under way."""
    with subprocess.Popen(
        [*SCALE, *options],
        cwd=repo.path,
        env=ENV | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
