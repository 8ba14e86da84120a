"""Many stages at once on this machine: what `dvc repro` leaves, whatever happens on the way."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pandas as pd
import psutil
import pytest
from ruamel.yaml import YAML

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.scale import local
from brittle.scale.graph import Pipeline
from brittle.scale.local import cores
from brittle.scale.options import amounts
from brittle.scale.times import REFERENCE, Times
from conftest import ENV, Repo
from runs import SCALE, begun, part, results, scale, stages_of, until
from tiny import make_tiny


def test_two_workers_leave_the_workspace_as_dvc_repro_does(small: Repo, small_reproduced: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "brittle")
    out = scale(repo, "--workers", "2")
    assert "13 of 13 stages" in out
    assert re.search(r"^\[\d+/13\] margin_train · \d+ s · about \d+ (s|min) left$", out, re.MULTILINE)
    assert re.search(r"^plots/margin_flipped.png is there: ", out, re.MULTILINE)
    assert results(repo) == results(small_reproduced)
    assert "up to date" in repo.run("dvc", "status")
    assert repo.stages_run("dvc", "repro") == []
    assert scale(repo) == "Data and pipelines are up to date.\n"


@pytest.mark.skipif("BRITTLE_WHOLE" not in os.environ, reason="ten minutes: set BRITTLE_WHOLE=1")
def test_the_whole_pipeline_on_two_workers_is_that_of_dvc_repro(fresh: Repo, reproduced: Repo, tmp_path: Path) -> None:
    repo = fresh.copy(tmp_path / "brittle")
    make_tiny(repo.path)
    repo.run("dvc", "repro", timeout=3600)
    assert results(repo) == results(reproduced)


def test_a_stage_that_fails_stops_what_needs_it_and_nothing_else(
    small: Repo, small_reproduced: Repo, tmp_path: Path
) -> None:
    repo = small.copy(tmp_path / "brittle")
    repo.set(margin__flow__max_steps=3)
    out = scale(repo, "--workers", "2", "margin_figures", "widths_attack@40", code=1)
    assert "stage margin_train failed" in out
    assert re.search(r"^    margin_train: stopped at ln loss .*$", out, re.MULTILINE)  # its log
    assert "not run, because they depend on failed stages: margin_attack, margin_figures" in out
    assert (repo.path / ".dvc/tmp/scale/margin_train.log").read_text().count("margin_train: stopped at ln loss") == 1
    assert part(results(repo), "widths/") == part(results(small_reproduced), "widths/")
    assert repo.stages_run("dvc", "repro", "widths_attack@40") == []
    assert "to run it alone: dvc repro --single-item margin_train" in out
    assert "Traceback" not in out


def test_ctrl_c_stops_everything_and_the_next_run_goes_on(small: Repo, small_reproduced: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "brittle")
    with begun(repo, "--workers", "2", "margin_figures") as run:
        whole = psutil.Process(run.pid)
        until(lambda: stages_of(whole, "margin_train"), "margin_train has not begun")
        below = whole.children(recursive=True)
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=60)
    assert run.returncode == 130
    assert re.search(r"^stopped: \d of 5 stages are done; run the same command again to resume$", out, re.MULTILINE)
    assert "Traceback" not in out
    assert psutil.wait_procs(below, timeout=10)[1] == []  # nobody goes on
    out = scale(repo, "--workers", "2", "margin_figures")
    assert part(results(repo), "margin") == part(results(small_reproduced), "margin")
    assert "margin_data" not in out  # it was done


def test_a_run_that_is_killed_takes_its_stages_along_and_the_next_goes_on(
    small: Repo, small_reproduced: Repo, tmp_path: Path
) -> None:
    repo = small.copy(tmp_path / "brittle")
    with begun(repo, "--workers", "2", "margin_figures") as run:
        whole = psutil.Process(run.pid)
        until(lambda: stages_of(whole, "margin_train"), "margin_train has not begun")
        below = whole.children(recursive=True)
        run.kill()
        run.wait()
    assert psutil.wait_procs(below, timeout=10)[1] == []
    scale(repo, "--workers", "2", "margin_figures")
    assert part(results(repo), "margin") == part(results(small_reproduced), "margin")


def test_make_repro_prints_no_verdicts_of_a_run_that_was_stopped(small: Repo, tmp_path: Path) -> None:
    """The recipe of the Makefile, with this environment in the place of .venv."""
    repo = small.copy(tmp_path / "brittle")
    make = ["make", "--old-file=.venv/.installed", "repro", "ARGS=margin_figures"]
    with subprocess.Popen(
        make,
        cwd=repo.path,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as run:
        until(lambda: stages_of(psutil.Process(run.pid), "margin_train"), "margin_train has not begun")
        runner = next(p for p in psutil.Process(run.pid).children(recursive=True) if "brittle.scale" in p.cmdline())
        runner.kill()
        out, _ = run.communicate(timeout=60)
    assert run.returncode != 0
    assert "the run has not ended; make repro resumes it" in out
    assert "reproduced" not in out
    assert "report.html" not in out


def test_a_lock_file_of_a_machine_that_rounds_otherwise_is_brought_up_to_date(
    small_reproduced: Repo, tmp_path: Path
) -> None:
    """A clone without data: dvc.lock names a model that nobody here has, and that is not what will be trained here."""
    repo = small_reproduced.copy(tmp_path / "brittle")
    for room in (".dvc/cache", "data", "models"):
        shutil.rmtree(repo.path / room)
    lock = repo.path / "dvc.lock"
    outs = YAML(typ="safe").load(lock)["stages"]["margin_train"]["outs"]
    (model,) = [out["md5"] for out in outs if out["path"] == "models/margin.safetensors"]
    lock.write_text(lock.read_text().replace(model, "f" * 32))
    scale(repo, "--workers", "2", "margin_train")
    made = repo.path / "models/margin.safetensors"
    assert made.read_bytes() == (small_reproduced.path / "models/margin.safetensors").read_bytes()
    scale(repo, "--workers", "2", "margin_figures")
    assert results(repo)["dvc.lock"] == results(small_reproduced)["dvc.lock"]
    assert repo.stages_run("dvc", "repro", "margin_figures") == []


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--workers", "0"], "--workers 0: must be an integer ≥ 1"),
        (["no_such_stage"], "no_such_stage"),
        (["--resources", "MEMORY=many"], "--resources MEMORY=many: must be like GPU=1,MEMORY=64GB"),
        (["--resources", "MEMORY=1GB"], "dvc.yaml: stage margin_train needs MEMORY 2e+09; this machine offers 1e+09"),
        (["--scheduler"], "--scheduler: expected one argument"),
    ],
)
def test_a_wrong_option_is_one_line(small: Repo, tmp_path: Path, options: list[str], line: str) -> None:
    repo = small.copy(tmp_path / "brittle")
    file, head = repo.path / "dvc.yaml", "  margin_train:\n"
    file.write_text(file.read_text().replace(head, f"{head}    meta: {{resources: {{MEMORY: 2e9}}}}\n"))
    out = scale(repo, *options, code=2)
    assert line in out.splitlines()[-1]
    assert "Traceback" not in out


def test_a_wrong_parameter_is_told_before_any_worker_starts(small: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "brittle")
    repo.set(d=-5)
    assert scale(repo, code=2) == "params.yaml: d = -5: must be an integer ≥ 2\n"


def test_a_terminal_shows_one_bar_for_the_whole_graph(small: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "brittle")
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 120))
    with subprocess.Popen([*SCALE, "margin_figures"], cwd=repo.path, env=ENV, stdout=slave, stderr=slave) as run:
        os.close(slave)
        shown = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            shown += chunk
        run.wait()
    os.close(master)
    text = shown.decode()
    assert re.search(r"2 of 5 stages: margin_train +\d+% \|.*\| \d\d:\d\d elapsed, \d\d:\d\d left", text)
    assert "plots/margin_flipped.png is there" in text
    assert "[3/5]" not in text


def test_a_fresh_clone_expects_to_run_what_is_missing_and_no_more(
    small_reproduced: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables and figures are in Git; stages that make nothing else will be found up to date."""
    repo = small_reproduced.copy(tmp_path / "brittle")
    for room in (".dvc/cache", "data", "models"):
        shutil.rmtree(repo.path / room)
    monkeypatch.chdir(repo.path)
    nodes = Pipeline(repo.path).out_of_date([])
    groups = {node.name.partition("@")[0] for node in nodes if node.runs}
    assert groups == {"params", "margin_data", "margin_train", "sweep_train", "widths_train"}
    assert {"margin_attack", "sweep_figures"} <= {node.name for node in nodes}
    repo.set(d=30)
    headline = {node.name for node in Pipeline(repo.path).out_of_date([]) if node.runs and "margin" in node.name}
    assert headline == {"margin_data", "margin_train", "margin_attack", "margin_figures"}


