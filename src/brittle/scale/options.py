"""The options of the command line."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from brittle.arguments import Parser
from brittle.core import machine
from brittle.core.errors import BadInput
from brittle.scale.local import cores

BATCH_SYSTEMS = ("htcondor", "lsf", "oar", "pbs", "sge", "slurm")
UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@dataclass(frozen=True)
class Options:
    stages: tuple[str, ...] = ()
    workers: int = 1
    threads: int | None = None  # of a stage, if not its own number
    scheduler: str | None = None
    jobqueue: str | None = None
    resources: dict[str, float] | None = None  # what this machine offers beside its cores

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that a stage needs wherever it runs."""
        return {"BRITTLE_THREADS": str(self.threads)} if self.threads else {}


def read(words: list[str]) -> Options:
    """Read the options of the command line."""
    parser = Parser(
        prog="python -m brittle.scale",
        description="Do what `dvc repro` does, with many stages at once, and leave the same dvc.lock.",
    )
    parser.add_argument("stages", nargs="*", help="only these, and what they depend on (as in `dvc repro`)")
    parser.add_argument(
        "--workers", type=int, default=cores(), help="stages at once, or jobs (default: one for each core, %(default)s)"
    )
    parser.add_argument("--threads", type=int, help="threads of a stage (default: one, for the same bytes)")
    parser.add_argument("--resources", type=amounts, help="what this machine offers, like GPU=2,MEMORY=64GB")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--scheduler", metavar="ADDRESS", help="address of a running Dask cluster: tcp://HOST:8786")
    where.add_argument("--jobqueue", choices=BATCH_SYSTEMS, help="submit workers as jobs, as Dask's configuration says")
    given = vars(parser.parse_args(words))
    for name in ("workers", "threads"):
        if given[name] is not None and given[name] < 1:
            raise BadInput(f"--{name} {given[name]}: must be an integer ≥ 1")
    if given["threads"] is None and "BRITTLE_THREADS" in os.environ:
        given["threads"] = machine.threads()
    return Options(**given | {"stages": tuple(given["stages"])})


def amounts(text: str) -> dict[str, float]:
    """Parse resources such as GPU=1,MEMORY=64GB."""
    found = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(\d+(?:\.\d*)?(?:e\d+)?)\s*([kmgt]i?)?b?\s*", part, re.IGNORECASE)
        if not match:
            raise BadInput(f"--resources {text}: must be like GPU=1,MEMORY=64GB")
        found[match[1]] = float(match[2]) * UNITS[(match[3] or "").lower()]
    return found
