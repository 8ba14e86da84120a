"""The workers: processes on this machine, a Dask cluster that is already running, or jobs of a batch system."""

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

from brittle.core.errors import BadInput

QUIET = {
    # Dask would set environment variables for its workers (and also here), but stages must run as in `dvc repro`.
    "distributed.nanny.pre-spawn-environ": {},
    # Dask profiles itself a hundred times a second in every process, which costs a tenth of a core.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}
BATCH_SYSTEMS = ("htcondor", "lsf", "oar", "pbs", "sge", "slurm")


@dataclass(frozen=True)
class Wanted:
    """The options of the command line."""

    workers: int
    threads: int | None = None  # threads per stage, if not the stage's own number
    scheduler: str | None = None
    jobqueue: str | None = None
    resources: dict[str, float] | None = None  # what each worker on this machine offers

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that a stage needs wherever it runs."""
        threads = self.threads or os.environ.get("BRITTLE_THREADS")
        return {"BRITTLE_THREADS": str(threads)} if threads else {}


@contextmanager
def connected(wanted: Wanted) -> Iterator[Client]:
    """A client of these workers. Workers that are started here are stopped at the end."""
    if wanted.scheduler:
        try:
            client = Client(wanted.scheduler)
        except (OSError, ValueError) as error:
            raise BadInput(f"--scheduler {wanted.scheduler}: no answer ({error})") from None
        with client:
            yield client
        return
    with _batch(wanted) if wanted.jobqueue else _processes(wanted) as cluster, Client(cluster) as client:
        yield client


def _batch(wanted: Wanted) -> Cluster:
    """Jobs as described in Dask's configuration, for example jobqueue.slurm in ~/.config/dask/jobqueue.yaml."""
    import dask_jobqueue  # imported here because it changes how Ctrl-C is handled

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
    """Processes on this machine, with keys that exist only for this run, so that nobody else can give them work."""
    security = Security.temporary()
    resources = {"MEMORY": MEMORY_LIMIT / wanted.workers} | (wanted.resources or {})
    options = {
        "host": "127.0.0.1",
        "nthreads": 1,
        "memory_limit": 0,  # no limit: a stage is a separate process, to which a worker's limit does not apply
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
    # Ctrl-C reaches every process of a terminal. Workers must ignore it and wait for instructions from this process.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        gpus = [{"env": {"CUDA_VISIBLE_DEVICES": str(i)}} if "GPU" in resources else {} for i in range(wanted.workers)]
        workers = {f"worker-{i}": {"cls": Nanny, "options": options | gpu} for i, gpu in enumerate(gpus)}
        with dask.config.set(QUIET):
            return SpecCluster(workers, scheduler, security=security, silence_logs=logging.CRITICAL)
    finally:
        signal.signal(signal.SIGINT, before)


def amounts(text: str) -> dict[str, float]:
    """Parse resources such as GPU=1,MEMORY=64GB."""
    try:
        pairs = dict(part.split("=") for part in text.split(","))
        return {name.strip(): float(parse_bytes(amount.strip())) for name, amount in pairs.items()}
    except ValueError:
        raise BadInput(f"--resources {text}: must be like GPU=1,MEMORY=64GB") from None
