"""The tables that stages write as markdown, read back: a line of words, then the table."""

from __future__ import annotations

import re

from brittle.report.page import Column, Sheet

NUMBER = re.compile(r"[-−<>≤≥]?\d.*|–|not run|")  # what a column of numbers may hold


def sheet(id: str, title: str, stage: str, text: str) -> Sheet:
    """A sheet of the words and the table in `text`."""
    lines = [line.strip() for line in text.splitlines()]
    words = " ".join(line for line in lines if line and not line.startswith("|"))
    header, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    keys = [str(i) for i in range(len(header))]  # titles may repeat
    rows = [dict(zip(keys, line, strict=True)) for line in body]
    columns = [
        Column(key, name, form="number" if all(NUMBER.fullmatch(row[key]) for row in rows) else "text")
        for key, name in zip(keys, header, strict=True)
    ]
    return Sheet(id, title, words, columns, rows, stage=stage, sortable=False)
