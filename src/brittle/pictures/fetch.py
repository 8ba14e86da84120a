"""Fetch a data set, separately from what is done with it, so that changes there cause no new download."""

from __future__ import annotations

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.core.progress import FOLDER
from brittle.worlds.sources import obtain


def fetch(name: str, root: str) -> None:
    """Store a data set; if it cannot be obtained, save the reason for `python -m brittle.tools.missing`."""
    reason = FOLDER / f"missing-{name}.txt"
    try:
        store.save_tensors(f"data/{name}.safetensors", obtain(name, root))
    except BadInput as error:
        store.save_bytes(reason, f"{error}\n".encode())
        raise
    reason.unlink(missing_ok=True)
