"""Artefacts are whole or absent, and a file that is neither is named in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brittle.core import store
from brittle.core.errors import BadInput

TENSORS = {"x": np.arange(12, dtype="f4").reshape(3, 4), "y": np.array([1.0, -1.0])}
TABLE = pd.DataFrame({"step": [1, 2], "loss": [0.123456789, 1e-30]})

SAVES: dict[str, Callable[[Path], None]] = {
    "a.safetensors": lambda path: store.save_tensors(path, TENSORS),
    "a.csv": lambda path: store.save_table(path, TABLE),
    "a.json": lambda path: store.save_metrics(path, {"margin.c.mean": 2.5}),
}
LOADS: dict[str, Callable[[Path], object]] = {
    "a.safetensors": lambda path: store.load_tensors(path, {"x": "a b", "y": "c"}),
    "a.csv": lambda path: store.load_table(path, ["step", "loss"]),
}


def test_tensors_come_back_as_they_were(tmp_path: Path) -> None:
    store.save_tensors(tmp_path / "a", TENSORS | {"t": TENSORS["x"].T})
    back = store.load_tensors(tmp_path / "a", {"x": "a b", "y": "c", "t": "b a"})
    for name, array in (TENSORS | {"t": TENSORS["x"].T}).items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)


def test_tables_and_metrics_come_back_to_six_digits(tmp_path: Path) -> None:
    store.save_table(tmp_path / "a.csv", TABLE)
    np.testing.assert_allclose(store.load_table(tmp_path / "a.csv", ["step", "loss"])["loss"], TABLE["loss"], rtol=5e-6)
    store.save_metrics(tmp_path / "a.json", {"a": 1 / 3, "n": 100, "never": float("inf"), "none": float("nan")})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 0.333333, "n": 100, "never": None, "none": None}


@pytest.mark.parametrize("name", SAVES)
def test_equal_content_gives_equal_bytes(tmp_path: Path, name: str) -> None:
    SAVES[name](tmp_path / name)
    SAVES[name](tmp_path / f"again_{name}")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"again_{name}").read_bytes()


@pytest.mark.parametrize("name", SAVES)
def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="cannot be written: No space left on device"):
        SAVES[name](tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: b"old"}


def test_an_interrupted_block_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def interrupted() -> None:
        with store.replacing(tmp_path / "a") as temporary:
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}


@pytest.mark.parametrize("name", LOADS)
@pytest.mark.parametrize("lost", [1.0, 0.9, 0.6, 0.2, 0.05])
def test_a_truncated_file_gives_one_line(tmp_path: Path, name: str, lost: float) -> None:
    path = tmp_path / name
    SAVES[name](path)
    whole = path.read_bytes().rstrip()
    path.write_bytes(whole[: int((1 - lost) * len(whole))])
    with pytest.raises(BadInput) as error:
        LOADS[name](path)
    assert str(error.value).startswith(str(path))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", LOADS)
@pytest.mark.parametrize(
    "content", [b"\x80\x04\x95.", b"PK\x03\x04 a zip", b"\x00" * 100, b"\xff" * 100, b"[1, 2]", b"hello\n"]
)
def test_a_foreign_file_gives_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadInput) as error:
        LOADS[name](path)
    assert str(error.value).startswith(str(path))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", LOADS)
def test_a_missing_file_says_how_to_get_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=r"is missing; `dvc repro` makes it, `dvc pull` fetches it"):
        LOADS[name](tmp_path / name)


def test_a_file_of_another_kind_names_what_it_lacks(tmp_path: Path) -> None:
    store.save_tensors(tmp_path / "a", {"weights": TENSORS["x"]})
    with pytest.raises(BadInput, match="has no tensor x, y; it was not written by this pipeline"):
        store.load_tensors(tmp_path / "a", {"x": "a b", "y": "c"})


def test_tensors_of_other_shapes_are_named(tmp_path: Path) -> None:
    store.save_tensors(tmp_path / "a", {"x": np.zeros((3, 4, 2)), "y": np.zeros((3, 5))})
    with pytest.raises(BadInput, match=r"a: y has the shape \(3, 5\), not \(s = 3, m = 4\)"):
        store.load_tensors(tmp_path / "a", {"x": "s m d", "y": "s m"})
    with pytest.raises(BadInput, match=r"a: x has the shape \(3, 4, 2\), not \(s = 5, m = 4, d = 2\)"):
        store.load_tensors(tmp_path / "a", {"x": "s m d"}, s=5)
    with pytest.raises(BadInput, match=r"a: y has the shape \(3, 5\), not"):
        store.load_tensors(tmp_path / "a", {"y": "s"})


def test_a_table_with_words_for_numbers_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("step,loss\n1,low\n")
    with pytest.raises(BadInput, match=r"a.csv: column loss holds something other than numbers"):
        store.load_table(tmp_path / "a.csv", ["step", "loss"])
