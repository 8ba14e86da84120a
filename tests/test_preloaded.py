"""Stages that a process forks which has loaded the libraries already: they do what a process of their own would."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from brittle.scale.preloaded import Preloaded, preloaded
from conftest import ENV
from runs import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there libraries survive a fork")

# A stage that tells what it sees, and ends as its argument says.
STAGE = """
import os, signal, sys, time
from pathlib import Path
import brittle, torch
if __name__ == "__main__":
    print(f"arguments {sys.argv[1:]}, module {__spec__.name}, folder {Path.cwd().name}, DEMO={os.environ.get('DEMO')}")
    print(f"threads {torch.get_num_threads()}, kernels {os.environ['MKL_CBWR']}", file=sys.stderr)
    how = sys.argv[1]
    if how == "fails":
        raise RuntimeError("on purpose")
    if how == "says":
        sys.exit("in words")
    if how == "sleeps":
        Path("sleeping").touch()
        time.sleep(600)
    if how.isdecimal():
        sys.exit(int(how))
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of which one stage is not brittle's own."""
    folder = tmp_path_factory.mktemp("preloaded") / "project"
    package = folder / "src/brittle"
    package.mkdir(parents=True)
    source = Path(__file__).parents[1] / "src/brittle"
    (package / "__init__.py").write_text((source / "__init__.py").read_text())
    (package / "core").mkdir()
    for name in ("machine.py", "errors.py"):
        (package / "core" / name).write_text((source / "core" / name).read_text())
    (package / "demo.py").write_text(STAGE)
    return folder


@pytest.fixture(scope="module")
def process(root: Path) -> Iterator[Preloaded]:
    before, os.environ["PATH"] = os.environ["PATH"], ENV["PATH"]
    made = preloaded(root)
    os.environ["PATH"] = before
    until(made._loaded, "the libraries are not loaded")
    yield made
    made.close()


def run(process: Preloaded, root: Path, how: str) -> tuple[int, str]:
    log = root / f"{how}.log"
    with log.open("wb") as stream:
        stage = process.start(
            f"PYTHONPATH=src python -m brittle.demo {how}", root, os.environ | {"DEMO": "1"}, stream.fileno()
        )
        code = stage.wait()
        stage.stdin.close()
    return code, log.read_text()


@pytest.mark.parametrize(
    ("how", "code", "last"),
    [
        ("well", 0, "threads"),
        ("3", 3, "threads"),
        ("says", 1, "in words"),
        ("fails", 1, "RuntimeError: on purpose"),
    ],
)
def test_a_forked_stage_has_its_own_arguments_environment_log_and_exit_code(
    process: Preloaded, root: Path, how: str, code: int, last: str
) -> None:
    ended, printed = run(process, root, how)
    assert ended == code
    assert f"arguments ['{how}'], module brittle.demo, folder project, DEMO=1" in printed
    assert "kernels AVX2" in printed
    assert printed.splitlines()[-1].startswith(last)


def test_a_signal_to_the_group_ends_the_stage_and_is_its_exit_code(process: Preloaded, root: Path) -> None:
    with (root / "log").open("wb") as log:
        stage = process.start("PYTHONPATH=src python -m brittle.demo sleeps", root, dict(os.environ), log.fileno())
        until((root / "sleeping").exists, "the stage has not begun")
        os.killpg(stage.pid, signal.SIGTERM)
        assert stage.wait() == -signal.SIGTERM
        stage.stdin.close()
    (root / "sleeping").unlink()


def test_letting_go_of_a_stage_ends_it(process: Preloaded, root: Path) -> None:
    with (root / "log").open("wb") as log:
        stage = process.start("PYTHONPATH=src python -m brittle.demo sleeps", root, dict(os.environ), log.fileno())
    until((root / "sleeping").exists, "the stage has not begun")
    group = [p for p in psutil.process_iter() if _group(p) == stage.pid]
    assert len(group) == 2  # the keeper and the stage
    stage.said.close()
    stage.stdin.close()
    assert psutil.wait_procs(group, timeout=10)[1] == []
    (root / "sleeping").unlink()


def _group(process: psutil.Process) -> int:
    try:
        return os.getpgid(process.pid)
    except ProcessLookupError:
        return 0


@pytest.mark.parametrize(
    "command",
    ["python -m brittle.demo well", "PYTHONPATH=src python -m brittle.demo well && true", "PYTHONPATH=src python x.py"],
)
def test_any_other_command_is_for_a_shell(process: Preloaded, root: Path, command: str) -> None:
    assert process.start(command, root, dict(os.environ), 1) is None


def test_a_stage_of_another_folder_is_for_a_process_of_its_own(process: Preloaded, tmp_path: Path) -> None:
    assert process.start("PYTHONPATH=src python -m brittle.demo well", tmp_path, dict(os.environ), 1) is None


def test_a_process_that_has_gone_starts_nothing(root: Path) -> None:
    made = preloaded(root)
    until(made._loaded, "the libraries are not loaded")
    made.process.kill()
    made.process.wait()
    time.sleep(0.1)
    assert made.start("PYTHONPATH=src python -m brittle.demo well", root, dict(os.environ), 1) is None
    made.close()
