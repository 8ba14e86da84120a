"""docs/sharing.md by its own commands: a folder, S3 and SSH servers on loopback, and clones of a bare repository.

The commands and the messages are read from the page; only its example addresses and keys are replaced.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import asyncssh
import pytest
from filelock import FileLock

from conftest import ENV, ROOT, Repo

PAGE = (ROOT / "docs/sharing.md").read_text()
MODEL = "models/margin.safetensors"


def blocks(heading: str) -> list[str]:
    """The commands under a heading of the page, one string a block."""
    (section,) = re.findall(rf"^#+ {heading}\n(.*?)(?=^#+ |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return re.findall(r"^```\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


def is_told(case: str, out: str) -> bool:
    """Does this output have, in one line, what the page's last table says DVC prints in this case?"""
    (message,) = re.findall(rf"^\| {re.escape(case)} \| `(.*?)` \|", PAGE, re.MULTILINE)
    return re.search(".*".join(re.escape(part) for part in message.split("…")), out) is not None


@dataclass(frozen=True)
class Storage:
    """A storage, with what stands here in place of the page's examples."""

    name: str
    heading: str
    places: dict[str, str]
    folder: Path | None = None  # where its files are, if they are on this disk
    secret: str | None = None

    def write(self, text: str) -> str:
        for example, here in self.places.items():
            text = text.replace(example, here)
        return text

    @cached_property
    def set_up(self) -> str:
        return self.write(blocks(self.heading)[0])

    @cached_property
    def credentials(self) -> str:
        """The lines of the set-up that stay on one machine."""
        return "".join(line + "\n" for line in self.set_up.splitlines() if "--local" in line)


@dataclass(frozen=True)
class Shared:
    """A storage to which somebody has pushed, and the bare repository that names it."""

    storage: Storage
    mine: Repo
    origin: Path

    def clone(self, path: Path, credentials: bool = True) -> Repo:
        (clone, _make_env) = blocks("Pull")[0].splitlines()
        path.mkdir()
        shell(Repo(path), clone.replace("URL", str(self.origin)))
        repo = Repo(path / "brittle")
        if credentials:
            shell(repo, self.storage.credentials)
        return repo


def shell(repo: Repo, script: str, fails: bool = False) -> str:
    return repo.run("bash", "-euo", "pipefail", "-c", script, fails=fails)


@contextmanager
def server(*command: str | Path) -> Iterator[str]:
    """Run a server until the end of the block; the line that it prints when it is ready."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([str(part) for part in command], env=ENV, stdin=pipe, stdout=pipe, text=True)
    try:
        line = process.stdout.readline()  # an empty one if it has stopped
        assert line, f"{command} did not start"
        yield line
    finally:
        process.stdin.close()  # which is how it is told to stop, and how it stops if this process is killed
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module", autouse=True)
def nobodys_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A home without keys: the credentials of whoever runs the tests must not help."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in ENV if name.startswith("AWS_") or name == "SSH_AUTH_SOCK"]:
            patch.delitem(ENV, name)
        patch.setitem(ENV, "HOME", str(tmp_path_factory.mktemp("home")))
        patch.setitem(ENV, "AWS_EC2_METADATA_DISABLED", "true")  # on a cloud machine, the machine's own
        yield


def python_of_s3() -> Path:
    """The Python of an environment with moto, made when it is first wanted and kept until s3_server.txt changes."""
    folder, wanted = ROOT / ".venv.s3", (ROOT / "tests/s3_server.txt").read_text()
    python, installed = folder / "bin/python", folder / ".installed"
    with FileLock(ROOT / ".venv.s3.lock"):
        if installed.exists() and installed.read_text() == wanted:
            return python
        shutil.rmtree(folder, ignore_errors=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--retries", "2", "-r", ROOT / "tests/s3_server.txt"]
        try:
            for command in ([sys.executable, "-m", "venv", folder], pip):
                subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
            installed.write_text(wanted)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            lines = str(error.stderr or error).strip().splitlines()
            reason = f"the environment of the S3 server cannot be made: {lines[-1]}"
            (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
        finally:
            if not installed.exists():
                shutil.rmtree(folder, ignore_errors=True)
    return python


@pytest.fixture(scope="module")
def s3_server() -> Iterator[dict[str, str]]:
    with server(python_of_s3(), ROOT / "tests/s3_server.py") as line:
        yield json.loads(line)


@pytest.fixture(scope="module")
def s3(s3_server: dict[str, str]) -> Storage:
    places = {
        "s3://my-bucket/": "s3://private/",
        "https://s3.example.org": s3_server["url"],
        "MY-KEY": s3_server["key"],
        "MY-SECRET": s3_server["secret"],
    }
    return Storage("s3", "S3", places, secret=s3_server["secret"])


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    folder = tmp_path_factory.mktemp("ssh")
    (folder / "served").mkdir()
    for name in ("host", "mine", "another"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(folder / name)
        key.write_public_key(folder / f"{name}.pub")
        (folder / name).chmod(0o600)
    arguments = (folder / "served", folder / "host", folder / "mine.pub")
    with server(sys.executable, ROOT / "tests/ssh_server.py", *arguments) as port:
        places = {
            "server.example.org": f"127.0.0.1:{port.strip()}",
            "/srv/": "/",  # the server's root is the folder that it serves
            "~/.ssh/id_ed25519": str(folder / "mine"),
        }
        secret = (folder / "mine").read_text().splitlines()[3]  # a line of the key itself
        yield Storage("ssh", "SSH", places, folder / "served", secret)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Storage:
    path = tmp_path_factory.mktemp("storage") / "storage"
    return Storage("folder", "A folder", {"/path/to/shared/folder": str(path)}, path)


def push(storage: Storage, source: Repo, path: Path) -> Shared:
    """The page's commands, from naming the storage to `git push`."""
    mine, origin = source.copy(path / "mine"), path / "origin.git"
    mine.run("git", "init", "--quiet", "--bare", "--initial-branch", "main", str(origin))
    mine.run("git", "remote", "add", "origin", str(origin))
    shell(mine, storage.set_up)
    shell(mine, blocks("Push")[0])
    return Shared(storage, mine, origin)


