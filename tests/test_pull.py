"""A storage cannot write where it should not: `make pull` against real folder remotes that hold hostile lists."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from brittle.tools import verify
from conftest import ENV, Repo

PULL = (sys.executable, "-m", "brittle.tools.pull")
STAGE = "stages:\n  make:\n    cmd: mkdir -p made && echo 1 > made/a.txt && echo 2 > made/b.txt\n    outs: [made]\n"


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a folder for an output, beside the storage that it is pushed to; nothing of it is in the cache."""
    root = tmp_path_factory.mktemp("pushed")
    repo = Repo(root / "project")
    repo.path.mkdir()
    repo.run("git", "init", "--quiet")
    repo.run("dvc", "init", "--quiet")
    (repo.path / "dvc.yaml").write_text(STAGE)
    repo.run("dvc", "remote", "add", "--default", "storage", "../storage")
    repo.run("dvc", "repro", "--quiet")
    repo.run("dvc", "push", "--quiet")
    repo.commit("made")
    shutil.rmtree(repo.path / "made")
    shutil.rmtree(repo.path / ".dvc/cache")
    return root


@pytest.fixture
def repo(pushed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    monkeypatch.setitem(ENV, "DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    shutil.copytree(pushed, tmp_path / "copy")
    return Repo(tmp_path / "copy/project")


def plant(storage: Path, content: bytes, suffix: str = "", name: str = "") -> str:
    """Put an object into the storage, under its hash or another name; its md5."""
    md5 = name or hashlib.md5(content, usedforsecurity=False).hexdigest()
    path = storage / "files/md5" / md5[:2] / (md5[2:] + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.chmod(0o644)
    path.write_bytes(content)
    return md5


def locked(repo: Repo) -> str:
    """The hash of the folder's list, as dvc.lock has it."""
    return YAML(typ="safe").load(repo.path / "dvc.lock")["stages"]["make"]["outs"][0]["md5"].removesuffix(".dir")


def hostile(storage: Path, names: list[str]) -> bytes:
    """A list of a folder with files of these names, which the storage also has."""
    md5 = plant(storage, b"import evil\n")
    return json.dumps([{"md5": md5, "relpath": name} for name in names]).encode()


def lock(repo: Repo, listing: bytes) -> None:
    """Change dvc.lock to match a list that is planted, as a commit by the same hand would."""
    md5 = plant(repo.path.parent / "storage", listing, ".dir")
    file = repo.path / "dvc.lock"
    file.write_text(file.read_text().replace(locked(repo), md5))


def test_what_is_in_order_is_pulled_and_verified(repo: Repo) -> None:
    out = repo.run(*PULL)
    assert "data, models and the cache are what dvc.lock says" in out
    assert (repo.path / "made/b.txt").read_text() == "2\n"
    assert "up to date" in repo.run("dvc", "status")


def test_dvc_itself_writes_outside_of_the_folder(repo: Repo) -> None:
    """Why `make pull` is there. If DVC should refuse such lists one day, it need not be."""
    lock(repo, hostile(repo.path.parent / "storage", ["../../evil.py"]))
    repo.run("dvc", "pull")
    assert (repo.path.parent / "evil.py").exists()


@pytest.mark.parametrize("name", ["deeper/../../../evil.py", "/ABSOLUTE/evil.py"])
def test_a_list_that_names_files_outside_of_its_folder_is_refused(name: str, repo: Repo) -> None:
    root = repo.path.parent
    name = name.replace("/ABSOLUTE", str(root))
    lock(repo, hostile(root / "storage", ["a.txt", name]))
    out = repo.run(*PULL, fails=True)
    assert f"lists {name}, outside of its folder: the storage is not to be trusted" in out
    assert out.splitlines()[-1] == "nothing was checked out"
    repo.run("dvc", "checkout", fails=True)  # nor does it come later: DVC has not seen the list
    assert not (repo.path / "made").exists()
    assert list(root.rglob("evil.py")) == []


def test_a_list_that_the_storage_has_exchanged_is_refused_though_dvc_believes_it(repo: Repo) -> None:
    storage = repo.path.parent / "storage"
    plant(storage, hostile(storage, ["a.txt", "b.txt"]), ".dir", locked(repo))
    out = repo.run(*PULL, fails=True)
    assert "is not the list of made" in out
    assert not (repo.path / "made").exists()


@pytest.mark.parametrize("listing", [b"{}", b'[{"relpath": "../x"}, 1]', b'[{"md5": "0"}]', b"\x80\x04", b"[[]]", b"7"])
def test_what_is_no_list_may_not_be_used(listing: bytes) -> None:
    assert "is not a list of files" in verify.hostile(listing)


def test_a_storage_that_lacks_a_file_leaves_the_workspace_as_it_was(repo: Repo) -> None:
    shutil.rmtree(repo.path.parent / "storage/files/md5" / locked(repo)[:2])
    assert "is not in the storage" in repo.run(*PULL, fails=True)
    assert not (repo.path / "made").exists()
