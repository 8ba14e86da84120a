"""Nothing is lost: not by a kill, not on a full or a read-only disk, not by a bit that flips in the cache."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from brittle.tools.verify import _cached, _half_written
from conftest import ENV, MODULES, Repo

KILLS = 20
# Two stages that need no torch: one writes tensors to the cache, the other tables to Git. A run takes two seconds.
CHAIN = ["margin_data", "sweep_collect"]
CELL = "d,m,width,seed,c,sqrt_d,on_margin,off_margin\n{d},9,50,0,2.5,4,1,0\n"
WRITTEN = ["data/margin.safetensors", "plots/sweep.csv", "plots/widths.csv"]
# What a user does after a kill at the worst moment, by the file that DVC then complains of; `make verify` says so too.
REMEDIES = {
    "dvc.lock": ["git", "checkout", "--quiet", "dvc.lock"],
    ".dvc/tmp/rwlock": ["rm", ".dvc/tmp/rwlock"],
    ".git/index.lock": ["rm", ".git/index.lock"],
}


def artefacts(repo: Repo) -> dict[str, bytes]:
    """All that a run leaves to its user, temporary files included."""
    files = [path for room in ("data", "models", "metrics", "plots") for path in (repo.path / room).rglob("*")]
    files += [repo.path / "dvc.lock"]
    return {str(path.relative_to(repo.path)): path.read_bytes() for path in files if path.is_file()}


@pytest.fixture(scope="module")
def before(small: Repo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    """The two stages, done for other parameters than params.yaml now has: all is there, and all is to be made anew."""
    with pytest.MonkeyPatch.context() as patch:
        # Beside the tests' other files: what DVC remembers of these folders is of no use to anyone.
        patch.setitem(ENV, "DVC_SITE_CACHE_DIR", str(tmp_path_factory.mktemp("site")))
        repo = small.copy(tmp_path_factory.mktemp("before") / "brittle")
        for folder in ("docs", "benchmarks", "tests"):  # twenty copies are made
            shutil.rmtree(repo.path / folder)
        pipeline = YAML().load(repo.path / "dvc.yaml")
        pipeline["stages"] = {name: pipeline["stages"][name] for name in CHAIN}
        YAML().dump(pipeline, repo.path / "dvc.yaml")
        for name, columns in {"sweep/16": "alpha,", "sweep/20": "alpha,", "widths/40": ""}.items():
            path = repo.path / f"plots/{name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            head, row = CELL.format(d=path.stem).splitlines()
            path.write_text(f"{columns}{head}\n{'0.5,' if columns else ''}{row}\n")
        (repo.path / "data/params.checked").write_text("checked\n")
        repo.set(d=12, sweep__ds=[16])
        repo.run("dvc", "repro")
        repo.commit("other parameters")
        repo.set(d=20, sweep__ds=[16, 20])
        yield repo


@dataclass(frozen=True)
class Whole:
    """A run that nothing disturbed."""

    artefacts: dict[str, bytes]
    seconds: float


@pytest.fixture(scope="module")
def whole(before: Repo, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    repo = before.copy(tmp_path_factory.mktemp("whole") / "brittle")
    began = time.monotonic()
    assert repo.stages_run("dvc", "repro") == CHAIN
    seconds = time.monotonic() - began
    made = artefacts(repo)
    assert all(made[name] != artefacts(before)[name] for name in ("dvc.lock", *WRITTEN[:2]))
    return Whole(made, seconds)


def finish(repo: Repo) -> bool:
    """Run it again, as a user does: if DVC names a file that it cannot read, after the remedy for that file.

    Was that needed?
    """
    done = subprocess.run(["dvc", "repro"], cwd=repo.path, env=ENV, capture_output=True, text=True, timeout=120)
    if done.returncode:
        named = [file for file in REMEDIES if file in done.stderr]
        assert len(named) == 1, done.stdout + done.stderr
        repo.run(*REMEDIES[named[0]])
        repo.run("dvc", "repro")
    return bool(done.returncode)


def test_a_run_killed_at_any_moment_is_finished_by_the_next_with_the_same_result(
    before: Repo, whole: Whole, tmp_path: Path
) -> None:
    draws = random.Random(0)
    alive = remedied = 0
    length = whole.seconds
    for kill in range(KILLS):
        repo = before.copy(tmp_path / str(kill))
        began = time.monotonic()
        run = subprocess.Popen(
            ["dvc", "repro"],
            cwd=repo.path,
            env=ENV,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        # One moment in each twentieth of a run. What the machine runs beside this moves them about, which is welcome.
        moment = (kill + draws.random()) / KILLS * length
        time.sleep(max(0.0, began + moment - time.monotonic()))
        if run.poll() is None:
            alive += 1
        else:  # others slowed the first run down: runs are shorter than it told
            length = min(length, moment)
        if kill % 4 == 3:
            run.kill()  # DVC alone, as when a user kills it by its number: its stage goes on, beside the next run
        else:
            with suppress(ProcessLookupError):  # a run that was quicker than the first
                os.killpg(run.pid, signal.SIGKILL)  # all at once, as when the machine goes down
        run.wait()

        remedied += finish(repo)
        # A file that was being written stays, beside the artefact, as what it is: neither Git nor DVC looks at it.
        for path in [path for room in ("data", "plots") for path in (repo.path / room).rglob(".*.tmp")]:
            path.unlink()
        assert artefacts(repo) == whole.artefacts, f"killed after {moment:.2f} s of {length:.2f}"
        assert list(_cached(repo.path / ".dvc/cache/files/md5")) == []
        shutil.rmtree(repo.path)
    assert alive > KILLS / 2, "the moments were not within a run"
    assert remedied < KILLS / 4, "DVC's own files are written in milliseconds"
    print(f"{alive} of {KILLS} kills fell into a run; after {remedied} of them a file of DVC's had to be removed")


@pytest.mark.parametrize(
    ("file", "kept"),
    [("dvc.lock", 0.0), ("dvc.lock", 0.04), (".dvc/tmp/rwlock", 0.0), (".git/index.lock", 0.0)],
)
def test_a_file_that_dvc_left_half_written_is_named_and_its_remedy_leads_to_the_same_result(
    before: Repo, whole: Whole, tmp_path: Path, file: str, kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill rarely falls into the milliseconds in which DVC writes one of its files in place. Here it does."""
    repo = before.copy(tmp_path / "brittle")
    path = repo.path / file
    content = path.read_bytes() if path.exists() else b""
    path.write_bytes(content[: int(kept * len(content))])
    monkeypatch.chdir(repo.path)
    assert [line.split(":")[0] for line in _half_written()] == [file]
    finish(repo)
    assert artefacts(repo) == whole.artefacts


