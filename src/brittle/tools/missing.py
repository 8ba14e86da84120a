"""`python -m brittle.tools.missing`: after `dvc repro --keep-going`, say which stages did not run, and why."""

from __future__ import annotations

import json
import subprocess
import sys

from brittle.core.progress import FOLDER

FETCHED = ("mnist", "cifar10")


def main() -> int:
    """Return 0 if nothing is out of date; otherwise print the stages and why data sets could not be fetched."""
    done = subprocess.run([sys.executable, "-m", "dvc", "status", "--json"], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip(), file=sys.stderr)
        return done.returncode
    stages = [name for name in json.loads(done.stdout or "{}") if not name.endswith(".dvc")]
    if not stages:
        return 0
    print(f"Not up to date: {', '.join(stages)}", file=sys.stderr)
    for name in FETCHED:
        reason = FOLDER / f"missing-{name}.txt"
        if any(stage.endswith(f":{name}") for stage in stages) and reason.exists():
            print(reason.read_text(encoding="utf-8").strip(), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
