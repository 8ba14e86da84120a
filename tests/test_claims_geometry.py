"""The rules of O1 and O2: tables that confirm, refute, lack a premise or a cell, or decide nothing."""

from __future__ import annotations

import pandas as pd
import pytest

from brittle.after.geometry_claims import MARGINS, RELIANCE
from brittle.verdicts import Found
from claim_cases import CLAIMS, Change, found, where, without
from tables_geometry import CONFIRM

REFUTE: list[Change] = [
    where("margin_spectral", 5.0, rule="signum", network="smooth"),
    where("margin_l2", 0.9, rule="momentum", network="smooth"),
    where("kkt_linf", 0.5, rule="signum", log10_loss=-300, network="smooth"),
]


@pytest.mark.parametrize(("id", "verdict"), [("O1", "reproduced"), ("O2", "explored")])
def test_numbers_that_confirm_are_seen(id: str, verdict: str) -> None:
    finding = found(id, CONFIRM)
    assert (finding.verdict, finding.lacks) == (verdict, [])


@pytest.mark.parametrize("change", REFUTE)
def test_numbers_that_refute_a_claim_are_seen(change: Change) -> None:
    assert found("O1", CONFIRM, change).verdict == "differs"


def test_networks_outside_the_theorem_and_other_rules_do_not_decide() -> None:
    for change in (where("margin_spectral", 9.0, rule="signum", network="relu"), where("margin_l2", 9.0, rule="adam")):
        assert found("O1", CONFIRM, change).verdict == "reproduced"
    assert "outside the theorem: ReLU networks: momentum has 3 × the others' ℓ2 margin" in found("O1", CONFIRM).measured


@pytest.mark.parametrize(
    ("id", "change", "cell"),
    [
        ("O1", without(rule="muon", network="smooth"), "muon on smooth networks"),
        ("O1", without(network="smooth"), "momentum on smooth networks"),
        ("O1", without(log10_loss=-10), "a second level of the loss"),
        ("O2", without(optimiser="muon"), "Muon"),
    ],
)
def test_a_cell_that_the_rule_needs_is_named(id: str, change: Change, cell: str) -> None:
    finding = found(id, CONFIRM, change)
    assert finding.verdict == "not run"
    assert cell in finding.needs


def test_cells_that_were_not_run_are_named_beside_the_verdict() -> None:
    assert found("O1", CONFIRM, lambda t: t.replace({"log10_loss": {-300: -50}})).lacks == ["the loss 1e-300"]
    unlearnt = where("accuracy", 0.9, optimiser="muon", world="ms-5-7")
    assert found("O2", CONFIRM, unlearnt).lacks == ["Muon on ms-5-7"]


def test_a_margin_within_its_spread_of_the_others_decides_nothing() -> None:
    def near(t: pd.DataFrame) -> pd.DataFrame:
        own = (t["rule"] == "muon") & (t["network"] == "smooth")
        return t.assign(margin_spectral=t["margin_spectral"].mask(own, 1.01 + 0.1 * t["seed"]))

    finding = found("O1", CONFIRM, near)
    assert finding.verdict == "undecided"
    assert finding.deciding.name.startswith("spectral margin of muon")


def test_the_area_of_muons_networks_is_stated_for_those_that_learnt_alone() -> None:
    finding = found("O2", CONFIRM)
    assert finding.value == pytest.approx(0.56)
    assert "lms-5: sgd 0.5, muon 0.56; ms-5-7: sgd 0.5, muon 0.5; 3 of Muon's 6 networks" in finding.measured
    assert found("O2", CONFIRM, where("accuracy", 0.9, world="lms-5")).value == 0.5


@pytest.mark.parametrize(("id", "path"), [("O1", MARGINS), ("O2", RELIANCE)])
def test_an_absent_table_is_named(id: str, path: str) -> None:
    finding = CLAIMS[id].judged(Found({key: value for key, value in CONFIRM.items() if key != path}))
    assert (finding.verdict, finding.needs) == ("not run", (path,))
