"""The rules of A1 to A4: tables that confirm, refute, lack a premise or a cell, or decide nothing."""

from __future__ import annotations

import pandas as pd
import pytest

from brittle.after.off_subspace_claims import TABLE
from brittle.verdicts import Found
from claim_cases import CLAIMS, Change, found, one, where, without
from tables_off_subspace import CONFIRM

IDS = ("A1", "A2", "A3", "A4")


@pytest.mark.parametrize("id", IDS)
def test_numbers_that_confirm_are_seen(id: str) -> None:
    assert found(id, CONFIRM).verdict == ("reproduced" if id == "A4" else "explored")


@pytest.mark.parametrize(
    "change", [where("flip", 0.5, scale=0.25), where("flip", 0.5, decay=0.02), where("flip", 90.0, decay=0.0)]
)
def test_numbers_that_refute_a_claim_are_seen(change: Change) -> None:
    assert found("A4", CONFIRM, change).verdict == "differs"


@pytest.mark.parametrize(
    ("id", "change", "cell"),
    [
        ("A2", lambda t: t[t["codimension"] == 50], "two codimensions"),
        ("A3", lambda t: t[t["scale"] == 1], "two initial scales"),
        ("A4", without(decay=0.02), "weight decay"),
        ("A4", lambda t: t[t["scale"] == 1], "a smaller initialisation"),
    ],
)
def test_a_cell_that_the_rule_needs_is_named(id: str, change: Change, cell: str) -> None:
    finding = found(id, CONFIRM, change)
    assert finding.verdict == "not run"
    assert cell in finding.needs


def test_where_training_samples_are_wrong_nothing_is_said() -> None:
    assert found("A4", CONFIRM, one("accuracy", 0.9)).verdict == "premise not met"
    assert found("A4", CONFIRM, one("accuracy", 0.9, row=0)).verdict == "reproduced"  # at another codimension


def test_a_factor_within_its_spread_of_one_decides_nothing() -> None:
    def near(t: pd.DataFrame) -> pd.DataFrame:
        return t.assign(flip=t["flip"].mask(t["decay"] > 0, 1.05 + 0.3 * t["seed"]))

    assert found("A4", CONFIRM, near).verdict == "undecided"


def test_the_answers_are_those_that_a_hand_computes() -> None:
    assert found("A1", CONFIRM, one("moved", 0.3)).value == 0.3
    assert found("A2", CONFIRM).value == pytest.approx(0.98)
    assert "slope in ℓ 0.500 ± 0.000" in found("A2", CONFIRM).measured
    assert found("A3", CONFIRM).value == pytest.approx(-1)
    assert "at β = 1: ℓ = 10 0.14" in found("A3", CONFIRM).measured
    assert found("A4", CONFIRM).value == pytest.approx(3)
    assert "both at least double it, every seed" in found("A4", CONFIRM).measured
    assert "not both double it" in found("A4", CONFIRM, where("flip", 1.5, decay=0.02)).measured


def test_the_network_beside_the_remedies_has_the_same_data() -> None:
    """Weight decay and scales are varied at one codimension; others must not enter."""
    far = where("flip", 1000.0, codimension=80)
    assert found("A4", CONFIRM, far).measured == found("A4", CONFIRM).measured


@pytest.mark.parametrize("id", IDS)
def test_an_absent_table_is_named(id: str) -> None:
    finding = CLAIMS[id].judged(Found({}))
    assert (finding.verdict, finding.needs) == ("not run", (TABLE,))
