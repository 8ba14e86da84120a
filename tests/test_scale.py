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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from brittle.core.errors import BadInput
from brittle.scale.estimate import critical_path, expected, makespan, tails
from brittle.scale.graph import Pipeline
from brittle.scale.run import demanded, placed
from brittle.scale.workers import Wanted, connected
from conftest import ENV, MODULES, Repo
from tiny import make_tiny

SCALE = [sys.executable, "-m", "brittle.scale"]
HASTE = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s"}  # before a scheduler that does not answer is given up
HEADLINE = ["params", "margin_data", "margin_train", "margin_attack", "margin_figures"]


def results(repo: Repo) -> dict[str, bytes]:
    """The lock files and everything that stages make."""
    files = [path for room in ("data", "models", "metrics", "plots") for path in (repo.path / room).rglob("*")]
    made = [path for path in files if path.is_file() and path.name != ".gitignore"]
    locks = [repo.path / "dvc.lock", *repo.path.glob("pipelines/*/dvc.lock")]
    return {str(path.relative_to(repo.path)): path.read_bytes() for path in (*locks, *made)}


def part(made: dict[str, bytes], word: str) -> dict[str, bytes]:
    return {path: content for path, content in made.items() if word in path}


def scale(repo: Repo, *options: str, code: int = 0, timeout: float = 600, **environment: str) -> str:
    done = subprocess.run(
        [*SCALE, *options], cwd=repo.path, env=ENV | environment, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def until(condition: Callable[[], object], what: str, seconds: float = 120) -> object:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found


def stages_of(process: psutil.Process, name: str) -> list[psutil.Process]:
    """Processes of that stage below this one."""
    found = []
    for child in process.children(recursive=True):
        try:
            if MODULES[name] in child.cmdline() and "python" in child.cmdline()[0]:
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


@contextmanager
def begun(repo: Repo, *options: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """`brittle.scale` under way."""
    with subprocess.Popen(
        [*SCALE, *options],
        cwd=repo.path,
        env=ENV | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_two_workers_leave_the_workspace_as_dvc_repro_does(small: Repo, small_reproduced: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "brittle")
    out = scale(repo, "--workers", "2")
    assert "12 of 12 stages" in out  # params was here
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


@contextmanager
def machine(scheduler: str, folder: Path, hidden: Path | None, *options: str) -> Iterator[None]:
    """A Dask worker with folders and a home of its own, that does not see `hidden`, as on another machine."""
    folder.mkdir()
    dask = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--local-directory", str(folder), *options]
    hide = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {hidden} && exec "$@"', "sh"] if hidden else []
    environment = ENV | {"HOME": str(folder)}
    with subprocess.Popen(
        [*hide, *dask], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
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
    with begun(repo, "--workers", "2", "margin_figures") as run:
        whole = psutil.Process(run.pid)
        (stage,) = until(lambda: stages_of(whole, "margin_train"), "margin_train has not begun")
        # stage < the shell of DVC's command < dvc < the guard < the worker
        worker = next(parent for parent in stage.parents() if "multiprocessing" in " ".join(parent.cmdline()))
        worker.send_signal(signal.SIGKILL)
        until(lambda: not stage.is_running() or stage.status() == psutil.STATUS_ZOMBIE, "the stage outlives its worker")
        out, _ = run.communicate(timeout=300)
    assert run.returncode == 0, out
    made = results(repo)
    assert part(made, "margin") == part(results(small_reproduced), "margin")
    assert not list(repo.path.rglob(".*.tmp"))
    assert repo.stages_run("dvc", "repro", "margin_figures") == []


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
    out = scale(repo, "--workers", "2", "margin_train")
    assert "ran again here" not in out
    made = repo.path / "models/margin.safetensors"
    assert made.read_bytes() == (small_reproduced.path / "models/margin.safetensors").read_bytes()
    made.unlink()
    lock.write_text(lock.read_text().replace(model, "f" * 32))  # as if it had been stopped before the model came home
    assert "margin_train  (from the run cache)" in scale(repo, "--workers", "2", "margin_figures")
    assert results(repo)["dvc.lock"] == results(small_reproduced)["dvc.lock"]
    assert repo.stages_run("dvc", "repro", "margin_figures") == []


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
    assert re.search(
        r"^stopped: \d of 4 stages are in the workspace, .*; run the same command again", out, re.MULTILINE
    )
    assert "Traceback" not in out
    assert psutil.wait_procs(below, timeout=10)[1] == []  # nobody goes on
    out = scale(repo, "--workers", "2", "margin_figures")
    assert part(results(repo), "margin") == part(results(small_reproduced), "margin")
    assert len(re.findall(r"s  margin_data$", out, re.MULTILINE)) == 0  # it was done


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
        (["--workers", "0"], "--workers 0: must be an integer ≥ 1"),
        (["--scheduler", "tcp://127.0.0.1:9"], "--scheduler tcp://127.0.0.1:9: no answer"),
        (["no_such_stage"], "no_such_stage"),
        (
            ["--jobqueue", "slurm"],
            "--jobqueue slurm: You must specify how much cores and memory per job you want to use",
        ),
    ],
)
def test_a_wrong_option_is_one_line(small: Repo, tmp_path: Path, options: list[str], line: str) -> None:
    repo = small.copy(tmp_path / "brittle")
    out = scale(repo, *options, code=2, **HASTE)
    assert line in out.splitlines()[-1]
    assert "Traceback" not in out


def test_a_wrong_parameter_is_told_before_any_worker_starts(small: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "brittle")
    repo.set(d=-5)
    assert scale(repo, code=2) == "params.yaml: d = -5: must be an integer ≥ 2\n"


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
    assert attack.task.cached == ("data/margin.safetensors", "models/margin.safetensors")
    assert set(attack.task.entries) >= {"margin_data", "margin_train", "margin_attack"}
    assert "metrics/margin.json" in attack.task.uncached
    assert (figures.upstream, figures.task.cached) == (("margin_attack",), ())
    assert pipeline.kept_for([attack, figures]) == ["data/margin.safetensors", "models/margin.safetensors"]


def test_a_folder_of_tables_stands_for_all_that_its_cells_made(fresh: Repo) -> None:
    nodes = {node.name: node for node in Pipeline(fresh.path).out_of_date(["cross_probe", "slabs_probe"])}
    for stage, folder in (("cross_probe", "models/cross/"), ("slabs_probe", "models/slabs/")):
        cells = [name for name in nodes if name.startswith(stage.replace("probe", "train@"))]
        models = [path for path in nodes[stage].task.cached if path.startswith(folder)]
        assert len(models) == len(cells) > 1


def test_stages_have_the_variables_that_they_have_in_dvc_repro(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask would take back memory at once, at half the speed. Threads are a stage's own, unless somebody says so."""
    for name in ("BRITTLE_THREADS", "MALLOC_TRIM_THRESHOLD_"):
        monkeypatch.delenv(name, raising=False)
    wanted = Wanted(workers=1)
    with connected(wanted) as client:
        (there,) = client.run(lambda: set(os.environ)).values()
        for seen in (there, set(os.environ)):
            assert "MALLOC_TRIM_THRESHOLD_" not in seen
    assert wanted.environment == {}
    assert Wanted(workers=2, threads=3).environment == {"BRITTLE_THREADS": "3"}
    monkeypatch.setenv("BRITTLE_THREADS", "5")
    assert Wanted(workers=2, scheduler="tcp://host:8786").environment == {"BRITTLE_THREADS": "5"}


def test_each_process_here_has_a_gpu_of_its_own() -> None:
    with connected(Wanted(workers=2, resources={"GPU": 1.0})) as client:
        client.wait_for_workers(2)
        seen = client.run(lambda: os.environ["CUDA_VISIBLE_DEVICES"])
        assert sorted(seen.values()) == ["0", "1"]
        offered = client.scheduler_info(n_workers=-1)["workers"].values()
        assert [worker["resources"]["GPU"] for worker in offered] == [1.0, 1.0]


def test_credentials_stay_where_they_are(small: Repo, tmp_path: Path) -> None:
    repo = small.copy(tmp_path / "brittle")
    repo.run("dvc", "remote", "add", "--default", "storage", "s3://bucket/brittle")
    repo.run("dvc", "remote", "modify", "--local", "storage", "secret_access_key", "hidden")
    assert Pipeline(repo.path).remotes() == {"default": "storage", "all": {"storage": {"url": "s3://bucket/brittle"}}}


# Time left, and the estimate for many workers.
@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, list[str]], dict[str, float]]:
    count = draw(st.integers(1, 8))
    names = [str(i) for i in range(count)]
    upstream = {
        name: draw(st.lists(st.sampled_from(names[:i]), unique=True)) if i else [] for i, name in enumerate(names)
    }
    return upstream, {name: draw(st.floats(0.1, 10)) for name in names}


@given(graphs(), st.integers(1, 4))
def test_a_schedule_lies_between_what_no_schedule_beats_and_graham_s_bound(
    graph: tuple[dict[str, list[str]], dict[str, float]], workers: int
) -> None:
    upstream, seconds = graph
    total, (longest, chain) = sum(seconds.values()), critical_path(upstream, seconds)
    assert longest == pytest.approx(sum(seconds[stage] for stage in chain))
    assert all(before in upstream[after] for before, after in pairwise(chain))
    taken = makespan(upstream, seconds, workers)
    assert taken >= max(longest, total / workers) - 1e-9
    assert taken <= total / workers + (1 - 1 / workers) * longest + 1e-9  # Graham 1969
    assert makespan(upstream, seconds, 1) == pytest.approx(total)
    assert makespan(upstream, seconds, len(seconds)) == pytest.approx(longest)


def test_the_longest_chain_goes_first_and_larger_cells_are_taken_for_longer() -> None:
    stages = ["train@10", "train@40", "attack@10", "attack@40", "train@cnn", "end"]
    assert expected(stages, {}, 8.0) == dict(zip(stages, [2, 8, 2, 8, 8, 8], strict=True))
    assert expected(stages, {"train@40": 20.0, "end": 4.0}, 8.0)["train@10"] == 3.0  # a quarter of 12, the mean
    upstream = {"a": [], "b": [], "c": ["a"], "d": ["b", "c"]}
    assert tails(upstream, {"a": 1.0, "b": 3.0, "c": 4.0, "d": 1.0}) == {"a": 6.0, "b": 4.0, "c": 5.0, "d": 1.0}


def test_what_runs_already_counts_with_what_it_still_needs() -> None:
    upstream = {"a": [], "b": ["a"], "c": []}
    assert makespan(upstream, {"a": 4.0, "b": 1.0, "c": 3.0}, 2, running={"a": 2.0}) == 3.0
    assert makespan({}, {}, 2) == 0.0
