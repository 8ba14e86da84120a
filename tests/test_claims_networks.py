"""The rules about perturbed noise, samples in weights, and XOR: what confirms, refutes, lacks, and decides nothing.

None of them has a premise: what the papers presuppose (loss, width, noise) is what the stages make.
"""

from __future__ import annotations

import pandas as pd
import pytest

from claim_cases import CLAIMS, Change, found, where, without
from tables_networks import CONFIRM

OWN = [id for id in CLAIMS if id[0] in "KHT"]
QUESTIONS = ("K2", "H1", "H2", "T2")

REFUTE: list[tuple[str, Change]] = [
    ("K1", where("accuracy", 0.8, d=500, noises=4000)),
    ("K1", where("control", 0.7, d=500, noises=4000)),
    ("T1", where("mass", 0.9, angle=90, width=4096, step=80)),
    ("T1", where("mass", 0.9, angle=90, width=256, step=150)),
    ("T1", where("direction_2", 110.0, angle=90, width=4096, step=150)),
]
MISSING: list[tuple[str, Change, str]] = [
    ("K1", lambda t: t[:0], "a cell with perturbed noise"),
    ("K2", lambda t: t[:0], "a cell with perturbed noise"),
    ("H1", without(log10_loss=-30), "loss 1e-30"),
    ("H1", without(log10_loss=0), "an untrained network"),
    ("H2", without(log10_loss=-30), "three levels of the loss"),
    ("T1", without(width=256), "256 neurons"),
    ("T1", without(width=4096), "4096 neurons"),
    ("T1", lambda t: t[(t["step"] > 80) | (t["seed"] > 0)], "every network while its loss is ≥ 0.8 ln 2"),
    ("T2", lambda t: t[t["epoch"] < 8], "three epochs"),
]
WITHIN: list[tuple[str, Change]] = [
    ("K1", lambda t: t.assign(accuracy=0.9 + 0.01 * (t["seed"] - 1))),
    ("K1", lambda t: t[t["seed"] == 0]),  # one seed has no spread
    ("T1", lambda t: t.assign(mass=t["mass"].mask(t["step"] > 0, 0.96 + 0.02 * (t["seed"] - 1)))),
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


@pytest.mark.parametrize(("id", "change"), WITHIN)
def test_a_number_within_its_spread_decides_nothing(id: str, change: Change) -> None:
    assert found(id, CONFIRM, change).verdict == "undecided"


@pytest.mark.parametrize(
    ("id", "change", "words"),
    [
        ("K2", lambda t: t, "yes: cosine 0.980"),
        ("K2", lambda t: t.assign(shared=0.5), "not quite: cosine 0.500"),
        ("H1", lambda t: t, "no for the fewest samples: m = 20: by the search for a KKT point 35 %"),
        ("H1", where("search_margin", 0.6, m=20, log10_loss=-30), "yes for the fewest samples"),
        ("H1", lambda t: t.assign(search_margin=0.6, pairs_foreign=0.2), "no for the fewest samples"),
        ("H1", lambda t: t.assign(search_margin=0.6, pairs_all=0.2), "no for the fewest samples"),  # untrained, too
        ("H2", lambda t: t, "most at 1e-2 (0.45), 0.12 at 1e-10000"),
        ("H2", where("search_all", 0.9, log10_loss=-10000), "most at 1e-10000 (0.90)"),
        ("T2", lambda t: t, "a peak in 0 of 2 dimensions"),
        ("T2", where("rest", 0.95, d=6, epoch=8), "a peak in 1 of 2 dimensions"),
        ("T2", where("rest", 0.9, d=6, epoch=8), "a peak in 0 of 2 dimensions"),  # within the range of the start
    ],
)
def test_what_a_question_answers_follows_from_the_table(id: str, change: Change, words: str) -> None:
    assert words in found(id, CONFIRM, change).measured


def test_only_xor_itself_decides_t1() -> None:
    skewed: Change = where("mass", 0.1, angle=60, width=256)
    assert found("T1", CONFIRM, skewed).verdict == "reproduced"


def test_directions_are_compared_seed_by_seed() -> None:
    """Each seed has its own data: directions may turn with it, if both widths turn."""

    def turned(t: pd.DataFrame) -> pd.DataFrame:
        return t.assign(**{f"direction_{n}": t[f"direction_{n}"] + 30 * t["seed"] for n in range(1, 5)})

    assert found("T1", CONFIRM, turned).verdict == "reproduced"
