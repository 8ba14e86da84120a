"""Who does the work: processes of this machine, a Dask cluster that runs already, or jobs of a batch system."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dask.config
from dask.utils import parse_bytes
from distributed import Client, Nanny, Scheduler, SpecCluster
from distributed.deploy.cluster import Cluster
from distributed.security import Security
from distributed.system import MEMORY_LIMIT

from brittle.params.base import BadInput

QUIET = {
    # Dask would set variables for its workers (and, in passing, here): but stages are to run as in `dvc repro`.
    "distributed.nanny.pre-spawn-environ": {},
    # It watches itself a hundred times a second, in every process: a tenth of a core that stages can use.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
BATCH_SYSTEMS = ("htcondor", "lsf", "oar", "pbs", "sge", "slurm")


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

    workers: int
    threads: int | None = None  # of a stage, if not its own number
    scheduler: str | None = None
    jobqueue: str | None = None
    resources: dict[str, float] | None = None  # of each worker on this machine

    @property
    def environment(self) -> dict[str, str]:
        """What a stage has to know of here, wherever it runs."""
        threads = self.threads or os.environ.get("BRITTLE_THREADS")
        return {"BRITTLE_THREADS": str(threads)} if threads else {}


@contextmanager
def connected(wanted: Wanted) -> Iterator[Client]:
    """A client of these workers. What was started here is stopped here."""
    if wanted.scheduler:
        try:
            client = Client(wanted.scheduler)
        except (OSError, ValueError) as error:
            raise BadInput(f"--scheduler {wanted.scheduler}: nobody answers ({error})") from None
        with client:
            yield client
        return
    with _batch(wanted) if wanted.jobqueue else _processes(wanted) as cluster, Client(cluster) as client:
        yield client


def _batch(wanted: Wanted) -> Cluster:
    """Jobs as Dask's configuration describes them: jobqueue.slurm in ~/.config/dask/jobqueue.yaml, for one."""
    import dask_jobqueue  # not earlier: it takes Ctrl-C for itself

    kinds = {name.removesuffix("Cluster").lower(): name for name in dir(dask_jobqueue) if name.endswith("Cluster")}
    logs = dask.config.get(f"jobqueue.{wanted.jobqueue}.log-directory", None) or str(Path(".dvc/tmp/scale").absolute())
    try:
        cluster = getattr(dask_jobqueue, kinds[wanted.jobqueue])(log_directory=logs)
    except (ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(
            f"--jobqueue {wanted.jobqueue}: {reason} (in ~/.config/dask/jobqueue.yaml, jobqueue.{wanted.jobqueue})"
        ) from None
    cluster.scale(jobs=wanted.workers)
    return cluster


def _processes(wanted: Wanted) -> Cluster:
    """Processes on this machine, behind keys that exist for this run alone: nobody else here can give them work."""
    security = Security.temporary()
    resources = {"MEMORY": MEMORY_LIMIT / wanted.workers} | (wanted.resources or {})
    options = {
        "host": "127.0.0.1",
        "nthreads": 1,
        "memory_limit": 0,  # a stage is a process of its own, which a worker's limit does not reach
        "resources": resources,
        "security": security,
        "protocol": "tls://",
        "silence_logs": logging.CRITICAL,
    }
    scheduler = {
        "cls": Scheduler,
        "options": {
            "host": "127.0.0.1",
            "protocol": "tls://",
            "security": security,
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",  # any port: there may be another run
        },
    }
    # Ctrl-C reaches every process of a terminal. Workers are to wait for what this one tells them.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        gpus = [{"env": {"CUDA_VISIBLE_DEVICES": str(i)}} if "GPU" in resources else {} for i in range(wanted.workers)]
        workers = {f"worker-{i}": {"cls": Nanny, "options": options | gpu} for i, gpu in enumerate(gpus)}
        with dask.config.set(QUIET):
            return SpecCluster(workers, scheduler, security=security, silence_logs=logging.CRITICAL)
    finally:
        signal.signal(signal.SIGINT, before)


def amounts(text: str) -> dict[str, float]:
    """GPU=1,MEMORY=64GB as numbers."""
    try:
        pairs = dict(part.split("=") for part in text.split(","))
        return {name.strip(): float(parse_bytes(amount.strip())) for name, amount in pairs.items()}
    except ValueError:
        raise BadInput(f"--resources {text}: must be like GPU=1,MEMORY=64GB") from None
