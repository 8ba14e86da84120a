"""The scoreboard as markdown: how many claims of each paper hold, and the table of all claims."""

from __future__ import annotations

import re

import pandas as pd

from brittle.core.errors import BadInput
from brittle.verdicts import VERDICTS, disagree

BEGIN, END = "<!-- scoreboard -->", "<!-- /scoreboard -->"
COUNTED = [verdict for verdict in VERDICTS if verdict != "explored"]
INTRODUCTION = """\
What each paper says, and what was found on two scales by one and the same rule: on the tables of *this run*, made in
minutes, and on the *evidence*, tables of long runs (evidence/). The verdict that counts is the evidence's, where it has
what the rule asks for. `undecided` means that the deciding number lies within its own spread of the threshold, and
`premise not met` that what the paper presupposes does not hold at this scale. Questions that the papers leave open are
answered (`explored`), not judged, and never counted with the claims. The row `later` is about papers that came after
the three; the source of each of its claims names its paper.

`python -m brittle.claims --write` makes this page from plots/claims.csv, which the stage `claims` computes; nothing in
it is typed. `python -m brittle.claims M6 --why` prints one claim with the rows of the tables that decided.
[rules](rules.md) says which rules have changed, and because of which sentence of the paper; [margin](margin.md),
[slabs](slabs.md), [sparse](sparse.md), [pictures](pictures.md) and [after](after.md) say why we think that a claim
differs."""


def counts(claims: pd.DataFrame) -> str:
    """The table of verdicts, one row per paper, from the rows of plots/claims.csv; then the questions, apart."""
    asked = claims["question"] == 1
    names = claims["source"].str.split().str[0]  # "VYS Thm 3.1"
    rows = []
    for paper, of in claims[~asked].groupby(names, sort=False):
        found = [int((of["verdict"] == verdict).sum()) for verdict in COUNTED]
        rows.append([paper, *found, ", ".join(of.loc[of["verdict"] == "differs", "id"])])
    table = _table(["paper", *COUNTED, "those that differ"], rows)
    long, quick = (int((claims.loc[~asked, "by"] == by).sum()) for by in ("evidence", "run"))
    apart = [
        row.id for row in claims.itertuples() if not row.question and disagree(row.run_verdict, row.evidence_verdict)
    ]
    words = f"{long} verdicts rest on long runs (evidence/), {quick} on this run alone"
    words += f"; the two scales disagree on {', '.join(apart)}." if apart else "; where both say something, they agree."
    open_ones = f"Beside them {int(asked.sum())} questions that the papers leave open are explored."
    return "\n".join([*table, "", f"{words} {open_ones}"])


def page(claims: pd.DataFrame) -> str:
    """The whole text of docs/claims.md."""
    lines = ["# Every claim, with a verdict", "", INTRODUCTION, "", counts(claims)]
    columns = ["id", "says", "paper", "premise_and_rule", "verdict", "run", "evidence"]
    titles = ["id", "the paper says", "its value", "the rule that decides", "verdict", "this run", "evidence"]
    claims = claims.assign(
        premise_and_rule=[_rule(row) for row in claims.to_dict("records")],
        run=[_found(row, "run") for row in claims.to_dict("records")],
        evidence=[_found(row, "evidence") for row in claims.to_dict("records")],
    )
    for question, title in ((0, "Claims of the papers"), (1, "Questions that they leave open, and ours")):
        rows = claims.loc[claims["question"] == question, columns].to_numpy().tolist()
        lines += ["", f"## {title}", "", *_table(titles, rows)]
    return "\n".join(lines) + "\n"


def _rule(claim: dict) -> str:
    return f"Premise: {claim['premise']}. Rule: {claim['rule']}" if claim["premise"] else claim["rule"]


def _found(claim: dict, name: str) -> str:
    """What one set of tables says of a claim: the verdict, what decided, what was measured, what is missing."""
    verdict, missing = claim[f"{name}_verdict"], claim[f"{name}_missing"]
    parts = [verdict, claim[f"{name}_decided_by"], claim[f"{name}_measured"], claim[f"{name}_scale"]]
    if missing:
        parts.append(f"{'needs' if verdict == 'not run' else 'not run'}: {missing}")
    return ". ".join(part for part in parts if part)


def with_counts(text: str, claims: pd.DataFrame) -> str:
    """The text of README.md with the counts between its two markers replaced."""
    parts = re.split(f"({BEGIN}|{END})", text)
    if parts[1::2] != [BEGIN, END]:
        raise BadInput(f"README.md: must have {BEGIN} and, after it, {END}, each once")
    before, _, _, _, after = parts
    return f"{before}{BEGIN}\n{counts(claims)}\n{END}{after}"


def _table(titles: list[str], rows: list[list[object]]) -> list[str]:
    rule = "|" + "---|" * len(titles)
    return [f"| {' | '.join(titles)} |", rule, *(f"| {' | '.join(map(_plain, row))} |" for row in rows)]


def _plain(value: object) -> str:
    """The value on one line, with characters that have a meaning in markdown escaped."""
    words = " ".join(str(value).split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[|~$])", r"\\\1", words)
