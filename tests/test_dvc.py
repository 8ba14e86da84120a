"""DVC as its users use it: every promise of the README, by the real command in a copy of the repository."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brittle.tools.graph import files
from conftest import ENV, MODULES, ROOT, Repo
from tiny import set_params

HEADLINE = ["margin_data", "margin_train", "margin_attack", "margin_crossings", "margin_figures"]
FIGURES = ["margin_figures", "sweep_figures", "theory_figures", "slabs_figures", "sparse_figures"]
FIGURES += ["mnist_cifar_figures", "cifar10_figures", "cross_figures"]
FIGURES += ["unseen_figures", "powers_figures", "off_subspace_figures", "geometry_figures"]
FIGURES += ["perturbed_noise_figures", "reconstruct_figures", "xor_figures"]


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
    locks = [file.with_name("dvc.lock") for file in files(repo.path)]
    before = [lock.read_bytes() for lock in locks]
    ends = ["margin_figures", "pipelines/slabs/dvc.yaml:slabs_probe"]  # every stage, in one process: test_graph.py
    ran = repo.stages_run("dvc", "repro", "--force", *ends, timeout=900)
    assert {"margin_figures", "slabs_probe", "slabs_train@gru-3-5-1", "margin_train"} <= set(ran)
    assert [lock.read_bytes() for lock in locks] == before


def test_exp_run_with_another_d_reruns_the_headline_chain_alone(repo: Repo) -> None:
    ran = repo.stages_run("dvc", "exp", "run", "-S", "d=500")
    assert ran == ["params", *HEADLINE, "claims", "report"]
    now = metrics(repo)
    assert now["margin.m"] == 500
    assert now["margin.c.mean"] < 0.25 * 500**0.5
    assert now["margin.on_margin.mean"] > 0.92


def test_a_fresh_clone_needs_nothing_but_the_headline_chain_for_another_d(fresh: Repo, tmp_path: Path) -> None:
    """Nothing was computed or pulled before: what did not change is taken for what the lock files say it is."""
    clone = fresh.copy(tmp_path / "brittle")
    ran = clone.stages_run("dvc", "exp", "run", "--allow-missing", "-S", "d=50")
    assert ran == ["params", *HEADLINE, "claims", "report"]
    assert metrics(clone)["margin.m"] == 50
    claims = clone.run("python", "-m", "brittle.claims", "M6")
    assert "headline run (d = 50, m = 50)" in " ".join(claims.split())


def test_queued_sweep_runs_every_value(small_reproduced: Repo, tmp_path: Path) -> None:
    repo = small_reproduced.copy(tmp_path / "brittle")
    out = repo.run("dvc", "exp", "run", "-S", "d=12,16", "--queue")
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
    assert sorted(round(d) for d in measured) == [12, 16]


def test_a_plotting_parameter_redraws_figures_and_trains_nothing(repo: Repo) -> None:
    repo.set(figures__dpi=100)
    first, *drawn, last = repo.stages_run("dvc", "repro")
    assert (first, sorted(drawn), last) == ("params", sorted(FIGURES), "report")


def test_metrics_and_plots_diff_between_branches_show_the_change(small_reproduced: Repo, tmp_path: Path) -> None:
    repo = small_reproduced.copy(tmp_path / "brittle")
    repo.run("git", "switch", "--quiet", "--create", "smaller")
    repo.run("dvc", "exp", "run", "-S", "d=12")
    repo.commit("d = 12")
    repo.run("git", "switch", "--quiet", "main")
    change = json.loads(repo.run("dvc", "metrics", "diff", "main", "smaller", "--json"))["metrics/margin.json"]
    assert change["margin.m"] == {"old": 20, "new": 12, "diff": -8}
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


def test_a_changed_verdict_shows_in_the_diff_and_metrics_stay_few(repo: Repo) -> None:
    shown = json.loads(repo.run("dvc", "metrics", "show", "--json"))[""]["data"]
    assert "metrics/claims.json" not in shown
    assert sum(len(file["data"]) for file in shown.values()) <= 60  # columns of `dvc exp show`
    claims = repo.path / "metrics/claims.json"
    content = json.loads(claims.read_text())
    old, content["M6.verdict"] = content["M6.verdict"], "changed"
    claims.write_text(json.dumps(content))
    change = json.loads(repo.run("dvc", "metrics", "diff", "--targets", "metrics/claims.json", "--json"))
    assert change == {"metrics/claims.json": {"M6.verdict": {"old": old, "new": "changed"}}}


@pytest.mark.parametrize(
    "part", ["world: clusters", "world: gaussian", "world: orthogonal", "loss: logistic", "method: protocol"]
)
def test_every_variant_of_the_headline_chain_runs_and_flips_every_margin_sample(tmp_path: Path, part: str) -> None:
    key, value = part.split(": ")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    small = {"d": 40, "width": 100, "seeds": [0, 1], "margin.protocol.every": 20}
    set_params(tmp_path / "params.yaml", small | {f"margin.{key}": value})
    for stage in ("margin_data", "margin_train", "margin_attack"):
        subprocess.run([sys.executable, "-m", MODULES[stage]], cwd=tmp_path, env=ENV, check=True)
    found = metrics(Repo(tmp_path))
    assert found["margin.c_over_norm.mean"] < 1
    assert found["margin.random_at_c.mean"] < 0.5
