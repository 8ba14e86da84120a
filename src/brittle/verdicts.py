"""What a claim is: what a paper says, the rule that decides it, and the verdict that the rule gives on our numbers.

A verdict is computed from tables, never typed. The same rule judges two sets of tables: those of this run, and those of
long runs that are kept in evidence/. A rule is a list of checks, each one number against one threshold, and every
number carries its spread: over seeds, or over samples where seeds are dear. A number within its own spread of its
threshold decides nothing, because another seed could flip it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

Tables = Mapping[str, pd.DataFrame]  # by path; an absent table raises Absent

# In the order of the scoreboard.
VERDICTS = ("reproduced", "differs", "undecided", "premise not met", "not run", "explored")
SEEDS = 3  # fewer say nothing about a spread


class Absent(KeyError):
    """The table with this path is not there."""


class Found(Mapping[str, pd.DataFrame]):
    """Tables by path, of which some may not be there."""

    def __init__(self, tables: Mapping[str, pd.DataFrame]) -> None:
        self._tables = dict(tables)

    def __getitem__(self, path: str) -> pd.DataFrame:
        if path not in self._tables:
            raise Absent(path)
        return self._tables[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


# --- A check: one number against one threshold


@dataclass(frozen=True)
class Check:
    """One number that a rule asks for. `room` is its signed distance from the threshold: negative where it fails."""

    name: str
    value: float
    bound: str  # in words: "≤ 0.4"
    room: float
    spread: float  # nan: not known, because there are too few seeds
    rows: pd.DataFrame | None = None  # of the tables, those that decided

    @property
    def holds(self) -> bool:
        return self.room >= 0

    @property
    def distance(self) -> float:
        """The distance from the threshold in units of the spread, negative where the check fails."""
        if self.spread == 0 or math.isinf(self.room):
            return math.inf if self.holds else -math.inf
        return self.room / self.spread

    @property
    def certain(self) -> bool:
        """Whether the number is farther from its threshold than its spread."""
        return abs(self.distance) >= 1


def at_most(name: str, value: float, bound: float, spread: float, rows: pd.DataFrame | None = None) -> Check:
    """The check that value ≤ bound. No number (nan) fails."""
    return Check(name, float(value), f"≤ {bound:g}", _room(bound - value), float(spread), rows)


def at_least(name: str, value: float, bound: float, spread: float, rows: pd.DataFrame | None = None) -> Check:
    """The check that value ≥ bound. No number (nan) fails."""
    return Check(name, float(value), f"≥ {bound:g}", _room(value - bound), float(spread), rows)


def within(name: str, value: float, low: float, high: float, spread: float, rows: pd.DataFrame | None = None) -> Check:
    """The check that low ≤ value ≤ high, whichever bound is nearer."""
    room = _room(min(value - low, high - value))
    return Check(name, float(value), f"in [{low:g}, {high:g}]", room, float(spread), rows)


def exactly(name: str, holds: bool, rows: pd.DataFrame | None = None) -> Check:
    """A check of something that has no spread: a proof, a count, an equality."""
    return Check(name, float(holds), "true", 1.0 if holds else -1.0, 0.0, rows)


def _room(room: float) -> float:
    return -math.inf if math.isnan(room) else float(room)


def every(
    table: pd.DataFrame,
    column: str,
    check: Callable[..., Check],
    *bounds: float,
    cells: Sequence[str],
    name: str = "",
    spread: float | None = None,
) -> Check:
    """The check of a column's worst row: what a rule with "for every network" asks.

    The spread is that of the seeds in the worst row's cell, or what `spread` says.
    """
    label = name or column
    each = [check(label, value, *bounds, 0.0) for value in table[column]]
    worst = min(range(len(each)), key=lambda i: each[i].room)
    row = table.iloc[[worst]]
    if spread is None:
        spread = over_seeds(table, column, cells, row.iloc[0])
    return check(label, table[column].iloc[worst], *bounds, spread, row)


# --- Spreads


def spread_of(values: Iterable[float]) -> float:
    """The standard deviation over seeds; nan with fewer than three of them."""
    values = np.asarray(list(values), dtype=float)
    if len(values) < SEEDS:
        return math.nan
    return 0.0 if (values == values[0]).all() else float(np.std(values, ddof=1))


def of_mean(values: Iterable[float]) -> float:
    """The spread of a number that is a mean over seeds: its standard error."""
    values = list(values)
    return spread_of(values) / math.sqrt(max(len(values), 1))


def over_seeds(table: pd.DataFrame, column: str, cells: Sequence[str], row: pd.Series) -> float:
    """The spread over the seeds of the row's cell. With fewer than three there, that of all cells pooled.

    Pooled needs as many degrees of freedom as three seeds have; with fewer the spread is not known.
    """
    here = table[np.logical_and.reduce([table[axis] == row[axis] for axis in cells])] if cells else table
    if len(here) >= SEEDS:
        return spread_of(here[column])
    groups = table.groupby(list(cells), dropna=False, sort=False)[column] if cells else [(None, table[column])]
    parts = [(len(values) - 1, float(values.var(ddof=1))) for _, values in groups if len(values) > 1]
    freedom = sum(n for n, _ in parts)
    return math.sqrt(sum(n * v for n, v in parts) / freedom) if freedom >= SEEDS - 1 else math.nan


def of_share(share: float, samples: float) -> float:
    """The standard deviation of a share of so many samples: what resampling them gives, also for 0 and 1 (Agresti)."""
    p = (share * samples + 2) / (samples + 4)
    return math.sqrt(p * (1 - p) / (samples + 4))


def of_auc(auc: float, samples: float) -> float:
    """The standard deviation of an area under the ROC curve with equally many positives and negatives (Hanley, McNeil).

    An area of 1 has the spread of the nearest area that one swapped pair would give.
    """
    n = samples / 2
    a = min(max(auc, 1 - auc), 1 - 1 / n**2)
    q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
    return math.sqrt((a * (1 - a) + (n - 1) * (q1 - a * a) + (n - 1) * (q2 - a * a)) / (n * n))


# --- A finding


@dataclass(frozen=True)
class Finding:
    """What a rule found in a set of tables."""

    value: float  # the one number that the rule is about
    measured: str  # that number in words, with its context
    scale: str  # the sizes it was measured at
    checks: Sequence[Check] = ()  # none: a question that the papers leave open
    premises: Sequence[Check] = ()  # what the paper presupposes
    needs: Sequence[str] = ()  # cells without which the rule cannot be applied
    lacks: Sequence[str] = ()  # cells that the claim asks for besides: the verdict is about the others

    @property
    def verdict(self) -> str:
        if self.needs:
            return "not run"
        if not all(premise.holds for premise in self.premises):
            return "premise not met"
        if not self.checks:
            return "explored"
        if any(not check.holds and check.certain for check in self.checks):
            return "differs"
        return "reproduced" if all(check.certain for check in (*self.checks, *self.premises)) else "undecided"

    @property
    def deciding(self) -> Check | None:
        """The check that the verdict hangs on: the premise or the check that is worst off."""
        if self.verdict in ("not run", "explored"):
            return None
        if self.verdict == "undecided":  # an unknown spread first: nothing is nearer to deciding nothing
            unsure = [check for check in (*self.checks, *self.premises) if not check.certain]
            return min(unsure, key=lambda check: -1.0 if math.isnan(check.spread) else abs(check.distance))
        checks = self.premises if self.verdict == "premise not met" else self.checks
        return min((check for check in checks if check.certain or self.verdict == "premise not met"), key=_worst)

    @property
    def distance(self) -> float:
        """How far the deciding number is from its threshold, in units of its spread; negative: on the wrong side."""
        return self.deciding.distance if self.deciding else math.nan


def _worst(check: Check) -> float:
    return check.room if math.isnan(check.distance) else check.distance


def not_run(*cells: str, measured: str = "", scale: str = "", value: float = math.nan) -> Finding:
    """The finding of a rule that lacks these cells."""
    return Finding(value, measured, scale, needs=cells)


# --- Claims


@dataclass(frozen=True)
class Claim:
    id: str
    source: str  # where the paper says it
    says: str
    paper: str  # the paper's words and number
    premise: str  # what must hold for the rule to say anything; "" where nothing
    rule: str
    reads: tuple[str, ...]  # the tables that the verdict rests on
    judge: Callable[[Tables], Finding]
    question: bool  # left open by the papers, or ours: never counted as reproduced

    def judged(self, tables: Tables) -> Finding:
        """The finding, also where a table is not there."""
        try:
            return self.judge(tables)
        except Absent as absent:
            return not_run(str(absent.args[0]))


Rule = Callable[[Tables], Finding]


@dataclass(frozen=True)
class Paper:
    """The claims of one paper, in order; or of several that go together."""

    name: str
    claims: list[Claim] = field(default_factory=list)
    letters: str = ""  # with which ids begin, in order; "" where all begin with the same

    def claim(
        self, id: str, *, source: str, says: str, paper: str, rule: str, reads: str, premise: str = ""
    ) -> Callable[[Rule], Rule]:
        """Register a claim; the decorated function is its rule."""
        return self._enter(id, f"{self.name} {source}".strip(), says, paper, premise, rule, reads, False)

    def question(
        self, id: str, *, source: str, says: str, paper: str, rule: str, reads: str, premise: str = ""
    ) -> Callable[[Rule], Rule]:
        """Register a question that the paper leaves open, or one of ours: it is answered, not judged."""
        return self._enter(id, f"{self.name} {source}".strip(), says, paper, premise, rule, reads, True)

    def _enter(self, id: str, *words: object) -> Callable[[Rule], Rule]:
        source, says, paper, premise, rule, reads, question = words

        def enter(judge: Rule) -> Rule:
            self.claims.append(Claim(id, source, says, paper, premise, rule, tuple(reads.split()), judge, question))
            return judge

        return enter

    def in_order(self) -> list[Claim]:
        """The claims by letter and number, whichever chapter was imported first; S12a before S12b."""

        def key(claim: Claim) -> tuple[int, int, str]:
            digits = "".join(c for c in claim.id if c.isdigit())
            return self.letters.find(claim.id[0]), int(digits), claim.id

        return sorted(self.claims, key=key)


VYS = Paper("VYS")  # Gradient Methods Provably Converge to Non-Robust Networks
SB = Paper("SB")  # The Pitfalls of Simplicity Bias in Neural Networks
FP = Paper("FP")  # Feature Purification
LATER = Paper("later", letters="FVAOKHT")  # papers that came after these three; a claim's source names its own
ACROSS = Paper("across")  # what none of the papers has


# --- The table of verdicts

SETS = ("run", "evidence")  # this run's tables, and those of long runs


def judged(papers: Sequence[Paper], run: Tables, evidence: Tables) -> pd.DataFrame:
    """One row per claim, with the verdict on each of the two sets of tables and the better-founded of the two."""
    rows = []
    for claim in (claim for paper in papers for claim in paper.in_order()):
        found = {"run": claim.judged(run), "evidence": claim.judged(evidence)}
        by = best(*(found[name].verdict for name in SETS))
        row = {
            "id": claim.id,
            "question": int(claim.question),
            "verdict": found[by].verdict,
            "by": by,
            "value": found[by].value,
            "distance": found[by].distance,
        }
        for name in SETS:
            row |= {f"{name}_{key}": value for key, value in _words(found[name]).items()}
        row |= {"says": claim.says, "paper": claim.paper, "premise": claim.premise, "rule": claim.rule}
        rows.append(row | {"source": claim.source, "rests_on": " ".join(claim.reads)})
    return pd.DataFrame(rows)


def best(run: str, evidence: str) -> str:
    """Which set's verdict counts: the evidence's, where its long runs have what the rule asks for."""
    return "run" if evidence == "not run" else "evidence"


def disagree(run: str, evidence: str) -> bool:
    """Whether the two scales say different things, of those that say something."""
    silent = ("not run", "premise not met", "undecided", "explored")
    return run != evidence and run not in silent and evidence not in silent


def _words(found: Finding) -> dict[str, object]:
    missing = [*found.needs, *found.lacks]
    return {
        "verdict": found.verdict,
        "value": found.value,
        "distance": found.distance,
        "decided_by": said(found.deciding) if found.deciding else "",
        "measured": found.measured,
        "missing": "; ".join(missing),
        "scale": found.scale,
    }


def said(check: Check) -> str:
    """The check in words: the number, what it is compared with, and how sure that is."""
    if check.bound == "true":
        return f"{check.name}: {'holds' if check.holds else 'does not hold'}"
    number = f"{check.name} = {check.value:.4g}, asked for {check.bound}"
    if math.isnan(check.spread):
        return f"{number}; spread not known: fewer than {SEEDS} seeds"
    if check.spread == 0:
        return number
    side = "inside" if check.holds else "outside"
    return f"{number}; spread {check.spread:.2g}: {abs(check.distance):.1f} spreads {side}"


# --- Words and numbers that several chapters use


def cells_missing(table: pd.DataFrame, axes: Sequence[str], asked: Iterable[Sequence[object]]) -> list[str]:
    """The cells that a claim asks for and the table has not, in words."""
    there = set(table[list(axes)].itertuples(index=False, name=None)) if len(table) else set()
    return [" ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in cell)
            for cell in map(tuple, asked) if cell not in there]  # fmt: skip


def seeds(table: pd.DataFrame, column: str = "seed") -> str:
    """The number of seeds, in words."""
    return f"{(n := table[column].nunique())} seed{'s' if n > 1 else ''}"


def span(values: pd.Series) -> str:
    """The range of the values, from the smallest to the largest."""
    low, high = f"{values.min():.4g}", f"{values.max():.4g}"
    return low if low == high else f"{low}–{high}"


def slope(x: pd.Series, y: pd.Series) -> float:
    """The slope of log y against log x."""
    return float(np.polyfit(np.log(x.astype(float)), np.log(y.astype(float)), 1)[0])


def slopes(table: pd.DataFrame, x: str, y: str, by: str = "seed") -> tuple[float, float]:
    """The slope of log y in log x over all rows, and its spread: that of the mean of the seeds' slopes."""
    each = [slope(rows[x], rows[y]) for _, rows in table.groupby(by) if rows[x].nunique() > 1]
    return slope(table[x], table[y]), of_mean(each)
