"""The pipeline on a real Dask cluster: the same bytes as `dvc repro`, whatever dies on the way."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from brittle.core.errors import BadInput
from brittle.scale.cluster import demanded, placed
from brittle.scale.graph import Pipeline
from brittle.scale.options import Options
from brittle.scale.sandbox import Host
from conftest import ENV, Repo
from runs import begun, part, results, scale, stages_of, until

HASTE = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s"}  # before a scheduler that does not answer is given up
HEADLINE = ["params", "margin_data", "margin_train", "margin_attack", "margin_figures"]


@contextmanager
def machine(scheduler: str, folder: Path, hidden: Path | None, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Dask worker with folders and a home of its own, that does not see `hidden`, as on another machine."""
    folder.mkdir()
    dask = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--local-directory", str(folder), *options]
    hide = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {hidden} && exec "$@"', "sh"] if hidden else []
    environment = ENV | {"HOME": str(folder)}
    with subprocess.Popen(
        [*hide, *dask], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    """A Dask scheduler; its address."""
    file = folder / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    command += ["--scheduler-file", str(file), "--no-dashboard"]
    with subprocess.Popen(
        command, cwd=folder, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            until(file.exists, "the scheduler has not started")
            yield until(lambda: re.search(r"tcp://[\d.:]+", file.read_text()), "no address").group()
        finally:
            process.terminate()


mounting = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"]
can_hide = bool(shutil.which("unshare")) and subprocess.run(mounting, capture_output=True).returncode == 0


@pytest.mark.skipif(not can_hide, reason="hiding a folder from a process takes unshare and root")
def test_workers_that_share_only_a_remote_do_the_same(small: Repo, small_reproduced: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "here/brittle")
    with ExitStack() as stack:
        address = stack.enter_context(scheduler(tmp_path))
        for name in ("one", "two"):
            stack.enter_context(machine(address, tmp_path / name, tmp_path / "here", "--nthreads", "1"))
        line = scale(repo, "--scheduler", address, code=2)
        assert line.splitlines()[-1].startswith("these workers do not see the workspace, and there is no DVC remote")
        repo.run("dvc", "remote", "add", "--default", "storage", str(tmp_path / "storage"))
        out = scale(repo, "--scheduler", address, "sweep_collect")
    assert "7 of 7 stages" in out
    assert part(results(repo), "s/sweep") == part(results(small_reproduced), "s/sweep")
    assert repo.stages_run("dvc", "repro", "sweep_collect") == []
    assert "ran again here" not in out
    # Both worked, each in a cache of its own.
    caches = [{path.name for path in (tmp_path / name).rglob("cache/runs/*/*")} for name in ("one", "two")]
    assert all(caches)
    assert len(caches[0] | caches[1]) == 7
    assert list((tmp_path / "storage/runs").rglob("*"))
    assert not list((tmp_path / "here").rglob("sandbox-*"))


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A real Slurm of one node on loopback; the variables by which its commands find it."""
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if not shutil.which(name, path=SBIN)]
    if missing or os.geteuid() != 0:
        pytest.skip(f"Slurm needs root and Debian's slurm-wlm and munge (missing: {', '.join(missing) or 'root'})")
    folder = Path(tempfile.mkdtemp(prefix="slurm"))  # a short name: a socket's is limited
    folder.chmod(0o755)
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o600)
    ports = [free_port() for _ in range(2)]
    (folder / "slurm.conf").write_text(SLURM.format(folder=folder, ports=ports))
    munge = ["munged", "--force", "--foreground", f"--key-file={folder}/key", f"--socket={folder}/munge"]
    munge += [f"--{name}-file={folder}/munge.{name}" for name in ("pid", "log", "seed")]
    environment = ENV | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{ENV['PATH']}:{SBIN}"}
    daemons = []
    try:
        for command in (munge, ["slurmctld", "-D", "-c"], ["slurmd", "-D", "-N", "localhost"]):
            silence = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            daemons.append(subprocess.Popen(command, env=environment, **silence))
            time.sleep(1)
        seen = ["sinfo", "--noheader", "--format=%t"]
        deadline = time.monotonic() + 60
        while subprocess.run(seen, env=environment, capture_output=True, text=True).stdout.strip() != "idle":
            if time.monotonic() > deadline:
                pytest.skip("Slurm does not start on this machine")
            time.sleep(0.5)
        yield {name: environment[name] for name in ("SLURM_CONF", "PATH")}
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)


SBIN = f"{os.environ['PATH']}:/usr/sbin:/sbin"
SLURM = """ClusterName=one
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthInfo=socket={folder}/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=localhost NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES State=UP OverSubscribe=FORCE:2
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_slurm_needs_nothing_but_its_configuration(
    small: Repo, small_reproduced: Repo, slurm: dict[str, str], tmp_path: Path
) -> None:
    repo = small.copy(tmp_path / "brittle")
    (tmp_path / "dask").mkdir()
    (tmp_path / "dask/jobqueue.yaml").write_text(
        "jobqueue: {slurm: {cores: 1, memory: 1GB, interface: lo, worker-extra-args: [--resources, GPU=1]}}\n"
    )
    config = {"DASK_CONFIG": str(tmp_path / "dask"), "HOME": str(tmp_path)}
    out = scale(repo, "--jobqueue", "slurm", "--workers", "2", "margin_figures", **slurm, **config)
    assert "4 of 4 stages" in out
    assert part(results(repo), "margin") == part(results(small_reproduced), "margin")
    assert list((repo.path / ".dvc/tmp/scale").glob("dask-worker-*.out"))
    assert not list(repo.path.glob("slurm-*"))


def test_a_worker_killed_in_the_middle_of_a_stage_changes_nothing(
    small: Repo, small_reproduced: Repo, tmp_path: Path
) -> None:
    repo = small.copy(tmp_path / "brittle")
    with ExitStack() as ends:
        address = ends.enter_context(scheduler(tmp_path))
        folders = (tmp_path / "one", tmp_path / "two")
        both = [ends.enter_context(machine(address, folder, None, "--nthreads", "1")) for folder in folders]
        run = ends.enter_context(begun(repo, "--scheduler", address, "margin_figures"))

        def there() -> list[psutil.Process]:
            return [stage for each in both for stage in stages_of(psutil.Process(each.pid), "margin_train")]

        (stage,) = until(there, "margin_train has not begun")
        # stage < the shell of DVC's command < dvc < the guard < the worker
        worker = next(parent for parent in stage.parents() if "multiprocessing" in " ".join(parent.cmdline()))
        worker.send_signal(signal.SIGKILL)
        until(lambda: not stage.is_running() or stage.status() == psutil.STATUS_ZOMBIE, "the stage outlives its worker")
        out, _ = run.communicate(timeout=600)
    assert run.returncode == 0, out
    made = results(repo)
    assert part(made, "margin") == part(results(small_reproduced), "margin")
    assert not list(repo.path.rglob(".*.tmp"))
    assert repo.stages_run("dvc", "repro", "margin_figures") == []


def test_a_scheduler_that_goes_away_is_told_in_one_line_and_the_next_run_goes_on(small: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "brittle")
    with ExitStack() as ends:
        with scheduler(tmp_path) as address:
            ends.enter_context(machine(address, tmp_path / "one", None, "--nthreads", "1"))
            run = ends.enter_context(begun(repo, "--scheduler", address, "margin_train", **HASTE))
            until(lambda: list((tmp_path / "one").rglob("sandbox-*/models")), "margin_train has not begun")
        out, _ = run.communicate(timeout=120)
    assert run.returncode == 2, out
    assert out.splitlines()[-1] == "Dask's scheduler is gone; start it and run the same command again to resume"
    assert "Traceback" not in out
    assert "2 of 2 stages" in scale(repo, "margin_train")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--scheduler", "tcp://127.0.0.1:9"], "--scheduler tcp://127.0.0.1:9: no answer"),
        (
            ["--jobqueue", "slurm"],
            "--jobqueue slurm: You must specify how much cores and memory per job you want to use",
        ),
    ],
)
def test_a_cluster_that_is_not_there_is_one_line(small: Repo, tmp_path: Path, options: list[str], line: str) -> None:
    repo = small.copy(tmp_path / "brittle")
    out = scale(repo, *options, code=2, **HASTE)
    assert line in out.splitlines()[-1]
    assert "Traceback" not in out


