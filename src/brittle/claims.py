"""Every claim with its verdict, its number and what it rests on.

python -m brittle.claims            # all of them
python -m brittle.claims M6 S12     # only these
python -m brittle.claims --write    # the counts into README.md, the whole table into docs/claims.md
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path

import pandas as pd

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.report import scoreboard

TEXT = ["id", "verdict", "says", "measured", "paper", "rule", "scale", "source", "rests_on"]


def shown(claims: pd.DataFrame, width: int) -> str:
    """One block of text per claim: the verdict, then the number, then what it rests on; the counts come last."""
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


def main(words: list[str]) -> None:
    claims = store.load_table("plots/claims.csv", ["value"], text=TEXT).fillna("")
    if words == ["--write"]:
        try:
            readme = Path("README.md").read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise BadInput(f"README.md: cannot be read: {getattr(error, 'strerror', None) or error}") from None
        store.save_bytes("README.md", scoreboard.with_counts(readme, claims).encode())
        store.save_bytes("docs/claims.md", scoreboard.page(claims).encode())
        return
    unknown = [word for word in words if word not in set(claims["id"])]
    if unknown:
        known = f"{claims['id'].iloc[0]} … {claims['id'].iloc[-1]}"
        raise BadInput(f"{unknown[0]}: is not a claim; give some of {known}, or --write, or nothing")
    chosen = claims[claims["id"].isin(words)] if words else claims
    print(shown(chosen, min(120, shutil.get_terminal_size().columns)))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