# A full disk and a read-only folder


class Disk:
    """A small disk of its own, seen only by the commands that are run on it; gone with the process that holds it."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        if not shutil.which("unshare") or not shutil.which("nsenter"):
            pytest.skip("there is no unshare or no nsenter, to mount a small disk with")
        mount = f'mount -t tmpfs -o size={megabytes}m none "$0" && echo mounted && read -r _'
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", mount, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.holder.stdout
        if self.holder.stdout.readline() != "mounted\n":
            _, reason = self.holder.communicate()
            pytest.skip(f"a small disk cannot be mounted here: {reason.strip()}")
        self.there = folder
        self.path = Path(f"/proc/{self.holder.pid}/root{folder}")  # as it is seen from outside

    def run(self, *command: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", f"--target={self.holder.pid}", "--user", "--mount", "--preserve-credentials"]
        here = ["sh", "-c", 'cd "$0" && exec "$@"', str(self.there)]  # --wd would be the folder beneath the disk
        return subprocess.run([*enter, *here, *command], env=env or ENV, capture_output=True, text=True, timeout=120)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Not a byte is left."""
        filler = self.path / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"\0" * size)
        yield
        filler.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        assert self.run("mount", "-o", "remount,ro", str(self.there)).returncode == 0
        yield
        assert self.run("mount", "-o", "remount,rw", str(self.there)).returncode == 0

    def close(self) -> None:
        self.holder.communicate()  # it waits for a line that does not come


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    (tmp_path / "disk").mkdir()
    disk = Disk(tmp_path / "disk", 40)
    yield disk
    disk.close()


