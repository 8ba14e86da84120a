"""`python -m brittle.claims`: the scoreboard, and what each verdict rests on."""

from __future__ import annotations

import shutil
import sys
import textwrap

import pandas as pd

from brittle import store
from brittle.params.base import BadInput

TEXT = ["id", "verdict", "says", "measured", "paper", "rule", "scale", "source", "rests_on"]


def scoreboard(claims: pd.DataFrame, width: int) -> str:
    """One block a claim: the verdict first, then the number, then what it rests on."""
    lines = []
    for claim in claims.itertuples():
        lines.append(f"{claim.id:4} {claim.verdict:12} {claim.says}  ({claim.source})")
        for name, words in (
            ("measured", claim.measured),
            ("paper", claim.paper),
            ("rule", claim.rule),
            ("rests on", f"{claim.rests_on}: {claim.scale}"),
        ):
            lead = f"{'':5}{name:9}"
            lines += textwrap.wrap(words, max(40, width), initial_indent=lead, subsequent_indent=" " * len(lead))
    counts = claims["verdict"].value_counts()
    lines += ["", ", ".join(f"{n} {verdict}" for verdict, n in counts.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        table = store.load_table("plots/claims.csv", ["value"], text=TEXT).fillna("")
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(scoreboard(table, min(120, shutil.get_terminal_size().columns)))
