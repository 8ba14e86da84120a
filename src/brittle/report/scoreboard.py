"""The scoreboard as markdown: how many claims of each paper hold, and the table of all claims."""

from __future__ import annotations

import re

import pandas as pd

from brittle.core.errors import BadInput

BEGIN, END = "<!-- scoreboard -->", "<!-- /scoreboard -->"
VERDICTS = ["reproduced", "differs", "not run at this scale"]


def counts(claims: pd.DataFrame) -> str:
    """The table of verdicts, one row per paper, from the rows of plots/claims.csv."""
    papers = claims.groupby(claims["source"].str.split().str[0], sort=False)  # "VYS Thm 3.1"
    rows = [
        [paper, *((of["verdict"] == verdict).sum() for verdict in VERDICTS), ", ".join(_differing(of))]
        for paper, of in papers
    ]
    return "\n".join(_table(["paper", *VERDICTS, "those that differ"], rows))


def page(claims: pd.DataFrame) -> str:
    """The whole text of docs/claims.md."""
    columns = ["id", "says", "paper", "measured", "rule", "verdict"]
    titles = ["id", "the paper says", "its value", "ours", "the rule that decides", "verdict"]
    lines = [
        "# Every claim, with a verdict",
        "",
        "What each paper says, its value and ours, and the rule that decides. `python -m brittle.claims --write` makes",
        "this page from plots/claims.csv, which the stage `claims` computes; nothing in it is typed. `python -m",
        "brittle.claims M6` prints one claim with the tables and the scale that its verdict rests on. Where a claim",
        "differs, [margin](margin.md), [slabs](slabs.md), [sparse](sparse.md) and [pictures](pictures.md) say why we",
        "think so.",
        "",
        counts(claims),
        "",
        *_table(titles, claims[columns].to_numpy().tolist()),
    ]
    return "\n".join(lines) + "\n"


def with_counts(text: str, claims: pd.DataFrame) -> str:
    """The text of README.md with the counts between its two markers replaced."""
    parts = re.split(f"({BEGIN}|{END})", text)
    if parts[1::2] != [BEGIN, END]:
        raise BadInput(f"README.md: must have {BEGIN} and, after it, {END}, each once")
    before, _, _, _, after = parts
    return f"{before}{BEGIN}\n{counts(claims)}\n{END}{after}"


def _differing(claims: pd.DataFrame) -> list[str]:
    return claims.loc[claims["verdict"] == "differs", "id"].tolist()


def _table(titles: list[str], rows: list[list[object]]) -> list[str]:
    rule = "|" + "---|" * len(titles)
    return [f"| {' | '.join(titles)} |", rule, *(f"| {' | '.join(map(_plain, row))} |" for row in rows)]


def _plain(value: object) -> str:
    """The value on one line, with characters that have a meaning in markdown escaped."""
    words = " ".join(str(value).split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[|~$])", r"\\\1", words)
