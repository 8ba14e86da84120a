"""What differs between two sides: parameters, metrics, verdicts with the tables behind them, and figures."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from brittle.compare.sides import PARAMS, Side
from brittle.core.errors import BadInput
from brittle.params import leaves

VERDICTS = "metrics/claims.json"  # says again what plots/claims.csv says
Pair = tuple[Any, Any]  # None where a side has no such value


@dataclass(frozen=True)
class Table:
    """The rows of a table that only one side has."""

    path: str
    columns: list[str]
    left: list[list[str]] | None  # None: the file is missing on this side
    right: list[list[str]] | None

    @property
    def words(self) -> str:
        if self.left is None or self.right is None:
            return f"{self.path}: only on the {'right' if self.left is None else 'left'}"
        return f"{self.path}: {len(self.left)} rows only on the left, {len(self.right)} only on the right"


@dataclass(frozen=True)
class Verdict:
    """A claim that the sides judge differently, and the tables behind it that differ."""

    id: str
    says: str
    verdicts: Pair
    measured: Pair
    tables: list[Table]


@dataclass(frozen=True)
class Differences:
    left: Side
    right: Side
    params: dict[str, Pair]
    metrics: dict[tuple[str, str], Pair]  # by file and name
    verdicts: list[Verdict]
    figures: list[str]  # paths


def differences(left: Side, right: Side) -> Differences:
    changed = sorted(
        path for path in left.blobs.keys() | right.blobs.keys() if left.blobs.get(path) != right.blobs.get(path)
    )
    metrics = {}
    for path in (path for path in changed if path.startswith("metrics/") and path.endswith(".json")):
        if path == VERDICTS:
            continue
        metrics |= {(path, name): pair for name, pair in _unequal(_metrics(left, path), _metrics(right, path)).items()}
    return Differences(
        left,
        right,
        _unequal(_params(left), _params(right)) if PARAMS in changed else {},
        metrics,
        _verdicts(left, right, changed),
        [path for path in changed if path.startswith("plots/") and path.endswith(".svg")],
    )


def change(pair: Pair) -> float | None:
    """By how much a number grew, if both sides have one."""
    numbers = all(isinstance(value, int | float) and math.isfinite(value) for value in pair)
    return pair[1] - pair[0] if numbers else None


def _unequal(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Pair]:
    every = list(dict.fromkeys([*left, *right]))
    return {key: (left.get(key), right.get(key)) for key in every if left.get(key) != right.get(key)}


def _params(of: Side) -> dict[str, Any]:
    text = of.text(PARAMS)
    try:
        content = {} if text is None else YAML(typ="safe", pure=True).load(text)
    except YAMLError:
        content = None
    if not isinstance(content, dict):
        raise BadInput(f"{PARAMS} of {of.title}: is not valid YAML; must be a mapping of parameter names to values")
    return dict(leaves(content))


def _metrics(of: Side, path: str) -> dict[str, Any]:
    text = of.text(path)
    try:
        content = {} if text is None else json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise BadInput(f"{path} of {of.title}: is not a json object; remove it and run `dvc repro`")
    return dict(leaves(content))


def _rows(of: Side, path: str) -> list[dict[str, str]]:
    """The rows of a csv table by the names of its columns; none if the file is missing."""
    return list(csv.DictReader(io.StringIO(of.text(path) or ""), restval=""))


def _verdicts(left: Side, right: Side, changed: Iterable[str]) -> list[Verdict]:
    judged = [_claims(side) for side in (left, right)]
    found = []
    for id in dict.fromkeys([*judged[0], *judged[1]]):
        both = [claims.get(id, {}) for claims in judged]
        verdicts = tuple(claim.get("verdict") for claim in both)
        if verdicts[0] == verdicts[1]:
            continue
        known = both[1] or both[0]
        behind = dict.fromkeys(" ".join(claim.get("rests_on", "") for claim in both).split())
        tables = [_table(left, right, path) for path in behind if path in changed and path.endswith(".csv")]
        found.append(Verdict(id, known["says"], verdicts, tuple(_measured(claim) for claim in both), tables))
    return found


def _claims(of: Side) -> dict[str, dict[str, str]]:
    rows = _rows(of, "plots/claims.csv")
    if rows and not {"id", "verdict", "says"} <= rows[0].keys():
        raise BadInput(f"plots/claims.csv of {of.title}: has no columns id, verdict and says")
    return {row["id"]: row for row in rows}


def _measured(claim: dict[str, str]) -> str | None:
    """What the verdict that counts rests on."""
    return claim.get(f"{claim.get('by', 'run')}_measured") or claim.get("measured")


def _table(left: Side, right: Side, path: str) -> Table:
    rows = [_rows(side, path) for side in (left, right)]
    columns = list(dict.fromkeys(name for table in rows for row in table for name in row))
    counts = [Counter(tuple(row.get(name, "") for name in columns) for row in table) for table in rows]
    only = [[list(row) for row in (mine - theirs).elements()] for mine, theirs in (counts, counts[::-1])]
    missing = [path not in side.blobs for side in (left, right)]
    return Table(path, columns, *(None if gone else alone for gone, alone in zip(missing, only, strict=True)))
