"""The only place that reads or writes artefacts: safetensors, csv, json and rendered figures.

Every write is atomic (a temporary file beside the target, then a rename), so an artefact is whole or absent. Nothing is
ever pickled, and nothing read here can execute code.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save

from brittle.core.errors import BadInput

PathLike = str | os.PathLike[str]

# Which device computed what. Where it was the CPU nothing is said, so that files of the CPU are what they always were.
_devices = {"here": "", "read": ""}  # of this process; of the tensors that it has read


def computed_on(device: str) -> None:
    """Tensors saved from here on were computed on this device; empty for the CPU."""
    _devices.update(here=device, read="")


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """A temporary path beside `path` that becomes `path` if and only if the block succeeds."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")  # unique: a stage that outlived DVC may write, too
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        # The clean-up must not hide the reason for it (a read-only folder, for one).
        if os.access(temporary.parent, os.W_OK):
            temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until the file, or the folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def existing(path: PathLike) -> Path:
    if not Path(path).is_file():
        raise BadInput(f"{path}: is missing; `dvc repro` makes it, `dvc pull` fetches it")
    return Path(path)


def save_tensors(path: PathLike, tensors: Mapping[str, np.ndarray]) -> None:
    # At most one entry of metadata: safetensors has no fixed order for several, and equal inputs give equal bytes.
    about = {"device": _devices["here"]} if _devices["here"] else None
    with replacing(path) as temporary:
        temporary.write_bytes(save({name: np.ascontiguousarray(array) for name, array in tensors.items()}, about))


def device_of(path: PathLike) -> str:
    """The device that computed the tensors of this file; empty for the CPU."""
    with safe_open(existing(path), framework="numpy") as file:
        return (file.metadata() or {}).get("device", "")


def load_tensors(path: PathLike, shapes: Mapping[str, str], **sizes: int) -> dict[str, np.ndarray]:
    """Tensors by name, each with its axes: `"s m d"`, one letter per size, some fixed by `sizes`; or `"..."`, any."""
    try:
        tensors = load_file(existing(path))
        _devices["read"] = _devices["read"] or device_of(path)
    # The last two are for number types that numpy does not have, such as bfloat16.
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path}: is not a complete safetensors file ({error}); remove it and run `dvc repro`") from None
    _having(path, shapes, tensors.keys(), "tensor")
    for name, axes in shapes.items():
        if axes == "...":
            continue
        shape = tensors[name].shape
        known = [sizes.setdefault(axis, size) for axis, size in zip(axes.split(), shape, strict=False)]
        if len(shape) != len(axes.split()) or tuple(known) != shape:
            wanted = ", ".join(f"{axis} = {sizes[axis]}" if axis in sizes else axis for axis in axes.split())
            raise BadInput(f"{path}: {name} has the shape {shape}, not ({wanted}); remove it and run `dvc repro`")
    return tensors


def save_table(path: PathLike, table: pd.DataFrame) -> None:
    """Write a csv table with six significant digits: as many as figures can show, and readable in diffs."""
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n")


def load_table(path: PathLike, columns: Sequence[str], text: Sequence[str] = ()) -> pd.DataFrame:
    """Load a csv table, which must have these columns of numbers and these of text."""
    try:
        content = existing(path).read_text(encoding="utf-8")
        if not content.endswith("\n"):
            raise ValueError("its last line is incomplete")
        table = pd.read_csv(io.StringIO(content))
    except (ValueError, OSError) as error:  # pandas' and codec errors are ValueErrors
        reason = str(error).splitlines()[0]
        raise BadInput(f"{path}: is not a csv table ({reason}); remove it and run `dvc repro`") from None
    _having(path, [*columns, *text], table.columns, "column")
    for column in columns:
        if not pd.api.types.is_numeric_dtype(table[column]):
            raise BadInput(f"{path}: column {column} holds something other than numbers; remove it and run `dvc repro`")
    return table


def save_metrics(path: PathLike, metrics: Mapping[str, float | int | str]) -> None:
    """Write a flat json object. A number that does not exist (no finite perturbation flips a sample) is null.

    If a device other than the CPU computed this, or the tensors read for it, the key `device` says which.
    """
    if device := _devices["here"] or _devices["read"]:
        metrics = {**metrics, "device": device}
    with replacing(path) as temporary:
        rounded = {key: _rounded(value) for key, value in metrics.items()}
        temporary.write_text(json.dumps(rounded, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def load_metrics(path: PathLike) -> dict[str, float | int | str | None]:
    """Load what `save_metrics` wrote."""
    try:
        return dict(json.loads(load_text(path)))
    except ValueError:
        raise BadInput(f"{path}: is not a json object; remove it and run `dvc repro`") from None


def load_text(path: PathLike) -> str:
    """The content of a text file, which must end with a complete line."""
    try:
        text = existing(path).read_text(encoding="utf-8")
    except (ValueError, OSError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise BadInput(f"{path}: cannot be read: {reason}; remove it and run `dvc repro`") from None
    if not text.endswith("\n"):
        raise BadInput(f"{path}: is cut short; remove it and run `dvc repro`")
    return text


def save_bytes(path: PathLike, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _rounded(value: float | int | str) -> float | int | str | None:
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _having(path: PathLike, wanted: Iterable[str], present: Iterable[str], kind: str) -> None:
    absent = sorted(set(wanted) - set(present))
    if absent:
        raise BadInput(f"{path}: has no {kind} {', '.join(absent)}; it was not written by this pipeline")
