"""The scoreboard as README.md shows it: a row a paper, and folded below it a row a claim."""

from __future__ import annotations

import re

import pandas as pd

from brittle.params.base import BadInput

BEGIN, END = "<!-- scoreboard -->", "<!-- /scoreboard -->"
VERDICTS = ["reproduced", "differs", "not run at this scale"]


def block(claims: pd.DataFrame) -> str:
    """Both tables, from the rows of plots/claims.csv."""
    papers = claims.groupby(claims["source"].str.split().str[0], sort=False)  # "VYS Thm 3.1"
    counts = [
        [paper, *((of["verdict"] == verdict).sum() for verdict in VERDICTS), ", ".join(_differing(of))]
        for paper, of in papers
    ]
    each = claims[["id", "says", "paper", "measured", "verdict"]].to_numpy().tolist()
    return "\n".join(
        [
            *_table(["paper", *VERDICTS, "those that differ"], counts),
            "",
            "<details>",
            "<summary>Every claim: what the paper says, its value and ours</summary>",
            "",
            *_table(["id", "the paper says", "its value", "ours", "verdict"], each),
            "",
            "</details>",
        ]
    )


def with_block(text: str, block: str) -> str:
    """The text with the block between its two markers, in place of what was there."""
    parts = re.split(f"({BEGIN}|{END})", text)
    if parts[1::2] != [BEGIN, END]:
        raise BadInput(f"README.md: must have {BEGIN} and, after it, {END}, each once")
    before, _, _, _, after = parts
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def _differing(claims: pd.DataFrame) -> list[str]:
    return claims.loc[claims["verdict"] == "differs", "id"].tolist()


def _table(titles: list[str], rows: list[list[object]]) -> list[str]:
    rule = "|" + "---|" * len(titles)
    return [f"| {' | '.join(titles)} |", rule, *(f"| {' | '.join(map(_plain, row))} |" for row in rows)]


def _plain(value: object) -> str:
    """On one line, and without anything that markdown would take for a mark."""
    words = " ".join(str(value).split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[|~$])", r"\\\1", words)
