"""How long each stage takes, the longest first.

python -m brittle.tools.times            # here, beside the table in Git (pipelines/seconds.csv)
python -m brittle.tools.times --write    # the seconds of this machine become that table
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.scale.times import REFERENCE, Times


def shown(table: pd.DataFrame) -> str:
    """A line for each stage, and the sums."""
    lines = [f"{'stage':34} {'here':>8} {'in Git':>8}   seconds"]
    for row in [*table.itertuples(index=False), ("sum", table["reference"].sum(), table["here"].sum())]:
        name, reference, here = row
        lines.append(f"{name:34} {_number(here):>8} {_number(reference):>8}")
    return "\n".join(lines)


def _number(seconds: float) -> str:
    return "" if pd.isna(seconds) else f"{seconds:.1f}"


def main(words: list[str]) -> None:
    times = Times(Path.cwd())
    if words not in ([], ["--write"]):
        raise BadInput(f"{words[0]}: give --write, or nothing")
    if not words:
        print(shown(times.table()))
        return
    if not times.here:
        raise BadInput("no stage has been timed here; `make repro` does it")
    seconds = sorted(times.here.items())
    store.save_table(REFERENCE, pd.DataFrame(seconds, columns=["stage", "seconds"]).round(1))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