def test_what_stages_took_that_were_stopped_counts_when_they_end(tmp_path: Path) -> None:
    Times(tmp_path).keep({"long": 50.0})
    again = Times(tmp_path)
    again.keep({"long": 30.0})
    again = Times(tmp_path)
    again.note("long", 20.0)
    again.keep()
    assert again.here == {"long": 100.0}
    last = Times(tmp_path)
    last.note("long", 90.0)
    assert last.here == {"long": 90.0}


def test_a_few_small_stages_do_not_decide_how_fast_a_machine_is(tmp_path: Path) -> None:
    store.save_table(
        tmp_path / REFERENCE, pd.DataFrame({"stage": ["small", "large", "other"], "seconds": [1.0, 100, 60]})
    )
    times = Times(tmp_path)
    times.note("small", 4.0)
    assert times.expected(["other"])["other"] == pytest.approx(60 * 64 / 61)
    times.note("large", 300.0)
    assert times.expected(["other"])["other"] == pytest.approx(60 * 364 / 161)


def test_each_stage_has_a_gpu_of_its_own_and_waits_for_one(
    small: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two stages that read `device` never share a GPU. The stage is a stand-in that notes what it sees."""
    repo = small.copy(tmp_path / "brittle")
    note = "echo $CUDA_VISIBLE_DEVICES >> seen; sleep 1; echo end >> seen"
    stand_in = {"cmd": note, "params": ["device"], "deps": ["params.yaml"]}
    with (repo.path / "dvc.yaml").open("w") as stream:
        YAML().dump({"stages": {name: dict(stand_in) for name in ("sweep_train", "widths_train")}}, stream)
    monkeypatch.setattr(local, "gpus", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-5")  # those that the user has chosen
    for gpus, together in ((1, False), (2, True)):
        (repo.path / "seen").unlink(missing_ok=True)
        assert local.LocalRun(repo.path, 2, {}, {"GPU": gpus}).go([]) == 0
        lines = (repo.path / "seen").read_text().split()
        assert (lines[1] != "end") == together
        assert sorted(line for line in lines if line != "end") == (["3", "GPU-5"] if together else ["3", "3"])
        (repo.path / "dvc.lock").unlink()
        shutil.rmtree(repo.path / ".dvc/cache", ignore_errors=True)


def test_more_gpus_than_there_are_is_one_line(small: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "gpus", lambda: 1)
    with pytest.raises(BadInput, match="--resources GPU=2: this machine has 1 CUDA devices"):
        local.LocalRun(small.path, 2, {}, {"GPU": 2.0})


def test_resources_are_read_with_their_units() -> None:
    assert amounts("GPU=2,MEMORY=64GB") == {"GPU": 2, "MEMORY": 64e9}
    assert amounts("MEMORY = 1.5 GiB") == {"MEMORY": 1.5 * 2**30}
    assert amounts("MEMORY=24e9") == {"MEMORY": 24e9}


def test_a_process_that_is_bound_to_one_core_runs_one_stage_at_once() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert 1 <= cores() <= len(before)


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this system shares out the cores otherwise")
def test_what_a_nice_process_starts_in_a_session_of_its_own_is_nice_too() -> None:
    code = """
from pathlib import Path
import subprocess
from brittle.processes import guarded
process = guarded(["sleep", "60"], Path(), {"PATH": "/usr/bin:/bin"}, stdout=subprocess.DEVNULL)
print(Path(f"/proc/{process.pid}/autogroup").read_text().split()[-1])
process.stdin.close()
"""
    done = subprocess.run(["nice", "-n", "7", sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "7\n", done.stderr


def test_a_run_here_needs_nothing_of_the_cluster_s() -> None:
    """`make repro` installs requirements.lock alone, without Dask."""
    code = "import sys, brittle.scale.__main__; print(sorted({'dask', 'distributed', 'torch'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
