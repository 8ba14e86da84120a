"""Every claim with its verdict on this run and on the evidence, its number and what it rests on.

python -m brittle.claims              # all of them, each with its verdict and scale on either set of tables
python -m brittle.claims M6 S12a      # these in full: numbers, the paper's words, the rule, the tables
python -m brittle.claims M6 --why     # with every number that the rule compares, and the rows that decided
python -m brittle.claims --count      # how many have which verdict
python -m brittle.claims --write      # the counts into README.md, the whole table into docs/claims.md
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
from brittle.report.claims import read_tables
from brittle.report.papers import PAPERS
from brittle.verdicts import SETS, Finding, disagree, said

NUMBERS = ["question", "value", "distance"]
TEXT = ["id", "verdict", "by", "says", "paper", "premise", "rule", "source", "rests_on"]
TEXT += [f"{name}_{key}" for name in SETS for key in ("verdict", "measured", "decided_by", "missing", "scale")]
CALLED = {"run": "this run", "evidence": "evidence"}
APART = "the two scales disagree"
ROWS = 8  # of a table, at most


def load() -> pd.DataFrame:
    """plots/claims.csv, with empty text where there is none."""
    claims = store.load_table("plots/claims.csv", NUMBERS, text=TEXT)
    return claims.assign(**{column: claims[column].fillna("") for column in TEXT})


def listed(claims: pd.DataFrame, width: int) -> str:
    """The verdict that counts of every claim, and below it the verdict on each set of tables with its scale."""
    lines = []
    for claim in claims.to_dict("records"):
        lines.append(f"{claim['id']:5}{claim['verdict']:16} {claim['says']}")
        for name in SETS:
            words = f"{claim[f'{name}_verdict']}; {claim[f'{name}_scale']}".removesuffix("; ")
            lines.append(_lead(CALLED[name]) + textwrap.shorten(words, max(40, width - 15), placeholder=" …"))
        if disagree(claim["run_verdict"], claim["evidence_verdict"]):
            lines.append(f"{_lead('!')}{APART}")
    return "\n".join([*lines, "", summary(claims)])


def shown(claims: pd.DataFrame, width: int) -> str:
    """One block of text per claim: the verdict that counts, then each scale, then the rule; the counts come last."""
    lines = []
    for claim in claims.to_dict("records"):
        by = f"by the {'evidence' if claim['by'] == 'evidence' else 'tables of this run'}"
        lines.append(f"{claim['id']:5}{claim['verdict']:16} {claim['says']}  ({claim['source']}; {by})")
        parts = [part for name in SETS for part in _scale(claim, name)]
        if disagree(claim["run_verdict"], claim["evidence_verdict"]):
            parts.append(("!", APART))
        parts += [("paper", claim["paper"]), ("premise", claim["premise"]), ("rule", claim["rule"])]
        for name, words in (*parts, ("rests on", claim["rests_on"])):
            if words:
                indents = {"initial_indent": _lead(name), "subsequent_indent": _lead("")}
                lines += textwrap.wrap(words, max(40, width), break_on_hyphens=False, **indents)
    return "\n".join([*lines, "", summary(claims)])


def _lead(name: str) -> str:
    return f"{'':5}{name:9} "


def _scale(claim: dict, name: str) -> list[tuple[str, str]]:
    """What one set of tables says: the verdict and the number that decided, and what was measured at which scale."""
    verdict = claim[f"{name}_verdict"]
    decided = claim[f"{name}_decided_by"]
    words = [(CALLED[name], f"{verdict}{': ' if decided else ''}{decided}")]
    if claim[f"{name}_measured"]:
        words.append(("", f"{claim[f'{name}_measured']} ({claim[f'{name}_scale']})"))
    if claim[f"{name}_missing"]:
        words.append(("", f"{'needs' if verdict == 'not run' else 'not run'}: {claim[f'{name}_missing']}"))
    return words


def summary(claims: pd.DataFrame) -> str:
    """The counts, the papers' claims and the questions apart."""
    lines = []
    for question, name in ((0, "claims of the papers"), (1, "questions that they leave open")):
        counts = claims.loc[claims["question"] == question, "verdict"].value_counts()
        if len(counts):
            lines.append(f"{name}: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}")
    return "\n".join(lines)


def why(id: str, width: int) -> str:
    """Every number that a claim's rule compares, on both scales, with the rows of the tables that decided."""
    (claim,) = (claim for paper in PAPERS for claim in paper.claims if claim.id == id)
    lines = []
    for name, tables in zip(SETS, read_tables(), strict=True):
        found = claim.judged(tables)
        lines.append(f"{id} on {'the tables of this run' if name == 'run' else 'the evidence'}: {found.verdict}")
        lines += [f"  needs {cell}" for cell in found.needs]
        lines += _compared(found, width)
    return "\n".join(lines)


def _compared(found: Finding, width: int) -> list[str]:
    lines = []
    for kind, checks in (("premise", found.premises), ("rule", found.checks)):
        for check in checks:
            mark = "✓" if check.holds else "✗"
            unsure = "" if check.certain else " (within its spread: decides nothing)"
            lines.append(f"  {mark} {kind}: {said(check)}{unsure}")
            if check.rows is not None and len(check.rows):
                text = check.rows.head(ROWS).to_string(index=False, line_width=max(60, width - 6), max_cols=None)
                lines += [f"      {line}" for line in text.splitlines()]
                more = len(check.rows) - ROWS
                lines += [f"      … and {more} more rows"] if more > 0 else []
    return lines


def main(words: list[str]) -> None:
    claims = load()
    if words == ["--write"]:
        try:
            readme = Path("README.md").read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise BadInput(f"README.md: cannot be read: {getattr(error, 'strerror', None) or error}") from None
        store.save_bytes("README.md", scoreboard.with_counts(readme, claims).encode())
        store.save_bytes("docs/claims.md", scoreboard.page(claims).encode())
        return
    if words == ["--count"]:
        print(summary(claims))
        return
    asked = [word for word in words if word != "--why"]
    unknown = [word for word in asked if word not in set(claims["id"])]
    if unknown:
        known = f"{claims['id'].iloc[0]} … {claims['id'].iloc[-1]}"
        raise BadInput(
            f"{unknown[0]}: is not a claim; give some of {known} (also with --why), --count, --write, or nothing"
        )
    if "--why" in words and not asked:
        raise BadInput("--why: say of which claims, for example M6 --why")
    width = min(120, shutil.get_terminal_size().columns)
    if "--why" in words:
        print("\n\n".join(why(id, width) for id in asked))
    elif asked:
        print(shown(claims[claims["id"].isin(asked)], width))
    else:
        print(listed(claims, width))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
