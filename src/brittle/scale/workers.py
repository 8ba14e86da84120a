"""The workers of a cluster: those of a Dask cluster that is already running, or jobs of a batch system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dask.config
from distributed import Client
from distributed.deploy.cluster import Cluster

from brittle.core.errors import BadInput
from brittle.scale.options import Options


@contextmanager
def connected(options: Options) -> Iterator[Client]:
    """A client of these workers. Jobs that are submitted here are cancelled at the end."""
    if options.scheduler:
        try:
            client = Client(options.scheduler)
        except (OSError, ValueError) as error:
            raise BadInput(f"--scheduler {options.scheduler}: no answer ({error})") from None
        with client:
            yield client
        return
    with _batch(options) as cluster, Client(cluster) as client:
        yield client


def _batch(options: Options) -> Cluster:
    """Jobs as described in Dask's configuration, for example jobqueue.slurm in ~/.config/dask/jobqueue.yaml."""
    import dask_jobqueue  # imported here because it changes how Ctrl-C is handled

    kinds = {name.removesuffix("Cluster").lower(): name for name in dir(dask_jobqueue) if name.endswith("Cluster")}
    logs = dask.config.get(f"jobqueue.{options.jobqueue}.log-directory", None) or str(Path(".dvc/tmp/scale").absolute())
    try:
        cluster = getattr(dask_jobqueue, kinds[options.jobqueue])(log_directory=logs)
    except (ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(
            f"--jobqueue {options.jobqueue}: {reason} (in ~/.config/dask/jobqueue.yaml, jobqueue.{options.jobqueue})"
        ) from None
    cluster.scale(jobs=options.workers)
    return cluster
