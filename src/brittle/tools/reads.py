"""Record which parameters a stage reads, to keep dvc.yaml correct."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Reads:
    """A view of a section that records every key read through it (`margin.world`)."""

    def __init__(self, section: BaseModel, prefix: str = "", keys: set[str] | None = None) -> None:
        self._section, self._prefix = section, prefix
        self.keys: set[str] = set() if keys is None else keys

    def __getattr__(self, name: str) -> Any:
        derived = getattr(type(self._section), name, None)
        if isinstance(derived, property):  # a derived value: record what it reads
            return derived.fget(self)  # type: ignore[misc]
        value = getattr(self._section, name)
        if isinstance(value, BaseModel):
            return Reads(value, f"{self._prefix}{name}.", self.keys)
        self.keys.add(f"{self._prefix}{name}")
        return value
