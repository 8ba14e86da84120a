"""`python -m brittle.scale`: do what `dvc repro` does, on many workers at once, with the same resulting dvc.lock."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from brittle.core.errors import BadInput
from brittle.core.params import load
from brittle.params import Schema

try:
    from brittle.scale.run import PipelineRun, Stopped
    from brittle.scale.workers import BATCH_SYSTEMS, Wanted, amounts
except ModuleNotFoundError as error:  # without the extra [cluster]
    print(f"{error.name} is missing: run `make testing`, or pip install -e '.[cluster]'", file=sys.stderr)
    sys.exit(2)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m brittle.scale", description=__doc__)
    parser.add_argument("stages", nargs="*", help="only these, and what they depend on (as in `dvc repro`)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes or jobs (default: %(default)s)")
    parser.add_argument("--threads", type=int, help="threads of a stage (default: its own number, for the same bytes)")
    parser.add_argument("--resources", type=amounts, help="of each local process, like GPU=1,MEMORY=64GB")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--scheduler", metavar="ADDRESS", help="address of a running Dask cluster: tcp://HOST:8786")
    where.add_argument("--jobqueue", choices=BATCH_SYSTEMS, help="submit workers as jobs, as Dask's configuration says")
    return parser.parse_args()


def main() -> int:
    try:
        chosen = options()
        for name in ("workers", "threads"):
            if getattr(chosen, name) is not None and getattr(chosen, name) < 1:
                raise BadInput(f"--{name} {getattr(chosen, name)}: must be an integer ≥ 1")
        load(Schema)  # check params.yaml before anything is changed
        wanted = Wanted(chosen.workers, chosen.threads, chosen.scheduler, chosen.jobqueue, chosen.resources)
        return PipelineRun(Path.cwd(), wanted).go(chosen.stages)
    except BadInput as error:
        print(error, file=sys.stderr)
        return 2
    except Stopped as stopped:
        print(stopped, file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
