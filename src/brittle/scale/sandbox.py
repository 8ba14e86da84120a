"""Run one stage on a worker with DVC, in a separate folder that contains exactly what the stage depends on.

The folder (a sandbox) is a separate DVC project with that stage. Its cache is the workspace's if the worker sees the
workspace, and otherwise the worker's own, which pulls from and pushes to the DVC remote. Either way the result is in
DVC's cache and run cache, from which the workspace's own DVC takes it. So no worker ever touches the workspace:
one that dies leaves nothing half-written there, and there is no contention for DVC's locks.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker
from ruamel.yaml import YAML

from brittle.processes import guarded
from brittle.scale.task import Task, pack, zipped

VERSION = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()  # the run and its workers must have the same version
DVC = "import json, sys; from dvc.cli import main; sys.exit(next(filter(None, map(main, json.loads(sys.argv[1]))), 0))"


@dataclass(frozen=True)
class Outcome:
    """What later stages need to know about a stage that has run."""

    stage: str
    entry: dict[str, Any] = field(repr=False)  # its entry in dvc.lock
    packed: bytes = field(repr=False)  # the uncached outputs
    ran: bool  # False if its result was in the run cache
    seconds: float


class StageFailed(Exception):
    def __init__(self, stage: str, worker: str, code: int, log: str) -> None:
        super().__init__(stage, worker, code, log)
        self.stage, self.worker, self.code, self.log = stage, worker, code, log


class Host(WorkerPlugin):
    """What every worker has to know when it joins: where the workspace is, and that it runs one stage at a time."""

    def __init__(
        self, root: Path, cache: str, token: str, remotes: dict[str, Any], environment: dict[str, str]
    ) -> None:
        self.name, self.version = f"brittle-{token}", VERSION  # several runs may share a cluster
        self.root, self.cache, self.token = root, cache, token
        self.remotes, self.environment = remotes, environment

    async def setup(self, worker: Worker) -> None:
        if self.version != VERSION:
            raise RuntimeError(f"{worker.address} has another version of brittle; install the same one there")
        self.running: set[subprocess.Popen[str]] = set()
        self.stopping = False
        self.worker = worker
        memory = worker.memory_manager.memory_limit or 0
        await worker.set_resources(**({"STAGE": 1, "MEMORY": memory} | dict(worker.state.total_resources)))

    @property
    def shares(self) -> bool:
        """Whether this machine sees the workspace."""
        mark = self.root / ".dvc/tmp/scale/token"
        return mark.is_file() and mark.read_text(encoding="utf-8") == self.token

    @property
    def scratch(self) -> Path:
        """A folder for a cache and checkpoints. It outlives the worker, unlike the worker's own folder beside it."""
        return Path(self.worker.local_directory).parent / "brittle"

    def commands(self, task: Task, apart: bool) -> list[list[str]]:
        """The DVC commands to run, one after the other."""
        if apart:
            inputs, repro = "pull", ["repro", "--single-item", "--pull", task.stage]
            results = [["push", "--quiet", "--run-cache", task.stage]]
        else:
            inputs, repro, results = "checkout", ["repro", "--single-item", task.stage], []
        return [*([[inputs, "--quiet", *task.cached]] if task.cached else []), repro, *results]

    def config(self, apart: bool) -> str:
        cache = self.scratch / "cache" if apart else self.cache
        lines = ["[core]", "no_scm = true", "analytics = false", "check_update = false"]
        if apart:
            lines.append(f"remote = {self.remotes['default']}")
        lines += ["[cache]", f"dir = {cache}", "type = reflink,hardlink,symlink,copy"]
        for name, settings in self.remotes["all"].items() if apart else ():
            lines += [f"['remote \"{name}\"']", *(f"{key} = {value}" for key, value in settings.items())]
        return "\n".join(lines) + "\n"

    def variables(self, apart: bool) -> dict[str, str]:
        checkpoints = (self.scratch if apart else self.root) / ".checkpoints"
        own = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "BRITTLE_CHECKPOINTS": str(checkpoints),
            "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin while waiting slow down other stages
            "MALLOC_TRIM_THRESHOLD_": None,  # set by Dask for its own data; it makes training twice as slow
        }
        return {key: value for key, value in (os.environ | self.environment | own).items() if value is not None}

    def guarded(self, command: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, str]:
        """Run a command in a process group that dies with this worker; return the exit code and all it printed."""
        process = guarded(command, folder, environment, stdout=subprocess.PIPE)
        self.running.add(process)
        try:
            if self.stopping:
                self.signal(signal.SIGKILL)
            printed = process.stdout.read()
            return process.wait(), printed
        finally:
            self.running.discard(process)
            process.stdin.close()

    def signal(self, what: signal.Signals) -> None:
        self.stopping = True
        for process in list(self.running):
            try:
                os.killpg(process.pid, what)
            except ProcessLookupError:
                self.running.discard(process)


def run(task: Task, name: str, apart: bool, *upstream: Outcome) -> Outcome:
    """Make the folder, run the stage in it, and return what later stages need."""
    host: Host = get_worker().plugins[name]
    begun = time.monotonic()
    if not (apart or host.shares):
        raise StageFailed(task.stage, host.worker.address, 2, f"{host.root}: this worker does not see the workspace\n")
    folder = Path(tempfile.mkdtemp(prefix="sandbox-", dir=host.worker.local_directory))
    try:
        entries = task.entries | {outcome.stage: outcome.entry for outcome in upstream}
        if not (apart or task.kept):
            entries.pop(task.stage, None)  # otherwise DVC would look for those results and not in its run cache
        lock = io.StringIO()
        YAML(typ="safe", pure=True).dump({"schema": "2.0", "stages": entries}, lock)
        own = {".dvc/config": host.config(apart), "dvc.yaml": task.pipeline, "dvc.lock": lock.getvalue()}
        for packed in (task.packed, *(outcome.packed for outcome in upstream), zipped(own)):
            zipfile.ZipFile(io.BytesIO(packed)).extractall(folder)
        command = [sys.executable, "-c", DVC, json.dumps(host.commands(task, apart))]
        code, log = host.guarded(command, folder, host.variables(apart))
        if code:
            raise StageFailed(task.stage, host.worker.address, code, log)
        locked = YAML(typ="safe", pure=True).load(folder / "dvc.lock")["stages"]
        made = [
            file for path in task.uncached for file in (folder / path, *(folder / path).rglob("*")) if file.is_file()
        ]
        ran = f"Running stage '{task.stage}'" in log
        return Outcome(task.stage, locked[task.stage], pack(folder, made), ran, time.monotonic() - begun)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
