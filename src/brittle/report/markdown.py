"""Turn the tables that stages write as markdown into sheets of the report."""

from __future__ import annotations

import re

from brittle.drawing import tables
from brittle.report.page import Column, Sheet

NUMBER = re.compile(r"[-−<>≤≥]?\d.*|–|not run|")  # what a column of numbers may contain


def sheet(id: str, title: str, stage: str, text: str) -> Sheet:
    """A sheet made of the words and the table in `text`."""
    words, header, body = tables.read(text)
    keys = [str(i) for i in range(len(header))]  # titles may repeat
    rows = [dict(zip(keys, line, strict=True)) for line in body]
    columns = [
        Column(key, name, form="number" if all(NUMBER.fullmatch(row[key]) for row in rows) else "text")
        for key, name in zip(keys, header, strict=True)
    ]
    return Sheet(id, title, words, columns, rows, stage=stage, sortable=False)
