"""A training stage that is killed goes on where it was, to the very same bytes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import ENV, ROOT, set_params

# The stage as it is, but with a checkpoint every fifth of a second.
DRIVER = """
import runpy
from brittle.stages import progress
progress.SECONDS = 0.2
runpy.run_module("brittle.stages.margin_train", run_name="__main__", alter_sys=True)
"""
SETTINGS = {
    "flow": {"margin.log10_target": -1000, "margin.flow.momentum": 0.0},
    "protocol": {"margin.method": "protocol", "margin.protocol.every": 20},
}
OUTPUTS = ["models/margin.safetensors", "plots/margin_training.csv"]


def prepared(folder: Path, method: str) -> Path:
    folder.mkdir()
    shutil.copy(ROOT / "params.yaml", folder)
    set_params(folder / "params.yaml", {"d": 20, "width": 50, "seeds": [0, 1]} | SETTINGS[method])
    subprocess.run([sys.executable, "-m", "brittle.stages.margin_data"], cwd=folder, env=ENV, check=True)
    return folder


@pytest.mark.parametrize(("method", "blow"), [("flow", signal.SIGKILL), ("protocol", signal.SIGTERM)])
def test_a_killed_training_goes_on_to_the_same_bytes(tmp_path: Path, method: str, blow: signal.Signals) -> None:
    whole, killed = prepared(tmp_path / "whole", method), prepared(tmp_path / "killed", method)
    subprocess.run([sys.executable, "-m", "brittle.stages.margin_train"], cwd=whole, env=ENV, check=True)

    stage = subprocess.Popen([sys.executable, "-c", DRIVER], cwd=killed, env=ENV)
    deadline = time.monotonic() + 60
    while not list(killed.glob(".checkpoints/*.safetensors")):
        assert stage.poll() is None, "the stage ended before its first checkpoint"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.5)
    assert stage.poll() is None, "the stage ended before it could be killed"
    stage.send_signal(blow)
    stage.wait()
    assert not (killed / "models").exists()

    command = [sys.executable, "-m", "brittle.stages.margin_train"]
    again = subprocess.run(command, cwd=killed, env=ENV, check=True, capture_output=True, text=True)
    assert again.stderr.startswith("going on from .checkpoints/margin_train-")
    for name in OUTPUTS:
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert list(killed.glob(".checkpoints/*")) == []


def test_networks_that_train_one_after_the_other_are_kept_one_by_one(tmp_path: Path) -> None:
    """Each group leaves a checkpoint as it ends, however short it was; the stage's end removes them, and no others."""
    folder = prepared(tmp_path / "stage", "flow")
    one_by_one = "from brittle.stages import margin_train, networks\nnetworks.TOGETHER = 1\n"
    see = "margin_train.store.save_table = lambda *a: (_ for _ in ()).throw(SystemExit(9))\n"
    go = "from brittle.stages.run import run\nrun(margin_train.main, margin_train.MarginParams)"
    (folder / ".checkpoints").mkdir()
    (folder / ".checkpoints/margin_train-another.safetensors").touch()

    def checkpoints() -> int:
        return len(list(folder.glob(".checkpoints/margin_train-*.safetensors")))

    cut = subprocess.run([sys.executable, "-c", one_by_one + see + go], cwd=folder, env=ENV)
    assert (cut.returncode, checkpoints()) == (9, 3)
    command = [sys.executable, "-c", one_by_one + go]
    again = subprocess.run(command, cwd=folder, env=ENV, check=True, capture_output=True, text=True)
    assert again.stderr.count("going on from") == 2
    assert checkpoints() == 1


def test_a_checkpoint_of_other_parameters_is_not_used(tmp_path: Path) -> None:
    folder = prepared(tmp_path / "stage", "flow")
    stage = subprocess.Popen([sys.executable, "-c", DRIVER], cwd=folder, env=ENV)
    while not list(folder.glob(".checkpoints/*.safetensors")):
        assert stage.poll() is None
        time.sleep(0.01)
    stage.kill()
    stage.wait()
    text = (folder / "params.yaml").read_text()
    (folder / "params.yaml").write_text(text.replace("log10_target: -1000", "log10_target: -20"))
    command = [sys.executable, "-m", "brittle.stages.margin_train"]
    done = subprocess.run(command, cwd=folder, env=ENV, check=True, capture_output=True, text=True)
    assert done.stderr == ""
