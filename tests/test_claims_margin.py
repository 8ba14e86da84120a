"""The rules of VYS's claims: tables that confirm, refute, lack a premise or a cell, or decide nothing."""

from __future__ import annotations

import pandas as pd
import pytest

from brittle.verdicts import Found
from claim_cases import CLAIMS, INF, Change, found, one, where, without
from tables_margin import CONFIRM

OWN = [id for id in CLAIMS if id[0] in "MX"]
QUESTIONS = ("M13", "M14", "M15", "M18", "M19", "X1", "X2", "X3")

REFUTE: list[tuple[str, Change]] = [
    ("M1", one("certified", 1.9)),
    ("M1", one("smallest_output", 0.5)),
    ("M1", one("beaten", 1)),
    ("M2", lambda t: t.assign(largest=t["largest"].mask(t["draw"] < 10, 0.51))),
    ("M3", where("largest_after", -0.5, world="sphere")),
    ("M3", where("z_norm", 1000, world="orthogonal")),
    ("M4", one("certified_error", 2e-5)),
    ("M4", one("output_error", 2e-5)),
    ("M4", one("z_norm_error", 2e-5)),
    ("M4", one("twin_margin", 0.007)),
    ("M4", one("twin_error", 2e-5)),
    ("M5", where("free", 0.13, log10_loss=-10000, init_scale=1.0)),
    ("M5", where("free", 0.95, log10_loss=-30, init_scale=1.0)),  # it rises
    ("M6", lambda t: t.assign(c=t["c"].mask(t["alpha"] == 1.0, 0.1 * t["d"] ** 0.6))),
    ("M6", where("c", 11.0, alpha=1.5, d=400)),
    ("M6", one("c", INF)),
    ("M7", where("on_margin", 0.97, alpha=0.5, d=100)),
    ("M7", where("on_margin", 0.9, alpha=1.2, d=100)),
    ("M8", where("c", 2.7, width=8000, d=100)),
    ("M8", one("c", INF)),
    ("M9", where("c_over_norm", 0.27, loss="logistic")),
    ("M9", where("on_margin", 0.8, loss="logistic")),
    ("M9", where("c_over_norm", 0.19, world="gaussian", norm=10.0)),
    ("M9", where("on_margin", 0.8, world="gaussian", norm=10.0)),
    ("M9", where("c_over_norm", 0.3, world="gaussian", norm=1.0)),
    ("M9", one("c_over_norm", INF)),
    ("M10", where("flipped", 0.9, width=200, loss="logistic", data="sphere.unit")),
    ("M10", one("own_c", INF)),
    ("M11", where("margin_size", 100, world="clusters")),
    ("M11", where("largest_after", -0.5, world="clusters")),
    ("M11", where("z_norm", 300.0, world="clusters")),
    ("M12", lambda t: t.assign(c=t["d"] / t["m"])),
    ("M12", one("c", INF, row=0)),
    ("M16", lambda t: t.assign(c=t["d"] ** 0.5 / 3)),
    ("M16", one("c", INF, row=0)),
    ("M17", where("attacked", 9.0, alpha=0.5, d=50)),
    ("M17", where("attacked", INF, alpha=0.8, d=100)),
    ("M17", lambda t: t.assign(attacked=0.01 * t["d"] ** 0.9)),
    ("M17", lambda t: t.assign(attacked=t["attacked"].mask(t["alpha"] == 1.2, 0.01 * t["d"] ** 0.9))),
]
MISSING: list[tuple[str, Change, str]] = [  # what is then needed
    ("M5", without(log10_loss=-10000), "the loss 1e-10000"),
    ("M6", without(alpha=1.5), "α = 1.5, two values of d"),
    ("M6", lambda t: t[t["d"] == 100], "α = 0.5, two values of d"),
    ("M7", without(alpha=0.5), "α = 0.5, d ≥ 100"),
    ("M7", lambda t: t[t["d"] < 100], "α = 1.2, d ≥ 100"),
    ("M7", without(alpha=1.2), "α = 1.2, d ≥ 100"),
    ("M8", without(width=8000), "a second width"),
    ("M9", without(loss="logistic"), "logistic loss"),
    ("M9", without(world="gaussian", norm=10.0), "Gaussian data of norm √d"),
    ("M9", without(world="gaussian", norm=1.0), "Gaussian data of variance 1/d"),
    ("M11", without(world="clusters"), "clustered data"),
    ("M12", lambda t: t[t["m"] == 20], "two values of d/m on orthogonal data"),
    ("M14", without(depth=2), "depth 2"),
    ("M15", without(depth=3), "depth 3"),
    ("M16", without(alpha=0.5), "α = 0.5, two values of d"),
    ("M17", without(alpha=1.2), "α = 1.2, two values of d"),
    ("M18", lambda t: t.assign(kkt=0.3), "a network with KKT residual ≤ 0.1"),
    ("M19", without(kind="fresh"), "fresh points"),
    ("M17", lambda t: t[t["d"] == 100], "α = 0.5, two values of d"),
]
LACKING: list[tuple[str, Change, str]] = [  # cells of the paper, named beside the verdict
    ("M1", lambda t: t, "α = 1.5"),
    ("M1", lambda t: t, "d = 400"),
    ("M3", without(d=10_000), "sphere, d = 10000, m = 8"),
    ("M3", where("applies", 0, d=10_000), "sphere, d = 10000, m = 8"),
    ("M3", without(world="sphere"), "sphere data"),
    ("M3", lambda t: t, "width 10"),
    ("M3", without(init_scale=1.0), "initial weights × 1"),
    ("M6", without(alpha=1.5, d=400), "α = 1.5: d 300–1000"),
    ("M7", lambda t: t, "α = 0.5, 0.8, 1, 1.2, 1.5: d 300, 500–1000"),
    ("M8", lambda t: t, "width = 100, 8000: d 300–1000"),
    ("M9", without(world="sphere", norm=1.0), "the control: sphere of radius 1"),
    ("M10", without(data="gaussian"), "1 more datasets"),
    ("M10", without(data="sphere.unit"), "a dataset with < 90 % on the margin"),
    ("M16", lambda t: t, "α = 0.5: d 300, 500–1000"),
    ("M17", without(d=400), "d = 400"),
    ("M17", without(d=50), "d = 50"),
]
WITHIN: list[tuple[str, Change]] = [  # a number within its spread of the threshold
    ("M3", lambda t: t.assign(largest_after=-1.0 - 0.1 * t["seed"])),
    ("M5", lambda t: t.assign(free=t["free"].mask(t["log10_loss"] == -10000, 0.085 + 0.01 * t["seed"]))),
    ("M6", lambda t: t.assign(c=t["c"].mask(t["alpha"] == 1.5, 9.2 + 0.5 * t["seed"]))),
    ("M7", lambda t: t.assign(on_margin=t["on_margin"].mask(t["alpha"] == 1.2, 0.9 + 0.025 * t["seed"]))),
    ("M10", lambda t: t.assign(flipped=0.93 + 0.05 * t["init"])),
    ("M16", lambda t: t.assign(c=t["d"] ** (0.2 + 0.14 * t["seed"]))),
    ("M17", lambda t: t.assign(attacked=t["attacked"].mask(t["d"] == 50, t["certified"] * (1.05 - 0.12 * t["seed"])))),
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
def test_a_cell_of_the_paper_that_was_not_run_is_named_beside_the_verdict(id: str, change: Change, cell: str) -> None:
    finding = found(id, CONFIRM, change)
    assert finding.verdict == "reproduced"
    assert cell in finding.lacks


@pytest.mark.parametrize(("id", "change"), WITHIN)
def test_a_number_within_its_spread_decides_nothing(id: str, change: Change) -> None:
    finding = found(id, CONFIRM, change)
    assert finding.verdict == "undecided"
    assert not finding.deciding.certain


@pytest.mark.parametrize(
    ("id", "change"),
    [
        ("M3", lambda t: t.assign(applies=0)),
        ("M11", lambda t: t.assign(applies=0)),
        ("M17", one("certified", 0.5)),  # a robust network is not there to compare with
    ],
)
def test_where_the_theorem_does_not_apply_nothing_is_said(id: str, change: Change) -> None:
    assert found(id, CONFIRM, change).verdict == "premise not met"


@pytest.mark.parametrize("id", OWN)
def test_an_absent_table_is_named(id: str) -> None:
    path = CLAIMS[id].reads[0]
    finding = CLAIMS[id].judged(Found({key: value for key, value in CONFIRM.items() if key != path}))
    assert (finding.verdict, finding.needs) == ("not run", (path,))


def test_the_headline_run_reaches_a_verdict() -> None:
    """What `dvc exp run -S d=500` changes is judged, too."""
    worse = CONFIRM["plots/margin_seeds.csv"].assign(d=500, c_over_norm=[0.7, 0.71, 0.72])
    finding = CLAIMS["M6"].judged(Found(CONFIRM | {"plots/margin_seeds.csv": worse}))
    assert finding.verdict == "differs"
    assert "headline run (d = 500, m = 100) 0.72 at most" in finding.measured


def test_the_exact_kkt_point_is_part_of_the_law() -> None:
    """M12: the slope of trained networks, and the point that docs/kkt-point.md derives."""
    for column in ("residual", "c_error"):
        wrong = found("M12", CONFIRM, one(column, 1e-6), "plots/theory_kkt.csv")
        assert wrong.verdict == "differs"
        assert wrong.deciding.value == 1e-6


def test_other_widths_and_initial_weights_do_not_enter_the_law() -> None:
    more = where("c", 99.0, width=1000)
    assert found("M12", CONFIRM, more).measured == found("M12", CONFIRM).measured
    strange = CONFIRM["plots/regime.csv"].assign(law=0)
    assert CLAIMS["M12"].judged(Found(CONFIRM | {"plots/regime.csv": strange})).verdict == "not run"


@pytest.mark.parametrize(("id", "numbers"), [("M6", "c 5.1 by"), ("M7", "share 0.97 by")])
def test_a_cell_in_the_papers_mini_batches_stands_beside_the_grid_or_is_missed(id: str, numbers: str) -> None:
    path, cell = "plots/minibatch.csv", "mini-batches of 5000, d = 300, α = 1.5"
    both = found(id, CONFIRM)
    assert f"{numbers} mini-batches of 5000" in both.measured
    assert cell not in both.lacks
    small = found(id, CONFIRM, lambda t: t.assign(m=89), path)
    assert cell in small.lacks
    none = CLAIMS[id].judged(Found({key: value for key, value in CONFIRM.items() if key != path}))
    assert (none.verdict, cell in none.lacks) == ("reproduced", True)


def test_the_control_tells_whether_the_norm_or_the_gaussian_makes_the_difference() -> None:
    measured = found("M9", CONFIRM).measured
    assert "the control, sphere of radius 1: c/‖x‖ 0.609 ×, share 0.865 ×" in measured


def test_m2_says_where_the_lemma_promises_nothing() -> None:
    draws = CONFIRM["plots/theory_lemma.csv"]
    measured = found("M2", CONFIRM, lambda t: pd.concat([t, draws.assign(d=100, m=1000)])).measured
    half, ln, log2 = measured.split("; ≤ ")
    assert half.endswith(
        "where the lemma promises anything: at (d, m) = (200, 200) alone; elsewhere its bound is negative"
    )
    assert ln.startswith("ln d/√d in 100 %")
    assert log2.endswith("nowhere, because its bound is negative")


def test_a_promise_of_the_lemma_that_is_negative_is_no_promise() -> None:
    """At d = 100 and m = d^1.5 the lemma promises nothing; there the bound may fail in every draw."""
    few = CONFIRM["plots/theory_lemma.csv"].assign(d=100, m=1000, largest=0.6, log=0.46)
    assert CLAIMS["M2"].judged(Found({"plots/theory_lemma.csv": few})).verdict == "reproduced"


def test_promised_probabilities_are_those_of_the_lemma() -> None:
    from brittle.margin.theory_claims import _promised

    assert _promised(200, 200, "½") == pytest.approx(1 - 200.0**3 * 0.75 ** (197 / 2))
    assert _promised(100, 1000, "½") == 0.0
    d = 10_000
    assert _promised(d, 100, "ln d/√d") == pytest.approx(1 - d ** (2 - 9.210340372 / 4), rel=1e-6)


def test_the_proof_is_judged_on_networks_near_a_kkt_point_alone() -> None:
    measured = found("M18", CONFIRM).measured
    assert "the bound is 40 × the size that flips all: C.9 10 ×, Thm 4.1 4 ×; 6 of 6 lines hold" in measured
    far = CONFIRM["plots/proof.csv"].assign(kkt=0.9, seed=9, tightness=5.0, rhs=1000.0)
    more = found("M18", CONFIRM, lambda t: pd.concat([t, far]))
    assert (more.measured, more.value) == (measured, pytest.approx(40))
    assert "1 others are farther" in more.scale
    broken = found("M18", CONFIRM, where("tightness", 1.5, lemma="C.3")).measured
    assert "3 of 6 lines hold within 2 % (not: C.3; lhs/rhs 1.5 at worst)" in broken


def test_the_answer_about_test_data_compares_them_with_training_samples() -> None:
    finding = found("M19", CONFIRM)
    assert finding.value == pytest.approx(1.0)
    assert found("M19", CONFIRM, where("radius_over_norm", 0.76, kind="fresh")).value == pytest.approx(2.0)
    assert "flips of fresh points 0 % at c, 100 % at 2c, all at 2.00 c" in finding.measured


def test_radii_that_grow_like_the_root_of_d_are_told_from_those_that_hardly_grow() -> None:
    for id in ("M14", "M15"):
        measured = found(id, CONFIRM).measured
        assert "gd × 1 like d^0.04 [-0.01, 0.09], slower than √d" in measured  # ± 4.303 · 0.02/√3
        assert "muon × 1 like d^0.50 [0.45, 0.55], not told from √d" in measured
        assert "normalised_gd × 1" not in measured  # which was run at one d alone
    faster = found("M14", CONFIRM, lambda t: t.assign(attacked=t["attacked"] * t["d"] ** 0.2)).measured
    assert "muon × 1 like d^0.70 [0.65, 0.75], faster than √d" in faster


def test_an_interval_needs_more_than_one_seed() -> None:
    alone = found("M14", CONFIRM, lambda t: t[t["seed"] == 1]).measured
    assert "muon × 1 like d^0.50 (too few seeds for an interval)" in alone


def test_each_optimiser_stands_beside_the_residual_of_its_own_margin_problem() -> None:
    measured = found("M14", CONFIRM).measured
    assert "gd 0.24 (0.96, 0.10), normalised_gd 0.24 (0.96, 0.10), muon 0.48 (0.96, 0.20)" in measured
    assert "normalised_gd goes gradient descent's own way" in measured


def test_tables_of_one_initial_scale_and_one_dimension_still_count() -> None:
    """evidence/optimisers.csv began without init_scale, residuals in other norms and radii at depth 3."""

    def old(t: pd.DataFrame) -> pd.DataFrame:
        t = t.drop(columns=["init_scale", "kkt_l2", "kkt_linf", "kkt_spectral"])
        return t[t["d"] == 100].assign(attacked=t["attacked"].where(t["depth"] == 2))

    for id, depth in (("M14", 2), ("M15", 3)):
        finding = found(id, CONFIRM, old)
        assert finding.verdict == "explored"
        cells = [f"two values of d at depth {depth}", "d = 400", "initial weights × 0.01", "5 seeds"]
        assert finding.lacks == cells
        assert "initial weights × 1: gd 0.24 (0.96), normalised_gd 0.24 (0.96), muon 0.48 (0.96)" in finding.measured


def test_dimensions_below_the_papers_are_told_and_not_judged_by_m7() -> None:
    small = lambda t: pd.concat([t, t[t["d"] == 100].assign(d=50, on_margin=0.9)])  # noqa: E731
    finding = found("M7", CONFIRM, small)
    assert finding.verdict == "reproduced"
    assert "below d = 100, not judged, 90 % at least" in finding.measured
