"""The rules about clusters (F, V): tables that confirm, refute, lack a premise or a cell, or decide nothing."""

from __future__ import annotations

import pandas as pd
import pytest

from brittle.verdicts import LATER, Found
from claim_cases import CLAIMS, INF, Change, found, one, where, without
from tables_clusters import CONFIRM

OWN = [id for id in CLAIMS if id[0] in "FV"]
QUESTIONS = ("V3", "V4")
SMALL = {"sigma": 0.001}

REFUTE: list[tuple[str, Change]] = [
    ("F1", where("accuracy", 0.95, k=10, **SMALL)),
    ("F2", where("c", 30.0, k=4, **SMALL)),
    ("F2", where("c", 5.0, k=25, **SMALL)),
    ("F2", one("c", INF, row=0)),
    ("F2", lambda t: t.assign(c=t["unit"] * t["k"] ** 0.08)),  # within the bounds, but the slope is -0.42
    ("F2", lambda t: t.assign(c=t["c"] * (t["per_cluster"] / 5) ** 0.1)),  # it moves with the number of samples
    ("F3", where("ratio", 1.5, k=25, **SMALL)),
    ("V1", where("average", 0.9, p=1.0, k=20)),
    ("V1", where("centre", 0.9, p=3.0, k=20)),
    ("V2", where("radius", 0.36, p=1.0, k=10, alpha=0.01)),
    ("V2", where("radius", 0.6, p=3.0, k=4)),
    ("V2", where("radius", 0.8, p=3.0, k=20)),
]
MISSING: list[tuple[str, Change, str]] = [
    ("F2", lambda t: t[t["k"] == 10], "two values of k"),
    ("F2", without(per_cluster=5), "two values of n/k"),
    ("F3", without(k=25), "k ≥ 16 where the assumption holds"),
    ("F3", lambda t: t.assign(applies=0), "k ≥ 16"),
    ("V1", without(p=1.0), "p = 1"),
    ("V2", without(p=3.0), "p = 3"),
    ("V3", without(p=3.0), "p = 3"),
    ("V4", without(remedy="power_relu"), "the remedy power_relu on the leaderboard"),
]
LACKING: list[tuple[str, Change, str]] = [
    ("V1", without(p=1.0, k=4), "p = 1, K = 4"),
    ("V2", without(p=3.0, k=20), "p = 3, K = 20"),
]
WITHIN: list[tuple[str, Change]] = [
    ("F1", lambda t: t.assign(accuracy=0.991)),
    ("F2", lambda t: t.assign(c=t["unit"] * (1.2 + 0.04 * t["seed"]))),
    ("F3", lambda t: t.assign(ratio=1.9 + 0.2 * t["seed"])),
    ("V1", lambda t: t.assign(average=t["average"].mask(t["p"] == 1.0, 0.94 + 0.02 * t["seed"]))),
    ("V2", lambda t: t.assign(radius=t["radius_closed"] * (1.04 + 0.04 * t["seed"]))),
]


@pytest.mark.parametrize("id", OWN)
def test_numbers_that_confirm_a_claim_are_seen(id: str) -> None:
    assert found(id, CONFIRM).verdict == ("explored" if id in QUESTIONS else "reproduced")


@pytest.mark.parametrize(("id", "change"), REFUTE)
def test_numbers_that_refute_a_claim_are_seen(id: str, change: Change) -> None:
    assert found(id, CONFIRM, change).verdict == "differs"


@pytest.mark.parametrize(("id", "change", "cell"), MISSING)
def test_a_cell_that_the_rule_needs_is_named(id: str, change: Change, cell: str) -> None:
    finding = found(id, CONFIRM, change)
    assert finding.verdict == "not run"
    assert cell in finding.needs


@pytest.mark.parametrize(("id", "change", "cell"), LACKING)
def test_a_cell_of_the_claim_that_was_not_run_is_named_beside_the_verdict(id: str, change: Change, cell: str) -> None:
    finding = found(id, CONFIRM, change)
    assert finding.verdict == "reproduced"
    assert finding.lacks == [cell]


@pytest.mark.parametrize(("id", "change"), WITHIN)
def test_a_number_within_its_spread_decides_nothing(id: str, change: Change) -> None:
    finding = found(id, CONFIRM, change)
    assert finding.verdict == "undecided"
    assert not finding.deciding.certain


@pytest.mark.parametrize(
    ("id", "change"),
    [
        ("F1", lambda t: t.assign(applies=0)),
        ("F2", lambda t: t.assign(applies=0)),
        ("V2", where("accuracy", 0.9, p=1.0, k=10, alpha=0.01)),
    ],
)
def test_where_the_premise_fails_nothing_is_said(id: str, change: Change) -> None:
    assert found(id, CONFIRM, change).verdict == "premise not met"


@pytest.mark.parametrize("id", OWN)
def test_an_absent_table_is_named(id: str) -> None:
    path = CLAIMS[id].reads[0]
    finding = CLAIMS[id].judged(Found({key: value for key, value in CONFIRM.items() if key != path}))
    assert (finding.verdict, finding.needs) == ("not run", (path,))


@pytest.mark.parametrize("id", ["F1", "F2", "F3"])
def test_where_the_assumption_fails_numbers_are_reported_and_not_judged(id: str) -> None:
    worse = {"F1": where("accuracy", 0.5, sigma=0.5), "F2": where("c", 99.0, sigma=0.5)}
    finding = found(id, CONFIRM, worse.get(id, where("ratio", 0.5, sigma=0.5)))
    assert finding.verdict == "reproduced"
    assert "beyond the assumption (6 cells)" in finding.measured


def test_other_powers_and_more_noise_are_reported_and_not_judged() -> None:
    def worse(t: pd.DataFrame) -> pd.DataFrame:
        return t.assign(radius=t["radius"].mask((t["p"] == 2.0) | (t["alpha"] == 0.3), 0.01))

    finding = found("V2", CONFIRM, worse)
    assert finding.verdict == "reproduced"
    assert finding.measured.endswith("others: p = 1, α = 0.3: 0.010, p = 2, α = 0.01: 0.010, p = 3, α = 0.3: 0.010")


def test_the_gain_of_powers_of_relu_is_that_over_plain_training_world_by_world() -> None:
    finding = found("V4", CONFIRM)
    assert finding.value == pytest.approx(0.15)
    assert finding.measured == "gain in robust accuracy: sphere +0.300 (accuracy 1.000), lms-5 +0.000 (accuracy 1.000)"


def test_claims_of_later_papers_are_in_the_order_of_the_chapter() -> None:
    ids = [claim.id for claim in LATER.in_order()]
    assert ids == sorted(ids, key=lambda id: (LATER.letters.index(id[0]), int(id[1:])))
    assert ids[:7] == ["F1", "F2", "F3", "V1", "V2", "V3", "V4"]
    assert all(claim.source.startswith("later ") and "20" in claim.source for claim in LATER.claims)