def test_stages_ask_for_what_they_need(small: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "brittle")
    text = (repo.path / "dvc.yaml").read_text()
    head = "  margin_attack:\n"
    (repo.path / "dvc.yaml").write_text(text.replace(head, f"{head}    meta: {{resources: {{MEMORY: 8e9}}}}\n"))
    nodes = {node.name: node for node in Pipeline(repo.path).out_of_date(["margin_figures"])}
    assert list(nodes) == HEADLINE
    assert nodes["params"].first
    assert nodes["margin_train"].resources == {"GPU": 1}  # it reads `device`
    assert nodes["margin_attack"].resources == {"MEMORY": 8e9}
    small_worker, gpu = {"STAGE": 1, "MEMORY": 4e9}, {"STAGE": 1, "MEMORY": 1.6e10, "GPU": 1}
    assert demanded(nodes["margin_train"], [small_worker]) == {}
    assert demanded(nodes["margin_train"], [small_worker, gpu]) == {"GPU": 1}
    with pytest.raises(BadInput, match=r"stage margin_attack needs MEMORY 8e\+09; no worker offers that"):
        demanded(nodes["margin_attack"], [small_worker])


def test_stages_go_to_workers_that_are_free_and_can_run_them_the_most_urgent_first() -> None:
    demands = {"long": {}, "gpu": {"GPU": 1.0}, "large": {"MEMORY": 8e9}, "short": {}}
    plain, gpu = {"STAGE": 1.0, "MEMORY": 4e9}, {"STAGE": 1.0, "MEMORY": 1.6e10, "GPU": 1.0}
    assert placed(demands, demands, []) == []
    assert placed(demands, demands, [plain]) == ["long"]
    assert placed(demands, demands, [gpu, plain]) == ["long", "gpu"]  # the first does not take the GPU's place
    assert placed(demands, demands, [plain, plain]) == ["long", "short"]  # nobody waits behind those that cannot run
    assert placed(demands, demands, [gpu, gpu, plain]) == ["long", "gpu", "large"]
    assert placed(demands, demands, [gpu, gpu, plain, plain]) == list(demands)


