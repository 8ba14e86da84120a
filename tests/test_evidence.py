"""Long runs: planned before they are run, resumed after a kill, kept with where they come from."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from brittle import long_runs
from brittle.core.errors import BadInput
from brittle.evidence.age import changed_since
from brittle.evidence.costs import COSTS, GRID, seconds
from brittle.evidence.plan import CHAPTERS, plan
from brittle.tools.graph import stages
from conftest import ENV, ROOT, Repo

COMMAND = [sys.executable, "-m", "brittle.evidence"]
# Five tables of seconds: two cells each of a grid and of what is measured on its networks, and one whole table.
PRESET = "sweep:\n  ds: [16, 20]\n  width: 50\nlsn:\n  ds: [8, 16]\n  units: 4\n  test: 100\n"
MADE = ["lsn.csv", "sweep/16.csv", "sweep/20.csv", "title/16.csv", "title/20.csv"]


@pytest.fixture
def plain() -> None:
    """Plans are made in the project's folder."""
    before = Path.cwd()
    os.chdir(ROOT)
    yield
    os.chdir(before)


@pytest.fixture(scope="module")
def project(fresh: Repo, tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The project with a small preset in place of the evidence's, nothing run."""
    repo = fresh.copy(tmp_path_factory.mktemp("evidence") / "brittle")
    (repo.path / "presets/evidence.yaml").write_text(PRESET)
    for path in (repo.path / "evidence").glob("lsn.*"):
        path.unlink()
    repo.commit("a small preset")
    return repo


@pytest.fixture(scope="module")
def whole(project: Repo, tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """What an undisturbed run keeps."""
    repo = project.copy(tmp_path_factory.mktemp("whole") / "brittle")
    out = repo.run(*COMMAND, "--hours", "1")
    assert sorted(line.removeprefix("kept evidence/") for line in out.splitlines() if line.startswith("kept")) == MADE
    return repo


def kept(repo: Repo) -> dict[str, object]:
    """Every table, and its provenance without the time it took."""
    found: dict[str, object] = {}
    for name in MADE:
        path = repo.path / "evidence" / name
        about = json.loads(path.with_suffix(".json").read_text())
        assert about["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        found |= {name: path.read_bytes(), f"{name} is from": {key: about[key] for key in about if key != "hours"}}
    return found


def test_a_table_is_kept_with_where_it_comes_from(whole: Repo) -> None:
    about = json.loads((whole.path / "evidence/sweep/20.json").read_text())
    assert set(about) == set(long_runs.KEYS)
    assert (about["stage"], about["params"]) == ("sweep_attack@20", {"sweep.width": 50})
    assert about["commit"] == whole.run("git", "rev-parse", "HEAD").strip()
    assert about["hours"] > 0
    table = long_runs.load("sweep", folder=whole.path / "evidence")
    assert {16, 20, 100} <= set(table["d"])
    assert set(table.loc[table["d"] == 20, "width"]) == {50}


def test_a_run_that_is_killed_twice_keeps_the_same_tables(project: Repo, whole: Repo, tmp_path: Path) -> None:
    repo = project.copy(tmp_path / "brittle")
    for after in (2.5, 7.0):
        run = subprocess.Popen([*COMMAND, "--hours", "1"], cwd=repo.path, env=ENV, stdout=subprocess.DEVNULL)
        time.sleep(after)
        run.kill()
        run.wait()
        time.sleep(0.5)
        assert not _running_in(repo.path), "a stage outlived the run"
    repo.run(*COMMAND, "--hours", "1")
    assert kept(repo) == kept(whole)
    assert "0 of the" not in repo.run(*COMMAND)


def _running_in(folder: Path) -> list[str]:
    """The processes that work below the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(process / "cwd")).is_relative_to(folder):
                found.append(process.name)
        except OSError:
            continue
    return found


def test_a_run_whose_time_is_up_says_so_and_goes_on_later(project: Repo, whole: Repo, tmp_path: Path) -> None:
    repo = project.copy(tmp_path / "brittle")
    out = repo.run(*COMMAND, "--hours", "0.0005")  # on a busy machine the first table may not even have begun
    assert re.search(r"^the time is up; the same command resumes here$", out, re.MULTILINE)
    repo.run(*COMMAND, "--hours", "1")
    assert kept(repo) == kept(whole)
    assert "nothing" in repo.run(*COMMAND, "--plan")


def test_ctrl_c_ends_the_stage_too(project: Repo, tmp_path: Path) -> None:
    repo = project.copy(tmp_path / "brittle")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    run = subprocess.Popen([*COMMAND, "--hours", "1"], cwd=repo.path, env=ENV, **pipes)
    assert run.stdout.readline().startswith("5 tables are missing, about 1 min: ")
    time.sleep(4)
    run.send_signal(signal.SIGINT)
    assert "stopped; run the same command again to resume" in run.communicate(timeout=100)[1]
    assert run.returncode == 130
    assert not _running_in(repo.path)


def test_a_stage_that_fails_is_shown_and_the_others_go_on(project: Repo, tmp_path: Path) -> None:
    repo = project.copy(tmp_path / "brittle")
    file = repo.path / "src/brittle/slabs/lsn.py"
    file.write_text(file.read_text().replace("def main(", "raise ValueError('spoiled')\n\n\ndef main(", 1))
    repo.commit("a stage that fails")
    out = repo.run(*COMMAND, "--hours", "1", fails=True)
    assert "ValueError: spoiled" in out
    assert "stage lsn failed (full log: " in out
    assert "kept evidence/sweep/20.csv" in out
    assert not (repo.path / "evidence/lsn.csv").exists()


def test_what_is_not_committed_is_no_evidence(project: Repo, tmp_path: Path) -> None:
    repo = project.copy(tmp_path / "brittle")
    with (repo.path / "src/brittle/long_runs.py").open("a") as file:
        file.write("\n")
    done = subprocess.run([*COMMAND, "--hours", "1"], cwd=repo.path, env=ENV, capture_output=True, text=True)
    words = (
        "src/brittle/long_runs.py: is not committed; evidence names the commit that it was made with, so commit first\n"
    )
    assert (done.returncode, done.stderr) == (2, words)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--hours", "0"], "--hours 0: must be a number of hours > 0 and < 10000"),
        (["--hours", "nan"], "--hours nan: must be a number of hours > 0 and < 10000"),
        (["--hours", "x"], "--hours: invalid float value: 'x'; usage: python -m brittle.evidence [-h] "),
        (["--preset", "presets/none.yaml"], "none.yaml: cannot be read: No such file or directory"),
    ],
)
def test_bad_input_is_one_line(words: list[str], says: str, project: Repo) -> None:
    done = subprocess.run([*COMMAND, *words], cwd=project.path, env=ENV, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(says)


# --- The plan


@pytest.mark.usefixtures("plain")
def test_the_preset_is_predicted_to_take_fourteen_hours_at_most() -> None:
    of = plan()
    assert 1 < of.seconds_of(of.units) / 3600 <= 14
    assert {unit.chapter for unit in of.units} == set(CHAPTERS)


@pytest.mark.usefixtures("plain")
def test_the_time_left_is_that_of_the_preset_and_not_of_the_quick_scale() -> None:
    of = plan()
    each = of.predicted(of.units)
    assert sum(each.values()) / 2 == pytest.approx(of.seconds_of(of.units))
    assert each["sweep_train@1000"] > 1000


@pytest.mark.usefixtures("plain")
def test_the_plan_counts_a_stage_once_and_begins_with_the_cheapest() -> None:
    of = plan()
    printed = subprocess.run([*COMMAND, "--plan"], cwd=ROOT, env=ENV, capture_output=True, text=True, check=True).stdout
    *lines, total = printed.splitlines()
    missing = of.missing()
    assert [line.split()[2] for line in lines if line.strip()] == [unit.made for unit in missing]
    needed = {name for unit in missing for name in unit.needs}
    (hours,) = re.findall(r"missing: ([\d.]+) h", total)
    assert float(hours) == pytest.approx(of.seconds(needed) / 3600, abs=0.06)
    if missing:
        first = missing[0]
        assert all(of.seconds(first.needs) / len(first.claims) <= of.seconds(u.needs) / len(u.claims) for u in missing)


@pytest.mark.usefixtures("plain")
def test_units_know_their_stages_and_what_the_preset_changes_for_them() -> None:
    units = {unit.made: unit for unit in plan().units}
    cell = units["plots/sweep/400.csv"]
    assert cell.needs == ("params", "sweep_attack@400", "sweep_train@400")
    assert (cell.address, cell.table) == ("pipelines/margin/dvc.yaml:sweep_attack@400", "plots/sweep.csv")
    assert {"M6", "M7", "M16"} <= set(cell.claims)
    title = units["plots/title/50.csv"]  # of the same networks
    assert (title.needs, title.claims) == (("params", "sweep_train@50", "title_attack@50"), ("M17",))
    slabs = units["plots/slabs_networks.csv"]
    assert {name for name in slabs.needs if "gru" in name} == {"slabs_train@gru-100-10-1", "slabs_train@gru-100-10-2"}
    assert "slabs.models" in slabs.params
    assert not any(key.startswith("sweep.") for key in slabs.params)


def test_every_cost_is_of_a_stage_and_grows_with_parameters_that_are_there() -> None:
    from brittle.core.params import read
    from brittle.params import leaves

    values = dict(leaves(read(ROOT / "params.yaml")))
    assert set(COSTS) <= set(stages())
    for name, cost in COSTS.items():
        cell = "@1" if stages()[name].axis else ""
        assert seconds(f"{name}{cell}", values, values) == pytest.approx(cost.seconds)
    hundreds = list(range(100, 1001, 100))
    whole = values | {"sweep.ds": hundreds, "sweep.width_ds": hundreds, "sweep.seeds": [0, 1, 2, 3, 4]}
    grid = [f"sweep_train@{d}" for d in whole["sweep.ds"]]
    grid += [f"widths_train@{width}" for width in (100, 500, 1000, 2000, 4000, 8000)]
    assert sum(seconds(name, values, whole) for name in grid) == pytest.approx(GRID, rel=0.01)


# --- What is there


def test_cells_are_read_in_the_order_of_their_numbers_and_only_with_their_provenance(tmp_path: Path) -> None:
    for name in ("20", "100", "3"):
        path = tmp_path / f"sweep/{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"d\n{name}\n")
        if name != "3":
            path.with_suffix(".json").write_text("{}\n")
    assert long_runs.load("sweep", folder=tmp_path)["d"].tolist() == [20, 100]
    none = long_runs.load("widths", ["d"], ["start"], folder=tmp_path)
    assert none.empty
    assert none["d"].dtype == "float64"  # so that it can be put below a table of numbers
    assert list(long_runs.tables(["plots/sweep.csv", "plots/kkt.csv"], tmp_path)) == ["plots/sweep.csv"]
    with pytest.raises(BadInput, match="says nothing of stage, command"):
        long_runs.provenance(tmp_path / "sweep/20.csv")
    (tmp_path / "sweep/20.json").write_text("{\n")
    with pytest.raises(BadInput, match="is not JSON"):
        long_runs.provenance(tmp_path / "sweep/20.csv")


@pytest.mark.parametrize("path", sorted((ROOT / "evidence").rglob("*.csv")), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_evidence_is_what_its_provenance_tells_of(path: Path) -> None:
    about = long_runs.provenance(path)
    assert about["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    own = pd.read_csv(path)
    quick = ROOT / "plots" / path.relative_to(ROOT / "evidence")
    quick = quick if quick.exists() else quick.parent.with_suffix(".csv")
    if quick.exists():
        assert set(own) <= set(pd.read_csv(quick))


def test_the_evidence_is_small() -> None:
    assert sum(path.stat().st_size for path in (ROOT / "evidence").rglob("*") if path.is_file()) < 4e6


def test_a_table_says_which_modules_have_changed_since(whole: Repo) -> None:
    assert changed_since("HEAD", "sweep_attack@100") == [
        name for name in changed_since("HEAD", "sweep_attack@100") if name.endswith(".py")
    ]
    assert changed_since("0" * 40, "sweep_attack@100")  # of an unknown commit everything may have changed
    assert changed_since("HEAD", "no_such_stage") == ["no_such_stage (a stage that is no more)"]
    out = whole.run(*COMMAND)
    assert re.search(r"^sweep/20 +\d{4}-\d\d-\d\d +[\d.]+ h +\w{9} ", out, re.MULTILINE)
    assert "5 of the 5 tables that presets/evidence.yaml asks for are there" in out
