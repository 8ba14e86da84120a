"""Fetching a data set, apart from all that is done with it: a change there downloads nothing again."""

from __future__ import annotations

from brittle import store
from brittle.params.base import BadInput
from brittle.stages.progress import FOLDER
from brittle.worlds.sources import obtain


def fetch(name: str, root: str) -> None:
    """Store a data set; if it cannot be had, leave the reason for `python -m brittle.stages.missing`."""
    reason = FOLDER / f"missing-{name}.txt"
    try:
        store.save_tensors(f"data/{name}.safetensors", obtain(name, root))
    except BadInput as error:
        store.save_bytes(reason, f"{error}\n".encode())
        raise
    reason.unlink(missing_ok=True)