def test_a_task_carries_what_git_has_and_names_what_the_cache_has(small_reproduced: Repo, tmp_path: Path) -> None:
    repo = small_reproduced.copy(tmp_path / "brittle")
    repo.set(margin__slack=1.3)
    repo.run("dvc", "repro", "--single-item", "params")
    pipeline = Pipeline(repo.path)
    attack, figures = pipeline.out_of_date(["margin_figures"])
    task, last = pipeline.task(attack), pipeline.task(figures)
    assert task.cached == ("data/margin.safetensors", "models/margin.safetensors")
    assert set(task.entries) >= {"margin_data", "margin_train", "margin_attack"}
    assert "metrics/margin.json" in task.uncached
    assert (figures.upstream, last.cached) == (("margin_attack",), ())
    kept = pipeline.kept_for([attack, figures], [task, last])
    assert kept == ["data/margin.safetensors", "models/margin.safetensors"]


def test_a_folder_of_tables_stands_for_all_that_its_cells_made(fresh: Repo) -> None:
    pipeline = Pipeline(fresh.path)
    nodes = {node.name: node for node in pipeline.out_of_date(["cross_probe", "slabs_probe"])}
    for stage, folder in (("cross_probe", "models/cross/"), ("slabs_probe", "models/slabs/")):
        cells = [name for name in nodes if name.startswith(stage.replace("probe", "train@"))]
        models = [path for path in pipeline.task(nodes[stage]).cached if path.startswith(folder)]
        assert len(models) == len(cells) > 1


def test_stages_have_the_variables_that_they_have_in_dvc_repro(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask would take back memory at once, at half the speed. Threads are a stage's own, unless somebody says so."""
    monkeypatch.delenv("BRITTLE_THREADS", raising=False)
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")  # as in a worker of Dask's

    def seen(options: Options) -> dict[str, str]:
        return Host(tmp_path, "cache", "token", {}, options.environment).variables(apart=False)

    assert "MALLOC_TRIM_THRESHOLD_" not in seen(Options())
    assert "BRITTLE_THREADS" not in seen(Options())
    assert seen(Options(threads=3))["BRITTLE_THREADS"] == "3"
    monkeypatch.setenv("BRITTLE_THREADS", "5")
    assert seen(Options(scheduler="tcp://host:8786"))["BRITTLE_THREADS"] == "5"


def test_credentials_stay_where_they_are(small: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "brittle")
    repo.run("dvc", "remote", "add", "--default", "storage", "s3://bucket/brittle")
    repo.run("dvc", "remote", "modify", "--local", "storage", "secret_access_key", "hidden")
    assert Pipeline(repo.path).remotes() == {"default": "storage", "all": {"storage": {"url": "s3://bucket/brittle"}}}
