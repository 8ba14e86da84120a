"""Evidence: the tables of long runs, what is missing of them, and how to make it.

    python -m brittle.evidence                        what is there, how old its code is, and what is missing
    python -m brittle.evidence --plan                 what is missing, with predicted hours and its claims
    python -m brittle.evidence --hours 2              make what is missing, cheapest for its claims first, for 2 hours
    python -m brittle.evidence --hours 2 --chapter slabs
    python -m brittle.evidence --preset presets/paper.yaml --hours 24      on a machine with a GPU

The same run goes on where the last one ended; it may be stopped or killed at any moment.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from brittle import long_runs
from brittle.arguments import Parser
from brittle.core.errors import BadInput
from brittle.evidence.age import changed_since
from brittle.evidence.plan import CHAPTERS, PRESET, Plan, plan
from brittle.evidence.run import lasts, run


def listed(of: Plan) -> str:
    """What is there and what is missing, a line each."""
    lines = []
    for path in sorted(long_runs.FOLDER.rglob("*.csv")):
        name = str(path.relative_to(long_runs.FOLDER).with_suffix(""))
        if path not in long_runs.files(name):
            lines.append(f"{name:22} no provenance beside it: not evidence")
            continue
        about = long_runs.provenance(path)
        changed = changed_since(about["commit"], about["stage"])
        age = "code as it is now" if not changed else f"since then {len(changed)} modules changed: {_some(changed)}"
        lines.append(f"{name:22} {about['date']}  {about['hours']:.2f} h  {about['commit'][:9]}  {age}")
    missing = of.missing()
    lines += ["", f"{len(of.units) - len(missing)} of the {len(of.units)} tables that {of.preset} asks for are there"]
    lines += [f"missing: {unit.made} ({', '.join(unit.claims)})" for unit in missing]
    return "\n".join(lines)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def planned(of: Plan, chapter: str) -> str:
    """The missing tables with their predicted time, in the order of making; then the sum of each chapter."""
    lines, paid = [], set()
    sums = dict.fromkeys(CHAPTERS, 0.0)
    for unit in of.missing(chapter):
        seconds = of.seconds(set(unit.needs) - paid)
        paid |= set(unit.needs)
        sums[unit.chapter] += seconds
        lines.append(f"{lasts(seconds):>8}  {unit.made:34} {', '.join(unit.claims)}")
    whole = of.seconds_of(of.units)
    each = ", ".join(f"{name} {seconds / 3600:.1f} h" for name, seconds in sums.items() if seconds)
    lines += ["", f"missing: {sum(sums.values()) / 3600:.1f} h ({each or 'nothing'}); "
              f"all of {of.preset}: {whole / 3600:.1f} h. Predicted, on 2 cores without a GPU."]  # fmt: skip
    return "\n".join(lines)


def main(words: list[str]) -> int:
    parser = Parser(
        "python -m brittle.evidence", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", action="store_true", help="say what would be run, without running it")
    parser.add_argument("--hours", type=float, help="run what is missing for so many hours")
    parser.add_argument("--chapter", default="", choices=CHAPTERS, help="of this chapter alone")
    parser.add_argument("--preset", type=Path, default=PRESET, help="what is asked for")
    given = parser.parse_args(words)
    if given.hours is not None and not 0 < given.hours < 10_000:
        raise BadInput(f"--hours {given.hours:g}: must be a number of hours > 0 and < 10000")
    of = plan(given.preset)
    if given.plan or given.hours is None:
        print(planned(of, given.chapter) if given.plan else listed(of))
        return 0
    return 1 if run(of, given.hours, given.chapter) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped; run the same command again to resume", file=sys.stderr)
        sys.exit(130)
