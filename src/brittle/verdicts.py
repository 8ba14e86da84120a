"""What a claim is: what a paper says, the rule that decides it, and the verdict that the rule gives on our numbers.

A verdict is computed from the tables that the stages wrote, never typed. The rule gives `reproduced` or
`differs`; the verdict is `not run at this scale` where the parameters leave the rule nothing to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

Tables = Mapping[str, pd.DataFrame]  # by path


@dataclass(frozen=True)
class Finding:
    """What a rule found."""

    holds: bool | None  # None: there is nothing to judge
    value: float  # the one number that the rule is about
    measured: str  # that number in words, with its context
    scale: str  # the sizes it was measured at

    @property
    def verdict(self) -> str:
        return {True: "reproduced", False: "differs", None: "not run at this scale"}[self.holds]


@dataclass(frozen=True)
class Claim:
    id: str
    source: str  # where the paper says it
    says: str
    paper: str  # the paper's number
    rule: str
    reads: tuple[str, ...]  # the tables that the verdict rests on
    judge: Callable[[Tables], Finding]


@dataclass(frozen=True)
class Paper:
    """The claims of one paper, in order."""

    name: str
    claims: list[Claim] = field(default_factory=list)

    def claim(
        self, id: str, *, source: str, says: str, paper: str, rule: str, reads: str
    ) -> Callable[[Callable[[Tables], Finding]], Callable[[Tables], Finding]]:
        """Register a claim; the decorated function is its rule."""

        def enter(judge: Callable[[Tables], Finding]) -> Callable[[Tables], Finding]:
            self.claims.append(Claim(id, f"{self.name} {source}", says, paper, rule, tuple(reads.split()), judge))
            return judge

        return enter

    def in_order(self) -> list[Claim]:
        """The claims by number, whichever chapter was imported first."""
        return sorted(self.claims, key=lambda claim: int(claim.id[1:]))


VYS = Paper("VYS")  # Gradient Methods Provably Converge to Non-Robust Networks
SB = Paper("SB")  # The Pitfalls of Simplicity Bias in Neural Networks
FP = Paper("FP")  # Feature Purification


def judged(papers: list[Paper], tables: Tables) -> pd.DataFrame:
    """A table of the verdicts, one row per claim."""
    rows = []
    for claim in (claim for paper in papers for claim in paper.in_order()):
        found = claim.judge(tables)
        rows.append(
            {
                "id": claim.id,
                "verdict": found.verdict,
                "value": found.value,
                "says": claim.says,
                "measured": found.measured,
                "paper": claim.paper,
                "rule": claim.rule,
                "scale": found.scale,
                "source": claim.source,
                "rests_on": " ".join(claim.reads),
            }
        )
    return pd.DataFrame(rows)


def seeds(table: pd.DataFrame, column: str = "seed") -> str:
    """The number of seeds, in words."""
    n = table[column].nunique()
    return f"{n} seed{'s' if n > 1 else ''}"


def span(values: pd.Series) -> str:
    """The range of the values, from the smallest to the largest."""
    low, high = f"{values.min():.4g}", f"{values.max():.4g}"
    return low if low == high else f"{low}–{high}"


def slope(x: pd.Series, y: pd.Series) -> float:
    """The slope of log y against log x."""
    return float(np.polyfit(np.log(x.astype(float)), np.log(y.astype(float)), 1)[0])
