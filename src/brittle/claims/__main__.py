"""`python -m brittle.claims`: the scoreboard, and what each verdict rests on. With `--readme`: into README.md."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path

import pandas as pd

from brittle import store
from brittle.claims.readme import block, with_block
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


def main(arguments: list[str]) -> None:
    if arguments not in ([], ["--readme"]):
        raise BadInput(f"{' '.join(arguments)}: give nothing, or --readme to write the scoreboard into README.md")
    claims = store.load_table("plots/claims.csv", ["value"], text=TEXT).fillna("")
    if not arguments:
        print(scoreboard(claims, min(120, shutil.get_terminal_size().columns)))
        return
    try:
        readme = Path("README.md").read_bytes().decode()
    except (OSError, ValueError) as error:
        raise BadInput(f"README.md: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    store.save_bytes("README.md", with_block(readme, block(claims)).encode())


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
