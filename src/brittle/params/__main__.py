"""`python -m brittle.params FILE`: check FILE, and print what turns params.yaml into it as `dvc exp run` arguments."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from brittle.params.base import BadInput, load
from brittle.params.schema import Schema


def leaves(section: dict[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in section.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def overrides(now: Schema, wanted: Schema) -> list[str]:
    """`-S key=value` for every value that differs."""
    old = dict(leaves(now.model_dump()))
    changed = [(key, value) for key, value in leaves(wanted.model_dump()) if value != old[key]]
    return [part for key, value in changed for part in ("-S", f"{key}={str(value).replace(' ', '')}")]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m brittle.params FILE")
    try:
        print(*overrides(load(Schema), load(Schema, sys.argv[1])))
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
