"""The rules of FP's claims: tables that confirm, refute, lack a premise or a cell, or decide nothing."""

from __future__ import annotations

import pytest

from brittle.verdicts import Found
from claim_cases import CLAIMS, Change, found, where, without
from tables_purification import CONFIRM

OWN = [id for id in CLAIMS if id.startswith("P")]
NETWORKS, GRID, FEATURES = "plots/sparse_networks.csv", "plots/sparse_grid.csv", "plots/cifar10_features.csv"
ACCURACY, PERTURBATIONS = "plots/cifar10_accuracy.csv", "plots/cifar10_perturbations.csv"


def under(attack: str, value: float, network: str, tau: float | None = 0.3) -> Change:
    cell = {"attack": attack, "network": network} | ({"tau": tau} if tau else {})
    return where("accuracy", value, **cell)


REFUTE: list[tuple[str, Change, str]] = [
    ("P1", where("moved", 0.13, network="clean", start="random"), NETWORKS),
    ("P1", where("correlated", 0.13, network="clean", start="random"), NETWORKS),
    ("P1", where("clean_moved", 0.01, d=256, norm="l2"), GRID),  # it rises
    ("P2", where("accuracy", 0.94, network="clean", start="pure"), NETWORKS),
    ("P2", where("clean_accuracy", 0.94, norm="l2"), GRID),
    ("P3", under("dense", 0.2, "clean"), ""),
    ("P3", under("random", 0.8, "clean"), ""),
    ("P3", where("clean_dense", 0.4, norm="l2"), GRID),  # at another d
    ("P4", where("agreement", 0.7, network="clean", start="pure"), NETWORKS),
    ("P4", where("ratio", 0.06, network="clean", start="pure"), NETWORKS),
    ("P4", where("ratio", 0.006, network="clean", start="pure"), NETWORKS),
    ("P5", under("pgd", 0.7, "robust"), ""),
    ("P5", under("fgm", 0.7, "robust"), ""),
    ("P5", under("dense", 0.3, "clean"), ""),
    ("P5", under("certified", 0.7, "robust"), ""),
    ("P6", where("median", 0.3, of="start, clean"), ""),
    ("P6", where("median", 0.3, of="start, robust"), ""),
    ("P6", where("median", 0.7, of="clean, robust"), ""),
    ("P6", where("median", 0.3, of="different neurons"), ""),
    ("P7", where("beta", 0.002, network="robust", start="random"), NETWORKS),
    ("P8", where("clean_dense", 0.3, norm="linf"), GRID),
    ("P8", where("clean_random", 0.7, norm="linf"), GRID),
    ("P8", where("robust_fgm", 0.7, norm="linf"), GRID),
    ("P8", where("robust_pgd", 0.7, norm="linf"), GRID),
    ("P9", where("pgd", 0.7, model="NTK", training="fgm"), ""),
    ("P9", where("robust_pgd", 0.6, norm="linf"), GRID),
    ("P10", where("accuracy", 0.4, of="random 0", on="pure 0"), ""),
    ("P11", where("winner_pot", 0.7, network="clean", start="random"), NETWORKS),
    ("P11", lambda t: t.drop(columns="winner_pot").assign(winner=0.7), NETWORKS),  # an older table
    ("P12", where("pgd_l1_l2", 11.0, network="robust", start="pure"), NETWORKS),
    ("P12", where("fgm_l1_l2", 11.0, network="robust", start="random"), NETWORKS),
    ("P13", where("robust", 0.02, network="linf-8.random"), ""),
    ("P13", where("robust", 0.02, network="robust"), ""),
    ("P13", where("robust", 0.4, network="l2-1.random"), ""),  # not alike
    ("P13", where("accuracy", 0.95, network="robust"), ""),
    ("P13", where("own", 0.02, network="robust"), ""),
    ("P13", where("own", 0.4, network="l2-1.random"), ""),
    ("P14", where("high_frequency", 0.35, network="robust", of="filters"), ""),
    ("P14", where("high_frequency", 0.15, network="control", of="filters"), ""),  # the control falls as far
    ("P15", where("median", 0.3, of="init, clean", layer=3), ""),
    ("P15", where("median", 0.3, of="init, robust", layer=1), ""),
    ("P15", where("median", 0.7, of="clean, robust", layer=3), ""),
    ("P16", where("error", 0.5, features="robust", target="pictures"), ""),
    ("P16", where("error", 0.95, features="clean", target="pictures"), ""),
    ("P16", where("error", 0.9, features="robust", target="robust_delta"), ""),
    ("P17", lambda t: t.assign(active=[0.9] + [0.3 + 0.01 * (e % 5) for e in range(30)]), ""),
    ("P18", where("haar", 0.68, network="robust"), PERTURBATIONS),
    ("P18", where("haar", 0.43, network="control"), PERTURBATIONS),
    ("P18", where("error", 0.9, features="robust", target="robust_delta"), "plots/cifar10_lasso.csv"),
    ("P19", lambda t: t.assign(theta_init=t["theta_init"].mask((t["network"] == "clean") & (t["epoch"] > 0), 0.3)), ""),
    (
        "P19",
        lambda t: t.assign(theta_clean=t["theta_clean"].mask((t["network"] == "robust") & (t["epoch"] > 0), 0.7)),
        "",
    ),
    (
        "P19",
        lambda t: t.assign(theta_clean=t["theta_clean"].mask((t["network"] == "again") & (t["epoch"] > 0), 0.8)),
        "",
    ),
    ("P19", lambda t: t.assign(variation=t["variation"].mask((t["network"] == "again") & (t["epoch"] > 0), 0.5)), ""),
    ("P20", where("variation", 0.95, network="robust", of="visualised", layer=3), ""),
    ("P20", where("variation", 0.4, network="control", of="visualised", layer=1), ""),
]
PREMISE: list[tuple[str, Change, str]] = [
    ("P9", where("accuracy", 0.5, training="clean"), ""),
    ("P15", where("robust", 0.2, network="robust"), "plots/cifar10_layers.csv"),
    ("P18", where("haar", 0.5, network="clean"), PERTURBATIONS),
]
MISSING: list[tuple[str, Change, str, str]] = [
    ("P1", without(start="random"), NETWORKS, "a second d from random weights"),
    ("P1", without(d=256, norm="l2"), GRID, "a second d from random weights"),
    ("P5", without(attack="certified"), "", "certified shares of 100 samples"),
    ("P8", lambda t: t[t["norm"] == "l2"], "", "a network in l∞ at τ = 1/k^1.75"),
    ("P9", without(model="NTK"), "", "NTK in l∞ without filter at τ = 1/k²"),
    ("P9", lambda t: t[t["norm"] == "l2"], GRID, "the purified network in l∞ without filter at τ = 1/k^1.75"),
    ("P10", lambda t: t[t["of"] == t["on"]][:1], "", "a second network"),
    ("P13", without(network="l2-1.random"), "", ""),
    ("P13", lambda t: t.drop(columns="own"), "", "the paper's own attackers"),
    ("P14", without(network="control"), "", "the network control"),
    ("P14", lambda t: t.assign(net="resnet-16"), "", "AlexNet"),
    ("P15", without(of="init, clean"), "", "θ(init, clean)"),
    (
        "P16",
        lambda t: t[~((t["features"] == "random") & (t["sparsity"] < 0.1))],
        "",
        "alexnet, random pictures at 4.05 %",
    ),
    ("P17", lambda t: t[t["epoch"] < 3], "", "three epochs of clean training"),
    ("P18", without(network="pictures"), PERTURBATIONS, "the Haar spread of the pictures themselves"),
    ("P18", without(network="control"), PERTURBATIONS, "the perturbations of control"),
    ("P19", without(network="control"), "", "the network control"),
    ("P20", without(network="control", of="visualised"), "", "the network control, visualised"),
]
LACKING: list[tuple[str, Change, str, str]] = [
    ("P1", lambda t: t, "", "d = 1024 from random weights"),
    ("P5", lambda t: t.assign(certified=99), NETWORKS, "100 certified samples from random weights (99 so far)"),
    ("P6", lambda t: t.assign(d=300), NETWORKS, "d = 512 from random weights"),
    ("P11", lambda t: t.drop(columns="winner_pot"), NETWORKS, "S_pot and S_sure of Lemma B.2"),
    ("P13", lambda t: t, "", "resnet-34"),
    ("P13", lambda t: t, "", "the attacker l2-1-0.25"),
    ("P14", lambda t: t, "", ""),
    ("P16", lambda t: t.assign(pictures=12), "", "100 pictures (here 12)"),
    ("P17", lambda t: t, "", "resnet-28-10"),
    ("P19", lambda t: t.assign(epoch=t["epoch"].clip(upper=4)), "", "20 epochs of clean training again (here 4)"),
    ("P20", lambda t: t.assign(samples=4000), ACCURACY, "50000 training pictures"),
]
WITHIN: list[tuple[str, Change, str]] = [
    ("P3", under("dense", 0.099, "clean"), ""),
    ("P5", under("certified", 0.91, "robust"), ""),
    ("P13", lambda t: t.assign(attacked=50), ""),
    ("P14", lambda t: t[t["seed"] == 0], ""),  # one seed has no spread
    ("P16", lambda t: t.drop(columns="error_spread"), ""),
    ("P18", lambda t: t.assign(haar_spread=0.5), PERTURBATIONS),
    ("P19", lambda t: t[t["seed"] == 0], ""),
]


