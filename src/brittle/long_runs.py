"""Read the tables of long runs, which are kept in evidence/ with their provenance.

evidence/kkt.csv is plots/kkt.csv of a long run. A table that is made cell by cell, such as plots/sweep.csv, is kept
cell by cell: evidence/sweep/100.csv, evidence/sweep/200.csv and so on. Beside each file is its provenance, of the same
name and with the ending json; a file without it is not evidence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from brittle.core import store
from brittle.core.errors import BadInput

FOLDER = Path("evidence")
# What a provenance says. `params`: what differs from params.yaml, of the keys that the stages read.
KEYS = ("stage", "command", "commit", "date", "params", "packages", "cpu", "hours", "sha256")


def files(name: str, folder: Path = FOLDER) -> list[Path]:
    """The files that make up one table, cells in the order of their numbers."""
    found = [*folder.glob(f"{name}.csv"), *(folder / name).glob("*.csv")]

    def key(path: Path) -> tuple[float, str]:
        return (float(path.stem) if re.fullmatch(r"[\d.]+", path.stem) else math.inf), path.stem

    return sorted((path for path in found if path.with_suffix(".json").is_file()), key=key)


def load(name: str, columns: Iterable[str] = (), text: Iterable[str] = (), folder: Path = FOLDER) -> pd.DataFrame:
    """One table, its cells one below the other; without rows where there is no evidence."""
    parts = []
    for path in files(name, folder):
        store.existing(path.with_suffix(".json"))  # seen as an input of the stage, without which there is no evidence
        parts.append(store.load_table(path, list(columns), text=list(text)))
    if parts:
        return pd.concat(parts, ignore_index=True)
    empty = dict.fromkeys(text, "object") | dict.fromkeys(columns, "float64")
    return pd.DataFrame({column: pd.Series(dtype=kind) for column, kind in empty.items()})


def tables(paths: Iterable[str], folder: Path = FOLDER) -> dict[str, pd.DataFrame]:
    """The tables of long runs, by the paths of the same tables in this run; those that are there."""
    names = {path: path.removeprefix("plots/").removesuffix(".csv") for path in paths}
    return {path: load(name, folder=folder) for path, name in names.items() if files(name, folder)}


def provenance(path: Path) -> dict[str, Any]:
    """Where a file of evidence comes from."""
    beside = path.with_suffix(".json")
    try:
        content = json.loads(store.load_text(beside))
    except ValueError:
        raise BadInput(f"{beside}: is not JSON; `git restore {beside}` brings it back") from None
    absent = [key for key in KEYS if key not in content] if isinstance(content, dict) else list(KEYS)
    if absent:
        raise BadInput(f"{beside}: says nothing of {', '.join(absent)}; `make evidence` writes such files")
    return content