@pytest.fixture(scope="module")
def pieces(before: Repo, tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The chain of the headline experiment, run by hand, with room in every stage for a second run."""
    repo = before.copy(tmp_path_factory.mktemp("pieces") / "brittle")
    repo.set(figures__dpi=50)
    for stage in ("margin_data", "margin_train", "margin_attack", "margin_figures", "sweep_collect"):
        repo.run("python", "-m", MODULES[stage])
    return repo


# The stage, the file that it cannot write, and what it does in another way than usual: as a checkpoint that is due at
# once, which is otherwise written every half a minute.
WRITES = {
    "tensors": ("margin_data", "data/margin.safetensors", ""),
    "a table": ("sweep_collect", "plots/sweep.csv", ""),
    "a figure": ("margin_figures", "plots/margin_flipped.svg", ""),
    "a checkpoint": (
        "margin_train",
        ".checkpoints/margin_train-*.safetensors",
        "import brittle.core.progress as p; p.SECONDS = 0.0; ",
    ),
}


def test_on_a_full_disk_or_a_read_only_one_a_stage_says_so_in_one_line_and_leaves_all_as_it_was(
    pieces: Repo, disk: Disk
) -> None:
    for name in ("params.yaml", "dvc.lock", "data", "models", "metrics", "plots", "src"):
        source = pieces.path / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, disk.path / name)
    on_disk = Repo(disk.path)
    (disk.path / ".checkpoints").mkdir()
    kept = artefacts(on_disk)
    for trouble, reason in ((disk.full, "No space left on device"), (disk.read_only, "Read-only file system")):
        for what, (stage, file, first) in WRITES.items():
            code = f"{first}import runpy; runpy.run_module('{MODULES[stage]}', run_name='__main__')"
            with trouble():
                done = disk.run("python", "-c", code, env=ENV | {"PYTHONPATH": "src", "PYTHONDONTWRITEBYTECODE": "1"})
            assert (done.returncode, done.stdout) == (2, ""), (what, done.stderr)
            (line,) = done.stderr.splitlines()
            assert Path(line.split(":")[0]).match(file), what
            assert line.endswith(f": cannot be written: {reason}")
            assert artefacts(on_disk) == kept
            assert [path.name for path in disk.path.glob("**/.*.tmp")] == []
            assert list((disk.path / ".checkpoints").iterdir()) == []


def test_on_a_full_disk_a_run_stops_with_a_clear_line_and_goes_on_when_there_is_room(
    before: Repo, whole: Whole, disk: Disk
) -> None:
    shutil.copytree(before.path, disk.path / "brittle", symlinks=True)
    on_disk, kept = Repo(disk.path / "brittle"), artefacts(before)
    repro = ["sh", "-c", "cd brittle && exec dvc repro"]
    with disk.full():
        done = disk.run(*repro)
    out = done.stdout + done.stderr
    assert done.returncode != 0
    assert out.count("No space left on device") == 1
    assert "Traceback" not in out
    # DVC removes a stage's outputs before it runs the stage. What was there is in Git and in the cache, unharmed.
    left = artefacts(on_disk)
    assert left["dvc.lock"] == kept["dvc.lock"]
    assert all(left[name] in (kept[name], whole.artefacts[name]) for name in left)
    cache = ".dvc/cache/files/md5"
    assert list(_cached(on_disk.path / cache)) == []
    for path in (before.path / cache).glob("??/*"):
        assert (on_disk.path / path.relative_to(before.path)).read_bytes() == path.read_bytes()
    assert disk.run(*repro).returncode == 0
    assert artefacts(on_disk) == whole.artefacts


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere; the test above mounts a read-only disk")
def test_a_folder_without_permission_to_write_gives_one_line(pieces: Repo, tmp_path: Path) -> None:
    repo = pieces.copy(tmp_path / "brittle")
    kept = artefacts(repo)
    (repo.path / "data").chmod(0o555)
    out = repo.run("python", "-m", "brittle.margin.data", fails=True)
    (repo.path / "data").chmod(0o755)
    assert out == "data/margin.safetensors: cannot be written: Permission denied\n"
    assert artefacts(repo) == kept


# A bit that flips


def flip(path: Path) -> None:
    """One bit in the middle, and the file otherwise as DVC left it."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)
    path.chmod(0o444)


def test_a_corrupted_file_of_the_cache_is_noticed_and_made_anew(before: Repo, tmp_path: Path) -> None:
    repo = before.copy(tmp_path / "brittle")
    verify = ("python", "-m", "brittle.tools.verify")
    repo.run("git", "checkout", "--quiet", "params.yaml")
    assert repo.run(*verify) == "data, models and the cache are what dvc.lock says\n"
    kept, output = artefacts(repo), "data/margin.safetensors"
    outs = YAML(typ="safe").load(repo.path / "dvc.lock")["stages"]["margin_data"]["outs"]
    cached = f".dvc/cache/files/md5/{outs[0]['md5'][:2]}/{outs[0]['md5'][2:]}"
    flip(repo.path / cached)
    (repo.path / output).unlink()
    repo.run("dvc", "checkout")  # which brings the wrong one, and takes it for the right one
    assert (repo.path / output).read_bytes() != kept[output]
    assert "up to date" in repo.run("dvc", "status")

    told = repo.run(*verify, fails=True).splitlines()
    assert told == [
        f"{cached}: is not what was stored; remove it and run `dvc repro`, or `dvc pull`",
        f"{output}: is not what dvc.lock says; remove it and run `dvc repro`, or `dvc pull`",
    ]
    for name in (cached, output):
        (repo.path / name).unlink()
    assert repo.stages_run("dvc", "repro") == ["margin_data"]
    assert artefacts(repo) == kept
    repo.run(*verify)
