"""The figures of the sparse coding part from fewer rows than the quick scale has."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from brittle.core.params import load
from brittle.sparse import figures
from conftest import ROOT
from tiny import set_params

NAMES = ["accuracy", "low", "mixture", "prediction", "scaling", "theta", "transfer"]


def drawn(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: object) -> dict[str, bytes]:
    """The stage, run in a folder that has the tables."""
    monkeypatch.chdir(folder)
    shutil.copy(ROOT / "params.yaml", folder)
    set_params(folder / "params.yaml", {"figures.dpi": 50} | {key.replace("__", "."): v for key, v in changes.items()})
    figures.main(load(figures.Params))
    files = [folder / f"plots/sparse_{name}.{form}" for name in NAMES for form in ("png", "svg")]
    return {file.name: file.read_bytes() for file in files}


@pytest.fixture
def tables(tmp_path: Path, committed: Path) -> Path:
    (tmp_path / "plots").mkdir()
    for file in (committed / "plots").glob("sparse_*.csv"):
        shutil.copy(file, tmp_path / "plots")
    shutil.copytree(committed / "plots/sparse_growth", tmp_path / "plots/sparse_growth")
    shutil.copytree(committed / "evidence", tmp_path / "evidence")
    return tmp_path


def test_what_was_not_run_is_left_out(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One start, one seed, nothing certified, no variant of the world: fewer panels and points, no error."""
    for file in (tables / "plots").glob("sparse_*.csv"):
        t = pd.read_csv(file)
        keep = pd.Series(True, index=t.index)
        for column, gone in (("start", "random"), ("seed", 1), ("attack", "certified"), ("norm", "linf")):
            keep &= t[column] != gone if column in t and file.name != "sparse_low.csv" else True
        if file.name == "sparse_transfer.csv":
            keep = (t["of"] == "pure 0") & (t["on"] == "pure 0")
        if file.name == "sparse_grid.csv":
            keep &= t["of"] == "d"
        t[keep].to_csv(file, index=False)
    (tables / "plots/sparse_growth/random.csv").unlink()
    found = drawn(tables, monkeypatch, sparse__starts=["pure"])
    assert all(len(content) > 5000 for content in found.values())
