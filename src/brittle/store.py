"""The only place that reads or writes artefacts: safetensors, csv, json and rendered figures.

Every write is atomic (a temporary file beside the target, then a rename), so an artefact is whole or absent. Nothing is
ever pickled, and nothing read here can execute code.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from brittle.params.base import BadInput

PathLike = str | os.PathLike[str]
T = TypeVar("T")


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """A temporary path beside `path` that becomes `path` if and only if the block succeeds."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        # The clean-up must not hide the reason for it (a read-only folder, for one).
        if os.access(temporary.parent, os.W_OK):
            temporary.unlink(missing_ok=True)


def existing(path: PathLike) -> Path:
    if not Path(path).is_file():
        raise BadInput(f"{path}: is missing; `dvc repro` makes it, `dvc pull` fetches it")
    return Path(path)


def save_tensors(path: PathLike, tensors: Mapping[str, np.ndarray]) -> None:
    # No metadata: safetensors writes it in no fixed order, and equal inputs must give equal bytes.
    with replacing(path) as temporary:
        temporary.write_bytes(save({name: np.ascontiguousarray(array) for name, array in tensors.items()}))


def load_tensors(path: PathLike, names: Iterable[str]) -> dict[str, np.ndarray]:
    try:
        tensors = load_file(existing(path))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise BadInput(f"{path}: is not a complete safetensors file ({error}); remove it and run `dvc repro`") from None
    return _having(path, tensors, names, tensors.keys(), "tensor")


def save_table(path: PathLike, table: pd.DataFrame) -> None:
    """Six significant digits: what the figures can show, and diffs that read well."""
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n")


def load_table(path: PathLike, columns: Iterable[str]) -> pd.DataFrame:
    try:
        text = existing(path).read_text(encoding="utf-8")
        if not text.endswith("\n"):
            raise ValueError("its last line is cut short")
        table = pd.read_csv(io.StringIO(text))
    except (ValueError, OSError) as error:  # pandas' and codec errors are ValueErrors
        reason = str(error).splitlines()[0]
        raise BadInput(f"{path}: is not a csv table ({reason}); remove it and run `dvc repro`") from None
    return _having(path, table, columns, table.columns, "column")


def save_metrics(path: PathLike, metrics: Mapping[str, float | int | str]) -> None:
    """A flat json object. A number that does not exist (no finite perturbation flips a sample) is null."""
    with replacing(path) as temporary:
        rounded = {key: _rounded(value) for key, value in metrics.items()}
        temporary.write_text(json.dumps(rounded, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def load_metrics(path: PathLike, keys: Iterable[str]) -> dict[str, Any]:
    try:
        metrics = json.loads(existing(path).read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise BadInput(f"{path}: is not complete json ({error}); remove it and run `dvc repro`") from None
    return _having(path, metrics, keys, metrics if isinstance(metrics, dict) else (), "key")


def save_bytes(path: PathLike, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _rounded(value: float | int | str) -> float | int | str | None:
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _having(path: PathLike, content: T, wanted: Iterable[str], present: Iterable[str], kind: str) -> T:
    absent = sorted(set(wanted) - set(present))
    if absent:
        raise BadInput(f"{path}: has no {kind} {', '.join(absent)}; it was not written by this pipeline")
    return content
