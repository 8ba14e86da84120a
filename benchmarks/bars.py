"""How every benchmark states a result: one line, with the bar that it has to clear if there is one.

If the environment variable BRITTLE_BARS names a file, the result is appended to it as a line of JSON, from which
run.py builds its table.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "BRITTLE_BARS"


@dataclass(frozen=True)
class Result:
    what: str
    value: float
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "×"
    or_more: bool = False  # whether the value is only known to be this or more, because the measurement was cut off

    @property
    def held(self) -> bool | None:
        """Whether the bar is cleared; None if there is no bar. (A value that is NaN clears no bar.)"""
        if self.at_least is None and self.at_most is None:
            return None
        low, high = self.at_least, self.at_most
        return (low is None or self.value >= low) and (high is None or self.value <= high)

    @property
    def shown(self) -> str:
        return f"{'≥ ' if self.or_more else ''}{self._number(self.value)}"

    @property
    def bar(self) -> str:
        bounds = (("≥", self.at_least), ("≤", self.at_most))
        return ", ".join(f"{sign} {self._number(bound)}" for sign, bound in bounds if bound is not None)

    def _number(self, value: float) -> str:
        return f"{value:,.0f} {self.unit}".strip() if abs(value) >= 100 else f"{value:.3g} {self.unit}".strip()


def bar(
    what: str,
    value: float,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    unit: str = "×",
    or_more: bool = False,
) -> None:
    """Print a result and record it. A result without a bound is for information only."""
    result = Result(what, float(value), at_least, at_most, unit, or_more)
    verdict = "" if result.held is None else f" (bar {result.bar}): {'yes' if result.held else 'NO'}"
    print(f"  {what}: {result.shown}{verdict}", flush=True)
    if os.environ.get(FILE):
        with Path(os.environ[FILE]).open("a") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def recorded(file: Path) -> list[Result]:
    """The results that `bar` has written to this file."""
    return [Result(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []
