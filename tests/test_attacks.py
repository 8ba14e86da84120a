"""Attacks find flips, near the nearest, and none within a certified radius."""

from __future__ import annotations

import math

import foolbox
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from brittle.attacks import line
from brittle.attacks.line import crossings, first_zero
from brittle.attacks.nearest_boundary import Found, along, best, minimum, smallest_pgd
from brittle.attacks.pgd import pgd
from brittle.attacks.pieces import NORMS
from brittle.nets.two_layer import TwoLayer, initial
from brittle.probes.certify import certified
from brittle.train import flow
from brittle.worlds import sphere
from test_certify import exact_radii, random_net, robust_network

seeds = st.integers(0, 2**31)
norms = st.sampled_from(["l2", "linf"])
ORDERS = {"l2": 2, "linf": math.inf}


def trained(d: int, m: int, width: int) -> tuple[TwoLayer, Tensor, Tensor]:
    x, y = (torch.from_numpy(t).float() for t in sphere.sample(d, m, np.random.default_rng(1)))
    net = initial(d, width, 1.0, [np.random.default_rng(2)])
    options = {"loss": "exponential", "ln_target": -30 * math.log(10), "momentum": 0.7, "max_steps": 20000}
    net, _ = flow.train(x[None], y[None], net, **options)
    return net.to(torch.float64), x.double(), y.double()


def check(net: TwoLayer, x: Tensor, y: Tensor, found: Found) -> None:
    """What is said to flip does, and is as large as is said."""
    hit = found.size.isfinite()
    assert bool((y * net((x + found.delta)[None])[0] <= 0)[hit].all())
    np.testing.assert_allclose(found.delta.norm(dim=1)[hit], found.size[hit], rtol=1e-12)


@settings(max_examples=50, deadline=None)
@given(seed=seeds, norm=norms, eps=st.floats(0.1, 10))
def test_projections_are_the_nearest_points_of_their_balls(seed: int, norm: str, eps: float) -> None:
    """p is the projection of δ if and only if it is in the ball and (δ - p)·(b - p) ≤ 0 for all b of the ball."""
    g = torch.Generator().manual_seed(seed)
    delta, ball = (torch.randn(20, 3, generator=g, dtype=torch.float64) * 5 for _ in range(2))
    p, b = (NORMS[norm].project(t, torch.full((20,), eps, dtype=torch.float64)) for t in (delta, ball))
    for point in (p, b):
        assert bool((torch.linalg.vector_norm(point, ORDERS[norm], dim=1) <= eps * (1 + 1e-12)).all())
    assert bool((((delta - p)[:, None] * (b - p[:, None])).sum(2) <= 1e-9).all())


