"""A training stage that is killed goes on where it was, to the very same bytes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ENV, MODULES, ROOT
from tiny import TINY, set_params

# The stage as it is, but with a checkpoint every fifth of a second.
DRIVER = """
import runpy, sys
from brittle.core import progress
progress.SECONDS = 0.2
name = sys.argv.pop(1)
runpy.run_module(name, run_name="__main__", alter_sys=True)
"""
MARGIN = {"d": 20, "width": 50, "seeds": [0, 1]}
MARGIN_OUTPUTS = ["models/margin.safetensors", "plots/margin_training.csv"]


def module(stage: str, *cell: str) -> list[str]:
    """What follows `python -m`; a stage may be given with its cell in one string."""
    name, *rest = stage.split()
    return [MODULES[name], *rest, *cell]


@dataclass(frozen=True)
class Case:
    before: list[str]  # the stages before
    stage: list[str]
    settings: dict[str, object]
    outputs: list[str]

    def prepared(self, folder: Path) -> Path:
        folder.mkdir()
        shutil.copy(ROOT / "params.yaml", folder)
        set_params(folder / "params.yaml", self.settings)
        for stage in self.before:
            subprocess.run([sys.executable, "-m", *module(stage)], cwd=folder, env=ENV, check=True)
        return folder

    def whole(self, folder: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", *module(*self.stage)]
        return subprocess.run(command, cwd=folder, env=ENV, check=True, capture_output=True, text=True)

    def begun(self, folder: Path) -> subprocess.Popen[bytes]:
        """The stage just after its first checkpoint."""
        stage = subprocess.Popen([sys.executable, "-c", DRIVER, *module(*self.stage)], cwd=folder, env=ENV)
        deadline = time.monotonic() + 60
        while not list(folder.glob(".checkpoints/*.safetensors")):
            assert stage.poll() is None, "the stage ended before its first checkpoint"
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return stage


FLOW = Case(
    ["margin_data"],
    ["margin_train"],
    MARGIN | {"margin.log10_target": -1000, "margin.flow.momentum": 0.0},
    MARGIN_OUTPUTS,
)
PROTOCOL = Case(
    ["margin_data"],
    ["margin_train"],
    MARGIN | {"margin.method": "protocol", "margin.protocol.every": 20},
    MARGIN_OUTPUTS,
)
SGD = Case(
    ["slabs_data"],
    ["slabs_train", "fcn-30-2"],
    TINY
    | {"slabs.models": ["fcn-30-2"], "slabs.skip": [], "slabs.training.epochs": 1200, "slabs.training.target": 0.0},
    ["models/slabs/fcn-30-2.safetensors"],
)
CROSS = TINY | {"cross.worlds": ["lms-5"], "cross.remedies": ["dropout", "adversarial", "ensemble", "nothing"]}
REMEDIES = Case(
    ["cross_data lms-5"],
    ["cross_train", "lms-5"],
    CROSS | {"cross.training.updates": 3000, "cross.training.target": 0.0, "cross.seeds": [0]},
    ["models/cross/lms-5.safetensors", "plots/cross/lms-5.csv"],
)
PROBES = Case(
    ["cross_data lms-5", "cross_train lms-5"],
    ["cross_probe"],
    CROSS | {"cross.measure.attacked": 20, "cross.measure.bracketed": 10},
    [f"plots/cross_builtin_{part}.csv" for part in ("networks", "attacks", "vectors", "curves")],
)


@pytest.mark.parametrize(
    ("case", "blow"),
    [
        (FLOW, signal.SIGKILL),
        (PROTOCOL, signal.SIGTERM),
        (SGD, signal.SIGKILL),
        (REMEDIES, signal.SIGTERM),
        (PROBES, signal.SIGKILL),
    ],
    ids=["flow", "protocol", "sgd", "remedies", "probes"],
)
def test_a_killed_stage_goes_on_to_the_same_bytes(tmp_path: Path, case: Case, blow: signal.Signals) -> None:
    whole = case.prepared(tmp_path / "whole")
    killed = Path(shutil.copytree(whole, tmp_path / "killed"))
    case.whole(whole)

    stage = case.begun(killed)
    time.sleep(0.5)
    assert stage.poll() is None, "the stage ended before it could be killed"
    stage.send_signal(blow)
    stage.wait()
    assert not any((killed / name).exists() for name in case.outputs)

    again = case.whole(killed)
    assert again.stderr.startswith(f"resuming from .checkpoints/{case.stage[0]}-")
    for name in case.outputs:
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert list(killed.glob(".checkpoints/[!.]*")) == []  # a kill may leave a hidden temporary file


def test_networks_that_train_one_after_the_other_are_kept_one_by_one(tmp_path: Path) -> None:
    """Each group leaves a checkpoint as it ends, however short it was; the stage's end removes them, and no others."""
    folder = FLOW.prepared(tmp_path / "stage")
    one_by_one = "from brittle.margin import networks, train\nnetworks.TOGETHER = 1\n"
    see = "train.store.save_table = lambda *a: (_ for _ in ()).throw(SystemExit(9))\n"
    go = "from brittle.core.stage import run\nrun(train.main, train.MarginParams)"
    (folder / ".checkpoints").mkdir()
    (folder / ".checkpoints/margin_train-another.safetensors").touch()

    def checkpoints() -> int:
        return len(list(folder.glob(".checkpoints/margin_train-*.safetensors")))

    cut = subprocess.run([sys.executable, "-c", one_by_one + see + go], cwd=folder, env=ENV)
    assert (cut.returncode, checkpoints()) == (9, 3)
    command = [sys.executable, "-c", one_by_one + go]
    again = subprocess.run(command, cwd=folder, env=ENV, check=True, capture_output=True, text=True)
    assert again.stderr.count("resuming from") == 2
    assert checkpoints() == 1


def test_a_checkpoint_of_other_parameters_is_not_used(tmp_path: Path) -> None:
    folder = FLOW.prepared(tmp_path / "stage")
    stage = FLOW.begun(folder)
    stage.kill()
    stage.wait()
    text = (folder / "params.yaml").read_text()
    (folder / "params.yaml").write_text(text.replace("log10_target: -1000", "log10_target: -20"))
    assert FLOW.whole(folder).stderr == ""
