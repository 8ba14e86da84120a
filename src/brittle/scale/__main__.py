"""`python -m brittle.scale`: do what `dvc repro` does, with many stages at once, with the same resulting dvc.lock.

On this machine as many stages run side by side as it has cores; with --scheduler or --jobqueue they run on a cluster.
"""

from __future__ import annotations

import sys
from pathlib import Path

from brittle.core.errors import BadInput
from brittle.core.params import load
from brittle.params import Schema
from brittle.scale import options
from brittle.scale.local import LocalRun
from brittle.scale.run import Run, Stopped


def chosen(given: options.Options) -> Run:
    if not (given.scheduler or given.jobqueue):
        return LocalRun(Path.cwd(), given.workers, given.environment, given.resources)
    try:
        from brittle.scale.cluster import ClusterRun
    except ModuleNotFoundError as error:  # without the extra [cluster]
        raise BadInput(f"{error.name} is missing: run `make testing`, or pip install -e '.[cluster]'") from None
    return ClusterRun(Path.cwd(), given)


def main(words: list[str]) -> int:
    try:
        given = options.read(words)
        load(Schema)  # check params.yaml before anything is changed
        return chosen(given).go(given.stages)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    except Stopped as stopped:
        print(stopped, file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