@settings(max_examples=50, deadline=None)
@given(seed=seeds, norm=norms)
def test_normalised_steps_attain_the_dual_norm(seed: int, norm: str) -> None:
    g = torch.randn(20, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    step = NORMS[norm].normalise(g)
    np.testing.assert_allclose(torch.linalg.vector_norm(step, ORDERS[norm], dim=1), 1)
    np.testing.assert_allclose((g * step).sum(1), torch.linalg.vector_norm(g, 2 if norm == "l2" else 1, dim=1))
    assert not bool(NORMS[norm].normalise(torch.zeros(2, 3)).any())


@settings(max_examples=30, deadline=None)
@given(seed=seeds, norm=norms, steps=st.integers(1, 30))
def test_on_a_linear_network_pgd_and_fgm_reach_the_minimum_of_the_ball(seed: int, norm: str, steps: int) -> None:
    """y(w·(x + δ)) ≥ y w·x - ε ‖w‖*, attained."""
    g = torch.Generator().manual_seed(seed)
    x, w = torch.randn(5, 4, generator=g, dtype=torch.float64), torch.randn(4, generator=g, dtype=torch.float64)
    y, eps = torch.tensor([1.0, -1, 1, -1, 1], dtype=torch.float64), torch.rand(5, generator=g, dtype=torch.float64)
    lowest = y * (x @ w) - eps * torch.linalg.vector_norm(w, 2 if norm == "l2" else 1)
    for delta in (pgd(lambda p: p @ w, x, y, norm, eps, steps), pgd(lambda p: p @ w, x, y, norm, eps, 1, 1.0)):
        np.testing.assert_allclose(y * ((x + delta) @ w), lowest, atol=1e-12)


def test_pgd_returns_the_lowest_point_it_saw_not_the_last() -> None:
    """On |p| with a step three times too long, every second point is worse than the one before."""
    x, y = torch.tensor([[1.0]], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    delta = pgd(lambda p: p.abs()[:, 0], x, y, "l2", 2.0, steps=2, step_size=0.5)
    assert delta.tolist() == [[-1.0]]  # 1 → 0 (the kink, where the gradient is 0)
    delta = pgd(lambda p: p.abs()[:, 0], x, y, "l2", 2.0, steps=2, step_size=0.8)
    assert float(delta) == pytest.approx(-1.6)  # 1 → -0.6 → 1: the middle is the lowest


@settings(max_examples=60, deadline=None)
@given(seed=seeds, k=st.integers(1, 12), d=st.integers(1, 4))
def test_the_first_zero_is_the_first_crossing(seed: int, k: int, d: int) -> None:
    """`line.crossings`, on a direction that all samples share."""
    net, x, y = random_net(seed, 6, k, d)
    u = torch.randn(d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    a, yv, rate = net.preactivations(x[None])[0], y[:, None] * net.v[0], net.w[0] @ u
    ours, theirs = first_zero(a, -y[:, None] * rate, yv), crossings(a, rate, net.v[0], y).first()
    # Where all neurons die the network rests at 0, which is a zero but no crossing.
    dies = ((a - y[:, None] * (ours.nan_to_num(0.0, 0.0) * (1 + 1e-9))[:, None] * rate).relu().sum(1) < 1e-6) | (y == 0)
    np.testing.assert_allclose(ours[~dies], theirs[~dies], rtol=1e-7)
    assert bool((ours <= theirs * (1 + 1e-9)).all())


@settings(max_examples=15, deadline=None)
@given(seed=seeds, k=st.integers(1, 8), d=st.integers(1, 3))
def test_attacks_flip_never_nearer_than_the_exact_radius_nor_than_a_certificate(seed: int, k: int, d: int) -> None:
    net, x, y = random_net(seed, 5, k, d)
    x, y = x[y != 0], y[y != 0]
    if len(y) == 0:
        return
    found, true = best(net, x, y), exact_radii(net, x, y)
    check(net, x, y, found)
    assert bool((found.sizes >= true * (1 - 1e-7)).all())
    assert torch.equal(found.size, found.sizes.amin(0))
    assert bool((found.size >= certified(net, x, y, steps=10).radius).all())


def test_the_minimum_attack_is_within_three_percent_of_the_exact_radius_on_nine_samples_of_ten() -> None:
    ratios = []
    for seed in range(12):
        net, x, y = random_net(seed, 6, 2 + seed % 7, 1 + seed % 3)
        true = exact_radii(net, x, y)
        ratios.append((minimum(net, x, y).size / true)[(y != 0) & (true < 50)])
    assert float((torch.cat(ratios) < 1.03).double().mean()) > 0.9


def test_the_robust_network_is_flipped_at_its_closed_form_and_not_before() -> None:
    """Thm 3.1: at √d(1 - c)/2 the network is 0, with nothing beyond it but 0; touching counts."""
    x, y = (torch.from_numpy(t).double() for t in sphere.sample(60, 40, np.random.default_rng(0)))
    net, radius = robust_network(x, y)
    found = minimum(net, x, y)
    check(net, x, y, found)
    np.testing.assert_allclose(found.size, radius, rtol=1e-6)


@pytest.fixture(scope="module")
def bracket() -> tuple[TwoLayer, Tensor, Tensor]:
    return trained(d=40, m=20, width=200)


def test_a_trained_network_is_bracketed_within_two_percent(bracket: tuple[TwoLayer, Tensor, Tensor]) -> None:
    """Certified from below, attacked from above; z, PGD and CROWN alone are further off."""
    found, sure = best(*bracket), certified(*bracket)
    check(*bracket, found)
    ratio = sure.radius / found.size
    assert bool((ratio <= 1).all())
    assert float(ratio.median()) > 0.98
    assert float((sure.crown / found.size).median()) < 0.9
    assert float((found.sizes[0] / found.size).median()) > 1.01


def test_foolbox_never_beats_a_certificate_and_hardly_ever_our_attack(
    bracket: tuple[TwoLayer, Tensor, Tensor],
) -> None:
    net, x, y = bracket

    class Logits(torch.nn.Module):
        def forward(self, points: Tensor) -> Tensor:
            scores = net(points[None])[0]
            return torch.stack([-scores, scores], dim=1)

    model = foolbox.PyTorchModel(Logits().eval(), bounds=(-100, 100), device="cpu")
    labels, sure, ours = (y > 0).long(), certified(net, x, y).radius, minimum(net, x, y).size
    attacks = foolbox.attacks
    for attack in (
        attacks.DDNAttack(steps=200),
        attacks.L2FMNAttack(steps=200),
        attacks.L2DeepFoolAttack(overshoot=1e-3),
    ):
        _, moved, flipped = attack(model, x, labels, epsilons=None)
        theirs = torch.where(flipped, (moved - x).norm(dim=1), torch.inf)
        assert bool(flipped.any())
        assert bool((theirs >= sure).all())
        assert bool((ours <= theirs * (1 + 1e-3)).all())


def test_pgd_alone_finds_flips_of_its_own(bracket: tuple[TwoLayer, Tensor, Tensor]) -> None:
    found = smallest_pgd(*bracket)
    check(*bracket, found)
    assert bool((found.size <= 1.1 * minimum(*bracket).size).all())


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x, y = random_net(0, 20, 12, 4)
    u = torch.randn(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = along(net, x, y, u)
    monkeypatch.setattr(line, "CHUNK", 7 * 12)
    assert torch.equal(along(net, x, y, u).size, whole.size)
