"""The differences as text for a terminal, and as a page that stands alone."""

from __future__ import annotations

from typing import Any

from brittle.compare.differences import Differences, Pair, Table, change
from brittle.compare.sides import Side
from brittle.report.captions import FIGURES
from brittle.report.page import Column, Figure, Sheet, document

NONE = "–"  # where a side has no value
ROWS = 8  # of a table in the terminal, at most, for each side
MOST = 200  # of a table on the page
TITLES = {f"plots/{caption.name}.svg": caption.title for caption in FIGURES}


def text(found: Differences) -> str:
    """What a terminal shows."""
    lines = [f"{found.left.title} → {found.right.title}", "", _count(len(found.params), "parameter")]
    lines += _aligned([key, *map(shown, pair)] for key, pair in found.params.items())
    lines += ["", _count(len(found.metrics), "metric")]
    lines += _aligned([*key, *map(shown, pair), grown(pair)] for key, pair in found.metrics.items())
    lines += ["", _count(len(found.verdicts), "verdict")]
    for each in found.verdicts:
        lines.append(f"  {each.id}  {shown(each.verdicts[0])} → {shown(each.verdicts[1])}  {each.says}")
        lines += [f"      measured  {shown(each.measured[0])} → {shown(each.measured[1])}"]
        for table in each.tables:
            lines += [f"      {table.words}", *_few(table)]
    lines += ["", _count(len(found.figures), "figure")]
    lines += [f"  {path}{_only(found, path)}" for path in found.figures]
    return "\n".join(lines)


def shown(value: Any) -> str:
    if value is None:
        return NONE
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def grown(pair: Pair) -> str:
    by = change(pair)
    return "" if by is None else f"{by:+.6g}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'} {'differs' if n == 1 else 'differ'}"


def _aligned(rows: Any) -> list[str]:
    rows = list(rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _few(table: Table) -> list[str]:
    rows = [[mark, *row] for mark, side in (("<", table.left), (">", table.right)) for row in (side or [])[:ROWS]]
    return [f"      {line}" for line in _aligned([["", *table.columns], *rows])] if rows else []


def _only(found: Differences, path: str) -> str:
    left, right = (path in side.blobs for side in (found.left, found.right))
    return "" if left and right else f": only on the {'left' if left else 'right'}"


# --- The page


def page(found: Differences) -> str:
    """One HTML document, with everything in it."""
    figures = [
        (TITLES.get(path, path), [_figure(found, path, side, which) for which, side in _sides(found)])
        for path in found.figures
    ]
    return document(
        "compare/page.html",
        found=found,
        sheets=[_params(found), _metrics(found)],
        tables={each.id: [_table(found, each.id, table) for table in each.tables] for each in found.verdicts},
        figures=figures,
        shown=shown,
        count=_count,
    )


def _sides(found: Differences) -> list[tuple[str, Side]]:
    return [("left", found.left), ("right", found.right)]


def _pair(found: Differences) -> list[Column]:
    return [Column(which, side.title) for which, side in _sides(found)]


def _params(found: Differences) -> Sheet:
    rows = [{"key": key, "left": shown(pair[0]), "right": shown(pair[1])} for key, pair in found.params.items()]
    return Sheet("params", "Parameters", "", [Column("key", "Parameter"), *_pair(found)], rows)


def _metrics(found: Differences) -> Sheet:
    rows = [
        {"file": file, "name": name, "left": pair[0], "right": pair[1], "change": change(pair)}
        for (file, name), pair in found.metrics.items()
    ]
    words = any(isinstance(row[side], str) for row in rows for side in ("left", "right"))
    pair = [Column(column.key, column.title, form="text" if words else ".6g") for column in _pair(found)]
    columns = [Column("file", "File"), Column("name", "Metric"), *pair, Column("change", "Change", form="+.6g")]
    return Sheet("metrics", "Metrics", "", columns, rows)


def _table(found: Differences, claim: str, table: Table) -> Sheet:
    rows = [
        dict(zip(["side", *map(str, range(len(row)))], [side.title, *row], strict=True))
        for (_, side), alone in zip(_sides(found), (table.left, table.right), strict=True)
        for row in (alone or [])[:MOST]
    ]
    columns = [Column("side", "Side"), *(Column(str(i), name, form="number") for i, name in enumerate(table.columns))]
    return Sheet(f"{claim}-{table.path.replace('/', '-')}", table.words, "", columns, rows)


def _figure(found: Differences, path: str, side: Side, which: str) -> Figure | None:
    svg = side.text(path)
    return None if svg is None else Figure(f"{path.replace('/', '-')}-{which}", side.title, path, "", svg)
