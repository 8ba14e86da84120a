"""One side of a comparison: the files of a branch, a tag, a commit or an experiment, or those of the workspace.

A revision is read from Git's own storage: nothing is checked out, and no file of the workspace is touched.
"""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from brittle.core.errors import BadInput

WORKSPACE = "workspace"
FOLDERS = ("metrics", "plots")
PARAMS = "params.yaml"


@dataclass(frozen=True)
class Side:
    name: str
    commit: str  # empty for the workspace
    blobs: dict[str, str]  # what is compared: Git's name of its content, by path

    @property
    def title(self) -> str:
        return f"{self.name} ({self.commit[:7]})" if self.commit else self.name

    def read(self, path: str) -> bytes | None:
        """The content of a file; None if this side does not have it."""
        if path not in self.blobs:
            return None
        return _git("cat-file", "blob", self.blobs[path]) if self.commit else Path(path).read_bytes()

    def text(self, path: str) -> str | None:
        content = self.read(path)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError:
            raise BadInput(f"{path} of {self.title}: is not text") from None


def side(name: str) -> Side:
    """The side that a user names; BadInput if there is nothing of that name."""
    if name == WORKSPACE:
        return Side(name, "", _workspace())
    commit = _commit(name)
    listed = _git("ls-tree", "-r", "-z", commit, "--", PARAMS, *FOLDERS).decode(errors="replace").split("\0")
    entries = [line.split("\t", 1) for line in listed if line]
    return Side(name, commit, {path: about.split()[2] for about, path in entries if about.split()[1] == "blob"})


def _commit(name: str) -> str:
    if name.startswith("-"):
        raise _unknown(name)
    found = _tried("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if found:
        return found
    refs = (_tried("for-each-ref", "--format=%(objectname) %(refname)", "refs/exps") or "").splitlines()
    named = {ref.split()[0] for ref in refs if ref.rpartition("/")[2] == name}
    if len(named) > 1:
        raise BadInput(
            f"{name}: is the name of {len(named)} experiments; give the commit of one: `dvc exp list --sha-only`"
        )
    if not named:
        raise _unknown(name)
    return named.pop()


def _unknown(name: str) -> BadInput:
    return BadInput(
        f"{name}: is not known to Git here; must be a branch, a tag, a commit, an experiment, or {WORKSPACE}"
    )


def _workspace() -> dict[str, str]:
    paths = [Path(PARAMS), *(path for folder in FOLDERS for path in sorted(Path(folder).rglob("*")))]
    return {path.as_posix(): _blob(path.read_bytes()) for path in paths if path.is_file() and path.name[0] != "."}


def _blob(content: bytes) -> str:
    """The name that Git gives this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _tried(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], capture_output=True)
    if done.returncode:
        raise BadInput(f"git {words[0]}: {done.stderr.decode(errors='replace').strip().splitlines()[-1]}")
    return done.stdout
