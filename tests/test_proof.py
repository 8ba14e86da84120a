"""The proof of VYS Thm 4.1, line by line: it holds at an exact KKT point, and its losses multiply to the whole."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.attacks.universal import thm41
from brittle.nets.kkt_point import KKTPoint, kkt_point
from brittle.nets.two_layer import TwoLayer
from brittle.probes.kkt import residuals
from brittle.probes.margin import probe
from brittle.probes.proof import Constants, Proof, proof
from test_kkt_point import orthonormal

LEMMAS = ("C.1", "C.2", "C.3", "C.4", "C.5", "C.6", "C.7, C.8", "C.9")
# m = 2n < (d + 1)/3, as the theorem assumes of orthogonal samples
sizes = st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(6 * n, 60)))


def pulls(point: KKTPoint, y: torch.Tensor) -> torch.Tensor:
    """λσ' of the exact point: λ at a neuron's own samples, and λ times the slope at its kinks."""
    own = (y[:, None] * point.net.v[0] > 0).to(y.dtype)
    return point.multiplier * (own + point.kink * (1 - own))


def exact(n: int, d: int, seed: int) -> tuple[Proof, TwoLayer, torch.Tensor, torch.Tensor]:
    x, y = orthonormal(d, n, seed)
    point = kkt_point(x, y)
    assert thm41(x, y).applies
    return proof(point.net, x, y, pulls(point, y)), point.net, x, y


@given(size=sizes, seed=st.integers(0, 10**6))
def test_every_line_holds_at_an_exact_kkt_point(size: tuple[int, int], seed: int) -> None:
    found, *_ = exact(*size, seed)
    for line in found.lines:
        assert line.lhs <= line.rhs * (1 + 1e-9) + 1e-9, line
    assert {lemma for lemma in LEMMAS if any(line.lemma.startswith(lemma) for line in found.lines)} == set(LEMMAS)


@given(size=sizes, seed=st.integers(0, 10**6))
def test_the_losses_multiply_to_the_bound_over_the_size_that_flips_all(size: tuple[int, int], seed: int) -> None:
    found, net, x, y = exact(*size, seed)
    whole = thm41(x, y).bound / probe(net, x, y, 1.1).c
    assert math.prod(loss.factor for loss in found.losses) == pytest.approx(whole)


def test_lines_at_an_exact_kkt_point_are_the_numbers_of_its_closed_form() -> None:
    """n = 2, d = 12: with v²λ = A, an own sample contributes A and another A n/(d + n)."""
    n, d = 2, 12
    found, _, x, y = exact(n, d, 0)
    point = kkt_point(x, y)
    a, kink = float(point.net.v[0, 0]) ** 2 * point.multiplier, n / (d + n)
    lines = {line.lemma: line for line in found.lines}
    assert lines["C.1"].tightness == pytest.approx(1)
    assert lines["C.1, case 1"].tightness == pytest.approx((d + 1) / (d + 2 * n - 1))
    assert lines["C.2"].rhs == pytest.approx(a * n * (1 + kink))
    assert lines["C.3"].lhs == pytest.approx(0, abs=1e-9)  # a neuron is active, or at its kink
    assert lines["C.4"].tightness == pytest.approx(1)  # p = 0
    assert lines["C.5"].tightness == pytest.approx(1 / 3)
    assert lines["C.9, ‖u‖"].tightness == pytest.approx(1)


def test_the_proofs_constants_are_those_of_its_z() -> None:
    x, y = orthonormal(40, 3, 0)
    of = Constants.of(x, y)
    torch.testing.assert_close((of.eta1 + of.eta2) * (y @ x), thm41(x, y).z)
    assert (of.c, of.c1) == pytest.approx((0.5, 6 / 41))


def test_a_network_that_is_no_kkt_point_breaks_lines() -> None:
    x, y = orthonormal(40, 3, 0)
    point = kkt_point(x, y)
    half = proof(point.net, x, y, 0.5 * pulls(point, y))  # (9) and (10) give half of the weights
    broken = {line.lemma for line in half.lines if line.tightness > 1 + 1e-6}
    assert {"C.1, (14)", "C.2, (15) or (16)"} & broken


def test_fitted_pulls_at_an_exact_kkt_point_explain_its_weights() -> None:
    x, y = orthonormal(40, 3, 0)
    point = kkt_point(x, y)
    fitted = residuals(point.net, x, y, kink=1e-6)
    assert fitted.stationarity < 1e-2
    assert bool((fitted.pulls >= 0).all())
    assert bool((fitted.pulls <= fitted.multipliers[:, None] * (1 + 1e-12)).all())
    w = point.net.v[0, :, None] * (fitted.pulls.T @ (y[:, None] * x))  # VYS Eq. (9)
    assert float((w - point.net.w[0]).norm() / point.net.w.norm()) < 1e-2
