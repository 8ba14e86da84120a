"""Directions in which the data do not vary: what training leaves of them, in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from brittle.core.rng import rng
from brittle.nets.family import split
from brittle.nets.fcn import Fcn
from brittle.nets.fixed_output import FixedOutput
from brittle.nets.two_layer import TwoLayer
from brittle.probes.off_subspace import flip_sizes, gradients, off, predicted_gradient, shrunk, smallest, span
from brittle.train.sgd import Member, SgdPlan, SgdState, initial, train
from brittle.worlds import subspace


def data(d: int = 12, m: int = 10, codimension: int = 5, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(torch.from_numpy(a) for a in subspace.sample(d, m, codimension, rng(seed, "test")))


@pytest.mark.parametrize(("n", "rank"), [(30, 8), (30, 3), (5, 5), (5, 2)])
def test_the_span_is_that_of_a_singular_value_decomposition(n: int, rank: int) -> None:
    draws = rng(n, "test")
    x = torch.from_numpy(draws.standard_normal((n, rank)) @ draws.standard_normal((rank, 8)))
    basis = span(x)
    _, s, vt = torch.linalg.svd(x)
    assert len(basis) == int((s > 1e-9 * s[0]).sum()) == rank
    torch.testing.assert_close(basis @ basis.T, torch.eye(rank).double())
    torch.testing.assert_close(basis.T @ basis, vt[:rank].T @ vt[:rank])
    assert float(off(x, basis).abs().max()) < 1e-9


def test_samples_of_a_subspace_lie_in_it_and_vary_in_all_of_it() -> None:
    x, y, basis = data()
    assert float(off(x, basis).abs().max()) < 1e-12
    torch.testing.assert_close(basis @ basis.T, torch.eye(7).double())
    assert len(span(x)) == 7
    assert sorted(y.tolist()) == [-1.0] * 5 + [1.0] * 5


@pytest.mark.parametrize("net", [FixedOutput(12, 20), Fcn(12, 9, 1), Fcn(12, 9, 2)], ids=["fixed", "fcn", "deep"])
@pytest.mark.parametrize("decay", [0.0, 0.02])
def test_training_never_moves_the_part_off_the_subspace_and_weight_decay_shrinks_it(net: Fcn, decay: float) -> None:
    """(1 - ηλ)^T, one factor for each of T = 15 epochs × 2 updates, whatever the layers above do."""
    x, y, basis = data()
    members = [Member(seed=0, lr=0.3, weight_decay=decay)]
    before = initial(net, members).double() * 4
    after = train(net, members, x[None], y[None], SgdPlan(15, batch=5), state=SgdState.start(before.clone())).theta
    w0, w = (split(theta, net.shapes)[0][0] for theta in (before, after))
    torch.testing.assert_close(off(w, basis), (1 - 0.3 * decay) ** 30 * off(w0, basis), rtol=1e-9, atol=1e-12)
    assert shrunk(0.3, decay, 30) == (1 - 0.3 * decay) ** 30
    assert float((w - w0).norm()) > 0.05 * float(w0.norm())


def drawn(d: int, k: int, scale: float, seed: int) -> TwoLayer:
    """Fixed outputs ±1/√k, and w ~ N(0, β²/d)."""
    w = scale / math.sqrt(d) * torch.from_numpy(rng(seed, "weights").standard_normal((1, k, d)))
    v = torch.ones(1, k).double() / math.sqrt(k)
    v[:, k // 2 :] *= -1
    return TwoLayer(w, torch.zeros(1, k).double(), v)


def test_the_gradient_off_the_subspace_has_the_length_that_is_derived() -> None:
    """E‖Π⊥∇N‖² = β² k_x ℓ/(k d), given k_x, the active neurons; over 300 draws, within 6 standard errors."""
    x, _, basis = data(d=20, m=1, codimension=8)
    ratios = []
    for seed in range(300):
        gradient, active = gradients(drawn(20, 30, 0.7, seed), x)
        ratios.append(float(off(gradient, basis).norm() / predicted_gradient(active, 30, 8, 20, 0.7)) ** 2)
    assert np.mean(ratios) == pytest.approx(1, abs=6 * math.sqrt(2 / 8 / 300))


def test_gradients_are_autograds() -> None:
    x, _, _ = data()
    net, points = drawn(12, 9, 1.0, 0), x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(net(points[None]).sum(), points)
    found, active = gradients(net, x)
    torch.testing.assert_close(found, expected)
    assert active.tolist() == [sum(float(w @ point) > 0 for w in net.w[0]) for point in x]


class Line(nn.Module):
    def __init__(self, w: Tensor) -> None:
        super().__init__()
        self.w = w

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.w


def test_a_linear_network_flips_at_its_output_over_its_slope_off_the_subspace() -> None:
    x, _, basis = data()
    w = torch.from_numpy(rng(0, "w").standard_normal(12))
    y, slope = (x @ w).sign(), float(off(w[None], basis).norm())
    expected = (x @ w).abs() / slope
    both = TwoLayer(torch.stack([w, -w])[None], torch.zeros(1, 2).double(), torch.tensor([[1.0, -1.0]]).double())
    torch.testing.assert_close(flip_sizes(both, x, y, basis), expected, rtol=1e-6, atol=0)
    found = smallest(Line(w), x, y, basis, high=float(4 * expected.max()))
    assert found == pytest.approx(float(expected.median()), rel=1e-4)
    wholly = float(((x @ w).abs() / w.norm()).median())
    assert found > 1.05 * wholly  # what an attack in all directions would find


def test_where_nothing_flips_it_is_infinite_and_where_there_is_no_other_direction_no_number() -> None:
    x, _, basis = data()
    w = basis[0]  # the network does not look off the subspace
    assert smallest(Line(w), x, (x @ w).sign(), basis, high=100.0) == math.inf
    assert math.isnan(smallest(Line(w), x, (x @ w).sign(), torch.eye(12).double(), high=100.0))


def test_the_diagonal_and_the_chess_board_are_those_of_the_paper() -> None:
    x, y = subspace.diagonal()
    assert x.shape == (7, 2)
    assert (x[:, 0] == x[:, 1]).all()
    assert y.tolist() == [-1, 1, -1, 1, -1, 1, -1]
    x, y = subspace.chess_board()
    assert x.shape == (25, 3)
    assert set(x[:, 2]) == {0.5}
    for i in range(25):
        for j in range(25):
            near = np.isclose(np.abs(x[i] - x[j]).sum(), 0.25)
            assert not near or y[i] == -y[j]
    assert len(span(torch.from_numpy(x))) == 3  # the plane is affine: nothing is frozen there
