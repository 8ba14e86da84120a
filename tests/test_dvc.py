"""DVC as its users use it: every promise of the README, by the real command in a copy of the repository."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from conftest import ENV, ROOT, Repo, set_params

HEADLINE = ["margin_data", "margin_train", "margin_attack", "margin_figures"]
FIGURES = ["margin_figures", "sweep_figures", "theory_figures", "slabs_figures", "sparse_figures"]


def metrics(repo: Repo) -> dict[str, float]:
    return json.loads((repo.path / "metrics/margin.json").read_text())


def test_the_committed_lock_file_is_what_this_code_and_these_parameters_give(fresh: Repo) -> None:
    # --allow-missing: a clone has no data; DVC then compares hashes with dvc.lock alone. Past the first stale stage it
    # may stop for want of that data, so what it prints comes before its exit code.
    command = ["dvc", "repro", "--allow-missing", "--dry"]
    done = subprocess.run(command, cwd=fresh.path, env=ENV, capture_output=True, text=True)
    out = done.stdout + done.stderr
    assert "Running stage" not in out, f"dvc.lock is stale: run `dvc repro` and commit dvc.lock\n{out}"
    assert done.returncode == 0, out


def test_a_second_repro_runs_nothing(repo: Repo) -> None:
    assert repo.stages_run("dvc", "repro") == []
    assert "up to date" in repo.run("dvc", "status")


def test_a_forced_repro_leaves_the_lock_file_byte_identical(repo: Repo) -> None:
    before = (repo.path / "dvc.lock").read_bytes()
    ends = ["margin_figures", "kkt_probe", "slabs_probe", "recipes_probe", "adversarial_probe", "lsn"]
    ends += ["sparse_probe", "sparse_low"]
    ran = repo.stages_run("dvc", "repro", "--force", *ends, timeout=600)
    assert set(ends) | {"slabs_train@gru-3-5-1", "recipes_train", "margin_train", "sparse_train@random"} <= set(ran)
    assert (repo.path / "dvc.lock").read_bytes() == before


def test_exp_run_with_another_d_reruns_the_headline_chain_within_two_minutes(repo: Repo) -> None:
    ran = repo.stages_run("dvc", "exp", "run", "-S", "d=500", timeout=120)
    assert ran == ["params", *HEADLINE]
    now = metrics(repo)
    assert now["margin.m"] == 500
    assert now["margin.c.mean"] < 0.25 * 500**0.5
    assert now["margin.on_margin.mean"] > 0.92


def test_queued_sweep_runs_every_value(repo: Repo) -> None:
    out = repo.run("dvc", "exp", "run", "-S", "d=60,80", "--queue")
    assert out.count("Queued experiment") == 2
    repo.run("dvc", "queue", "start", "--jobs", "1")
    deadline = time.monotonic() + 240
    while (state := repo.run("dvc", "queue", "status")).count("Success") < 2:
        assert "Failed" not in state, state
        assert time.monotonic() < deadline, state
        time.sleep(2)
    repo.run("dvc", "queue", "stop")
    table = json.loads(repo.run("dvc", "exp", "show", "--json"))
    experiments = [rev for base in table for rev in (base.get("experiments") or [])]
    measured = [
        exp["revs"][0]["data"]["metrics"]["metrics/margin.json"]["data"]["margin.sqrt_d"] ** 2 for exp in experiments
    ]
    assert sorted(round(d) for d in measured) == [60, 80]


def test_a_plotting_parameter_redraws_figures_and_trains_nothing(repo: Repo) -> None:
    repo.set(figures__dpi=100)
    assert repo.stages_run("dvc", "repro") == ["params", *FIGURES]


def test_metrics_and_plots_diff_between_branches_show_the_change(repo: Repo) -> None:
    repo.run("git", "switch", "--quiet", "--create", "smaller")
    repo.run("dvc", "exp", "run", "-S", "d=50")
    repo.commit("d = 50")
    repo.run("git", "switch", "--quiet", "main")
    change = json.loads(repo.run("dvc", "metrics", "diff", "main", "smaller", "--json"))["metrics/margin.json"]
    assert change["margin.m"] == {"old": 100, "new": 50, "diff": -50}
    assert change["margin.c.mean"]["old"] == metrics(repo)["margin.c.mean"] != change["margin.c.mean"]["new"]
    table = repo.run("dvc", "metrics", "diff", "main", "smaller")
    assert "margin.c.mean" in table
    repo.run("dvc", "plots", "diff", "main", "smaller", "--out", "compared")
    page = (repo.path / "compared/index.html").read_text()
    assert "One vector flips every sample on the margin" in page
    assert '"rev": "smaller"' in page
    images = [path.name for path in (repo.path / "compared/static").iterdir()]
    assert any("main" in name for name in images)
    assert any("smaller" in name for name in images)


def test_cells_that_are_no_longer_asked_for_are_left_out(repo: Repo) -> None:
    repo.set(sweep__ds=[20])
    ran = repo.stages_run("dvc", "repro", "sweep_figures")
    assert ran == ["params", "sweep_collect", "sweep_figures"]
    assert (repo.path / "plots/sweep/16.csv").exists()
    rows = (repo.path / "plots/sweep.csv").read_text().splitlines()[1:]
    assert {row.split(",")[1] for row in rows} == {"20"}


def test_a_new_cell_of_a_grid_runs_alone(repo: Repo) -> None:
    repo.set(sweep__widths=[40, 60])
    ran = repo.stages_run("dvc", "repro", "sweep_figures")
    assert ran == ["params", "widths_train@60", "widths_attack@60", "sweep_collect", "sweep_figures"]


def test_a_new_architecture_trains_alone(repo: Repo) -> None:
    repo.set(slabs__models=["fcn-8-1", "cnn-2-3-1", "gru-3-5-1", "fcn-4-2"])
    ran = repo.stages_run("dvc", "repro")
    assert ran[:2] == ["params", "slabs_train@fcn-4-2"]
    assert sorted(ran[2:]) == ["claims", "slabs_attack", "slabs_figures", "slabs_probe"]


def test_a_parameter_of_adversarial_training_trains_nothing_else(repo: Repo) -> None:
    ran = repo.stages_run("dvc", "exp", "run", "-S", "adversarial.l2=[0.1,0.3]")
    assert ran[:3] == ["params", "adversarial_train", "adversarial_probe"]
    assert sorted(ran[3:]) == ["claims", "slabs_figures"]


def test_leaving_out_a_start_trains_nothing(repo: Repo) -> None:
    repo.set(sparse__starts=["pure"])
    assert repo.stages_run("dvc", "repro", "sparse_figures") == ["params", "sparse_probe", "sparse_figures"]


def test_push_to_a_folder_then_clone_and_pull_gives_a_clean_status(repo: Repo, tmp_path: Path) -> None:
    repo.run("dvc", "remote", "add", "--default", "storage", str(tmp_path / "storage"))
    repo.run("dvc", "push")
    repo.commit("a remote")
    repo.run("git", "clone", "--quiet", str(repo.path), str(tmp_path / "clone"))
    clone = Repo(tmp_path / "clone")
    assert not (clone.path / "models/margin.safetensors").exists()
    clone.run("dvc", "pull")
    assert "up to date" in clone.run("dvc", "status")
    assert "in sync" in clone.run("dvc", "status", "--cloud")
    assert clone.stages_run("dvc", "repro") == []
    model = "models/margin.safetensors"
    assert (clone.path / model).read_bytes() == (repo.path / model).read_bytes()


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
    fresh: Repo, tmp_path: Path, key: str, value: str, line: str
) -> None:
    repo = fresh.copy(tmp_path / "brittle")
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
    assert repo.stages_run("dvc", "repro") == ["params"]


@pytest.mark.parametrize(
    "part", ["world: clusters", "world: gaussian", "world: orthogonal", "loss: logistic", "method: protocol"]
)
def test_every_variant_of_the_headline_chain_runs_and_flips_every_margin_sample(tmp_path: Path, part: str) -> None:
    key, value = part.split(": ")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    small = {"d": 40, "width": 100, "seeds": [0, 1], "margin.protocol.every": 20}
    set_params(tmp_path / "params.yaml", small | {f"margin.{key}": value})
    for stage in ("margin_data", "margin_train", "margin_attack"):
        subprocess.run([sys.executable, "-m", f"brittle.stages.{stage}"], cwd=tmp_path, env=ENV, check=True)
    found = metrics(Repo(tmp_path))
    assert found["margin.c_over_norm.mean"] < 1
    assert found["margin.random_at_c.mean"] < 0.5