@pytest.fixture(scope="module")
def in_folder(folder: Storage, small_reproduced: Repo, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return push(folder, small_reproduced, tmp_path_factory.mktemp("in-folder"))


@pytest.fixture(scope="module")
def in_s3(s3: Storage, small_reproduced: Repo, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return push(s3, small_reproduced, tmp_path_factory.mktemp("in-s3"))


@pytest.fixture(scope="module")
def in_ssh(ssh: Storage, small_reproduced: Repo, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return push(ssh, small_reproduced, tmp_path_factory.mktemp("in-ssh"))


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> Shared:
    return request.getfixturevalue(request.param)


everywhere = pytest.mark.parametrize("shared", ["in_folder", "in_s3", "in_ssh"], indirect=True)
where_there_are_keys = pytest.mark.parametrize("shared", ["in_s3", "in_ssh"], indirect=True)


def large(repo: Repo) -> dict[str, bytes]:
    """What Git ignores and DVC carries."""
    files = [path for room in ("data", "models") for path in sorted((repo.path / room).rglob("*"))]
    names = [str(path.relative_to(repo.path)) for path in files if path.is_file() and path.name != ".gitignore"]
    return {name: (repo.path / name).read_bytes() for name in names}


def copy_of(shared: Shared, path: Path) -> Shared:
    """The same with a folder of its own, to be damaged."""
    storage = path / "storage"
    shutil.copytree(shared.storage.folder, storage)
    mine = shared.mine.copy(path / "mine")
    mine.run("dvc", "remote", "modify", "storage", "url", str(storage))
    mine.run("git", "commit", "--quiet", "--all", "--message", "Another folder")
    return Shared(Storage("folder", "A folder", {}, storage), mine, mine.path)


@everywhere
def test_what_is_pushed_arrives_in_a_fresh_clone_and_nothing_is_run_again(shared: Shared, tmp_path: Path) -> None:
    clone = shared.clone(tmp_path / "elsewhere")
    assert large(clone) == {}
    out = shell(clone, blocks("Pull")[1])
    assert "Data and pipelines are up to date." in out
    assert "Running stage" not in out
    assert "in sync" in clone.run("dvc", "status", "--cloud")
    assert large(clone) == large(shared.mine)
    assert clone.run("git", "status", "--short") == ""

    (clone.path / "dvc.lock").unlink()  # without it only the records of runs tell what was run
    out = clone.run("dvc", "repro", "sweep_train")
    assert "Running stage" not in out
    assert out.count("is cached - skipping run, checking out outputs") == 3  # params and two cells


def test_a_run_that_nobody_committed_is_taken_from_the_storage(in_folder: Shared, tmp_path: Path) -> None:
    shared = copy_of(in_folder, tmp_path)
    shared.mine.set(sweep__width=30)
    ran = shared.mine.stages_run("dvc", "repro", "sweep_train")
    assert sorted(ran) == ["params", "sweep_train@16", "sweep_train@20"]
    (send, receive) = blocks("Runs that nobody committed")
    shell(shared.mine, send)
    clone = shared.clone(tmp_path / "elsewhere")
    clone.set(sweep__width=30)
    get, repro = receive.splitlines()
    shell(clone, get)
    assert clone.stages_run("bash", "-c", f"{repro} sweep_train") == []
    assert large(clone) == large(shared.mine)


@where_there_are_keys
def test_no_credential_is_in_git_or_in_what_was_pushed(shared: Shared) -> None:
    mine, secret = shared.mine, shared.storage.secret
    local = mine.path / ".dvc/config.local"
    assert local.exists()
    assert mine.run("git", "check-ignore", str(local)).strip() == str(local)
    lines = [line.split()[-1].strip("'") for line in shared.storage.credentials.splitlines()]
    assert all(value in local.read_text() for value in lines)  # what is searched for below is what was given

    command = ["git", "log", "--patch", "--all", "--text"]  # --text: of figures too, so these are bytes
    history = subprocess.run(command, cwd=shared.origin, env=ENV, capture_output=True, check=True).stdout
    assert b"endpointurl" in history or b"ssh://" in history  # that is, .dvc/config is there
    for value in [*lines, secret]:
        assert value.encode() not in history
        mine.run("git", "grep", "--quiet", "--fixed-strings", "--", value, fails=True)
    for path in (shared.storage.folder or Path("nowhere")).rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes()


@where_there_are_keys
def test_wrong_credentials_are_refused_in_one_line_and_nothing_is_lost(shared: Shared, tmp_path: Path) -> None:
    clone = shared.clone(tmp_path / "elsewhere")
    clone.run("dvc", "pull")
    before = large(clone)
    shutil.rmtree(clone.path / ".dvc/cache")

    if shared.storage.name == "s3":
        case = "a wrong key, pulling from S3"
        clone.run("dvc", "remote", "modify", "--local", "storage", "secret_access_key", "wrong")
    else:
        case = "no key or a wrong one for SSH"
        another = shared.storage.places["~/.ssh/id_ed25519"].replace("mine", "another")
        clone.run("dvc", "remote", "modify", "--local", "storage", "keyfile", another)
    for command in ("pull", "fetch"):
        out = clone.run("dvc", command, fails=True)
        assert is_told(case, out), out
        assert "Traceback" not in out
        assert large(clone) == before

    none = shared.clone(tmp_path / "another", credentials=False)
    out = none.run("dvc", "pull", fails=True)
    assert is_told("no key for S3" if shared.storage.name == "s3" else case, out), out


def test_pushing_to_s3_with_a_wrong_key_is_refused(in_s3: Shared, tmp_path: Path) -> None:
    mine = in_s3.mine.copy(tmp_path / "mine")
    mine.run("dvc", "remote", "modify", "--local", "storage", "access_key_id", "AKIAWRONG")
    assert is_told("a wrong key, pushing to S3", mine.run("dvc", "push", fails=True))


def test_an_experiment_travels_through_a_bare_repository(in_folder: Shared, tmp_path: Path) -> None:
    clone = in_folder.clone(tmp_path / "elsewhere")
    clone.run("dvc", "pull")
    mine = in_folder.mine.copy(tmp_path / "mine")
    send, receive = blocks("Experiments")
    shell(mine, send)
    assert "smaller" in shell(clone, receive)
    assert large(clone) == large(mine) != large(in_folder.mine)
    metrics = "metrics/margin.json"
    assert (clone.path / metrics).read_bytes() == (mine.path / metrics).read_bytes()
    assert json.loads((clone.path / metrics).read_text())["margin.m"] == 16
    assert "Data and pipelines are up to date." in clone.run("dvc", "status")


def add_a_file(repo: Repo) -> None:
    (repo.path / "new.txt").write_text("new\n")
    repo.run("dvc", "add", "--quiet", "new.txt")


def test_everybody_reads_a_public_bucket_and_only_who_has_a_key_writes(
    s3: Storage, small_reproduced: Repo, tmp_path: Path
) -> None:
    public = Storage("public", "S3", s3.places | {"s3://my-bucket/": "s3://public/"}, secret=s3.secret)
    shared = push(public, small_reproduced, tmp_path)
    readers, writers = blocks("Public and private")[:2]
    shell(shared.mine, readers)
    shared.mine.run("git", "commit", "--quiet", "--all", "--message", "Everybody may read")
    shared.mine.run("git", "push", "--quiet", "origin", "HEAD")

    reader = shared.clone(tmp_path / "elsewhere", credentials=False)
    reader.run("dvc", "pull")
    assert large(reader) == large(shared.mine)
    add_a_file(reader)
    case = "no key, pushing to a public bucket"
    assert is_told(case, reader.run("dvc", "push", fails=True))
    shell(reader, public.credentials)
    assert is_told(case, reader.run("dvc", "push", fails=True))  # with a key too, until one says not to be anonymous
    shell(reader, writers)
    assert "1 file pushed" in reader.run("dvc", "push")


def test_a_web_server_makes_a_folder_public_to_read(in_folder: Shared, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    quiet = subprocess.DEVNULL
    web = subprocess.Popen(command, cwd=in_folder.storage.folder, stdout=quiet, stderr=quiet)
    try:
        for _ in range(200):
            with socket.socket() as caller:
                if caller.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        reader = in_folder.clone(tmp_path / "elsewhere")
        url = f"http://127.0.0.1:{port}"
        shell(reader, blocks("Public and private")[2].replace("https://www.example.org/brittle", url))
        assert large(reader) == large(in_folder.mine)
        add_a_file(reader)
        out = reader.run("dvc", "push", "--remote", "public", fails=True)
        assert is_told("pushing to HTTP", out), out
    finally:
        web.terminate()
        web.wait()


def where_it_is(repo: Repo) -> Path:
    (command,) = blocks("When something goes wrong")
    assert MODEL in command
    return Path(shell(repo, command).strip())


@pytest.mark.parametrize("damage", ["truncated", "altered"])
def test_a_damaged_file_is_noticed_and_repaired(damage: str, in_folder: Shared, tmp_path: Path) -> None:
    shared = copy_of(in_folder, tmp_path)
    stored = where_it_is(shared.mine)
    good = stored.read_bytes()
    assert good == (shared.mine.path / MODEL).read_bytes()
    stored.chmod(0o644)
    stored.write_bytes(good[:1000] if damage == "truncated" else good[:-1] + bytes([good[-1] ^ 1]))
    stored.chmod(0o444)  # as DVC leaves it: one that can be written to it would suspect

    clone = shared.clone(tmp_path / "elsewhere")
    out = clone.run("dvc", "pull", fails=True)
    assert is_told("a file in the storage is damaged (`verify true`)", out), out
    assert MODEL in out
    assert not (clone.path / MODEL).exists()
    assert set(large(clone)) == set(large(shared.mine)) - {MODEL}  # the others are there

    assert "up to date" in shared.mine.run("dvc", "push")
    assert stored.read_bytes() != good
    where_it_is(clone).unlink()
    shared.mine.run("dvc", "push")
    clone.run("dvc", "pull")
    assert (clone.path / MODEL).read_bytes() == good


def test_without_verify_dvc_believes_the_storage(in_folder: Shared, tmp_path: Path) -> None:
    # What the page warns of. If DVC should change its mind one day, the warning can go.
    shared = copy_of(in_folder, tmp_path)
    stored = where_it_is(shared.mine)
    stored.chmod(0o644)
    stored.write_bytes(stored.read_bytes()[:1000])
    stored.chmod(0o444)
    clone = shared.clone(tmp_path / "elsewhere")
    clone.run("dvc", "remote", "modify", "storage", "--unset", "verify")
    clone.run("dvc", "pull")
    assert "up to date" in clone.run("dvc", "status")
    assert (clone.path / MODEL).stat().st_size == 1000


def test_a_missing_file_is_named(in_folder: Shared, tmp_path: Path) -> None:
    shared = copy_of(in_folder, tmp_path)
    where_it_is(shared.mine).unlink()
    clone = shared.clone(tmp_path / "elsewhere")
    out = clone.run("dvc", "pull", fails=True)
    assert is_told("a file is not in the storage", out), out
    assert MODEL in out
    shared.mine.run("dvc", "push")
    clone.run("dvc", "pull")
    assert large(clone) == large(shared.mine)