@pytest.mark.parametrize("id", OWN)
def test_numbers_that_confirm_a_claim_are_seen(id: str) -> None:
    finding = found(id, CONFIRM)
    assert finding.verdict == "reproduced", finding.deciding


@pytest.mark.parametrize(("id", "change", "path"), REFUTE)
def test_numbers_that_refute_a_claim_are_seen(id: str, change: Change, path: str) -> None:
    assert found(id, CONFIRM, change, path).verdict == "differs"


@pytest.mark.parametrize(("id", "change", "path"), PREMISE)
def test_where_the_premise_fails_nothing_is_said(id: str, change: Change, path: str) -> None:
    assert found(id, CONFIRM, change, path).verdict == "premise not met"


@pytest.mark.parametrize(("id", "change", "path", "cell"), MISSING)
def test_a_cell_that_the_rule_needs_is_named(id: str, change: Change, path: str, cell: str) -> None:
    finding = found(id, CONFIRM, change, path)
    if cell:
        assert any(cell in each for each in (*finding.needs, *finding.lacks))
    if id not in ("P9", "P13"):
        assert finding.verdict == "not run"


@pytest.mark.parametrize(("id", "change", "path", "cell"), LACKING)
def test_a_cell_of_the_paper_that_was_not_run_is_named_beside_the_verdict(
    id: str, change: Change, path: str, cell: str
) -> None:
    finding = found(id, CONFIRM, change, path)
    assert finding.verdict == "reproduced", finding.deciding
    assert not cell or cell in finding.lacks


@pytest.mark.parametrize(("id", "change", "path"), WITHIN)
def test_a_number_within_its_spread_decides_nothing(id: str, change: Change, path: str) -> None:
    finding = found(id, CONFIRM, change, path)
    assert finding.verdict == "undecided", finding.deciding


@pytest.mark.parametrize("id", OWN)
def test_without_tables_nothing_is_said(id: str) -> None:
    finding = CLAIMS[id].judged(Found({}))
    assert finding.verdict == "not run"
    assert finding.needs[0] in CLAIMS[id].reads


def test_the_grid_alone_is_judged_as_far_as_it_goes() -> None:
    """As in evidence/, where the grid may be the only table."""
    alone = Found({GRID: CONFIRM[GRID]})
    verdicts = {id: CLAIMS[id].judged(alone).verdict for id in OWN[:12]}
    assert verdicts["P2"] == verdicts["P3"] == verdicts["P8"] == "reproduced"
    assert verdicts["P5"] == verdicts["P11"] == "not run"
