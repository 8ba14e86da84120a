"""No perturbation within a certified radius flips a sample: against radii enumerated cell by cell, and closed forms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from torch import Tensor

from brittle.attacks.branch_and_bound import bracket
from brittle.attacks.line import first_zero
from brittle.attacks.nearest_boundary import minimum
from brittle.nets.two_layer import TwoLayer, initial
from brittle.probes import certify
from brittle.probes.certify import certified
from brittle.train import flow
from brittle.train.state import NotReached
from brittle.worlds import sphere

seeds = st.integers(0, 2**31)
widths, dimensions = st.integers(1, 8), st.integers(1, 3)


def random_net(seed: int, n: int, k: int, d: int) -> tuple[TwoLayer, Tensor, Tensor]:
    """A random network, and samples labelled by it."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    net, x = TwoLayer(normal(1, k, d), normal(1, k), normal(1, k)), normal(n, d)
    return net, x, net(x[None])[0].sign()


def exact_radius(net: TwoLayer, x: Tensor, y: float) -> float:
    """min ‖δ‖ with y N(x + δ) ≤ 0, over each cell of the arrangement: the least norm in a polyhedron G δ ≥ h.

    By Lawson and Hanson's reduction of that to non-negative least squares (Solving Least Squares Problems, §23.4).
    """
    w, b, v, d = net.w[0].numpy(), net.b[0].numpy(), net.v[0].numpy(), len(x)
    a, smallest = w @ x.numpy() + b, math.inf
    for pattern in product([0.0, 1.0], repeat=len(b)):
        on = np.array(pattern)
        sign, slope, value = 2 * on - 1, y * (v * on) @ w, y * float((v * on) @ a)
        G, h = np.vstack([sign[:, None] * w, -slope]), np.append(-sign * a, value)
        scale = np.maximum(np.linalg.norm(G, axis=1), 1e-12)
        E = np.vstack([(G / scale[:, None]).T, h / scale])
        u, gap = optimize.nnls(E, np.eye(d + 1)[d])
        if gap > 1e-6:  # else empty, or beyond a distance of 10⁶
            r = E @ u - np.eye(d + 1)[d]
            smallest = min(smallest, float(np.linalg.norm(r[:d] / r[d])))
    return smallest


def exact_radii(net: TwoLayer, x: Tensor, y: Tensor) -> Tensor:
    return torch.tensor([exact_radius(net, xi, float(yi)) for xi, yi in zip(x, y, strict=True)], dtype=torch.float64)


def robust_network(x: Tensor, y: Tensor) -> tuple[TwoLayer, float]:
    """Thm 3.1's network, and its radius √d(1 - c)/2."""
    m, d = x.shape
    c = float((x @ x.T / d - torch.eye(m, dtype=x.dtype)).abs().max())
    net = TwoLayer((2 * x / (d * (1 - c)))[None], x.new_full((1, m), -(1 + c) / (1 - c)), y[None])
    return net, math.sqrt(d) * (1 - c) / 2


@settings(max_examples=40, deadline=None, derandomize=True)  # 20,000 directions may miss a narrow flip
@given(seed=seeds, k=widths, d=dimensions)
def test_the_enumerated_radius_is_the_nearest_flip_of_a_dense_sampling(seed: int, k: int, d: int) -> None:
    """The yardstick itself: nothing flips within it, something flips just beyond it."""
    net, x, y = random_net(seed, 1, k, d)
    r = exact_radius(net, x[0], float(y[0]))
    if y[0] == 0 or r > 100:
        return
    u = torch.randn(20000, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    u = u / u.norm(dim=1, keepdim=True)
    share = torch.linspace(0, 1, 40, dtype=torch.float64)[:, None, None] * (1 - 1e-9)
    assert bool((y[0] * net((x + r * share * u[:500]).reshape(1, -1, d)) > -1e-9).all())
    assert float((y[0] * net((x + (r * 1.02 + 1e-3) * u)[None])).min()) < 1e-2 * float(y[0] * net(x[None])[0])


@settings(max_examples=40, deadline=None)
@given(seed=seeds, k=widths, d=dimensions)
def test_no_certificate_exceeds_the_exact_radius(seed: int, k: int, d: int) -> None:
    net, x, y = random_net(seed, 4, k, d)
    found, true = certified(net, x, y), exact_radii(net, x, y)
    a, yv = net.preactivations(x[None])[0], y[:, None] * net.v[0]
    right = y * net(x[None])[0] > 0
    for bound in (found.radius, found.local, certify.crown(a, yv, net.w[0]), certify.quadratic(a, yv, net.w[0])):
        assert bool((bound <= true * (1 + 1e-8))[right].all())
    sure = found.exact & (y != 0)
    np.testing.assert_allclose(found.radius[sure & (true < 1e5)], true[sure & (true < 1e5)], rtol=1e-6)


def trained_net(seed: int, n: int, k: int, d: int) -> tuple[TwoLayer, Tensor, Tensor] | None:
    """A network of k neurons trained to loss 0.001 on n samples; None if it is one that does not get there."""
    x, y = (torch.from_numpy(t).double() for t in sphere.sample(d, n, np.random.default_rng(seed)))
    net = initial(d, k, 1.0, [np.random.default_rng(seed)]).to(torch.float64)
    how = {"loss": "exponential", "ln_target": math.log(1e-3), "momentum": 0.0, "max_steps": 1500}
    try:
        return flow.train(x[None], y[None], net, **how)[0], x, y
    except NotReached:
        return None


def small_nets() -> Iterator[tuple[TwoLayer, Tensor, Tensor]]:
    """Random and trained networks, each with four samples or more."""
    for seed in range(60):
        yield random_net(seed, 4, 4 + seed % 5, 2 + seed % 4)
    for seed in range(20):
        net = trained_net(seed, 4 + seed % 4, 4 + seed % 5, 2 + seed % 4)
        if net:
            yield net


def test_on_small_networks_certificate_and_attack_meet_at_the_exact_radius() -> None:
    """Linear and quadratic relaxation alone prove less than 0.6 of it in the worst case."""
    proved, relaxed, attacked, nets = [], [], [], 0
    for net, x, y in small_nets():
        true, sure = exact_radii(net, x, y), certified(net, x, y)
        there = (true > 0) & (true < 1e3)  # some networks have no boundary
        proved.append((sure.radius / true)[there])
        relaxed.append((sure.crown.maximum(sure.quadratic) / true)[there & ~sure.exact])
        attacked.append((minimum(net, x, y, steps=20, restarts=0).size / true)[there])
        nets += 1
    assert nets >= 70
    assert float(torch.cat(relaxed).min()) < 0.6
    assert float(torch.cat(proved).max()) <= 1 + 1e-8
    assert float(torch.cat(proved).min()) >= 0.999
    assert float(torch.cat(attacked).min()) >= 1 - 1e-8
    assert float(torch.cat(attacked).max()) <= 1.001


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=widths, d=dimensions, solves=st.integers(0, 12))
def test_branch_and_bound_is_sound_wherever_it_stops(seed: int, k: int, d: int, solves: int) -> None:
    net, x, y = random_net(seed, 4, k, d)
    a, yv = net.preactivations(x[None])[0], y[:, None] * net.v[0]
    true, found = exact_radii(net, x, y), bracket(a, yv, net.w[0], solves=solves)
    right = y * net(x[None])[0] > 0
    assert bool((found.lower <= true * (1 + 1e-8))[right].all())
    assert bool((first_zero(a, found.u @ net.w[0].T, yv) >= true * (1 - 1e-8))[right].all())


def test_branch_and_bound_leaves_alone_what_has_too_many_neurons_to_decide() -> None:
    net, x, y = random_net(1, 4, 200, 3)
    a, yv = net.preactivations(x[None])[0], y[:, None] * net.v[0]
    assert bool(bracket(a, yv, net.w[0]).lower.isnan().all())
    assert bool((certified(net, x, y).radius > 0).all())


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=widths, d=dimensions)
def test_the_dual_is_sound_for_parameters_nobody_optimised(seed: int, k: int, d: int) -> None:
    net, x, y = random_net(seed, 3, k, d)
    g = torch.Generator().manual_seed(seed + 1)
    a, yv = net.preactivations(x[None])[0], y[:, None] * net.v[0]
    true = exact_radii(net, x, y)
    for size in (0.01, 0.1, 1.0):
        t = a.abs() * torch.rand(a.shape, generator=g, dtype=a.dtype) * 2 + 0.01
        alpha, lam = torch.rand(a.shape, generator=g, dtype=a.dtype), size * torch.rand(3, generator=g, dtype=a.dtype)
        assert bool((certify.dual(a, yv, net.w[0], t, alpha, lam) <= true * (1 + 1e-8)).all())


@settings(max_examples=40, deadline=None)
@given(seed=seeds, k=widths, d=dimensions)
def test_the_dual_is_the_minimum_that_scipy_finds(seed: int, k: int, d: int) -> None:
    """min_δ ‖δ‖² + λ (lines - parabolas), summed neuron by neuron; convex, as λ is at most half of what Q allows."""
    net, x, y = random_net(seed, 1, k, d)
    g = np.random.default_rng(seed)
    w, a, yv = net.w[0].numpy(), net.preactivations(x[None])[0, 0].numpy(), (y[0] * net.v[0]).numpy()
    t, alpha = np.abs(a) + g.uniform(0, 0.5, k), (a > 0) * g.uniform(0.8, 1, k)
    top = np.linalg.eigvalsh((w.T * (-yv).clip(0) / (4 * t)) @ w)[-1]
    lam = 0.5 / max(top, 0.5)

    def penalised(delta: np.ndarray) -> float:
        z = a + w @ delta
        return delta @ delta + lam * (yv * np.where(yv > 0, alpha * z, (z + t) ** 2 / (4 * t))).sum()

    theirs = optimize.minimize(penalised, np.zeros(d)).fun
    rows = (torch.tensor(part)[None] for part in (t, alpha))
    ours = certify.dual(torch.tensor(a)[None], torch.tensor(yv)[None], net.w[0], *rows, torch.tensor([lam]), polish=0)
    assert float(ours[0]) ** 2 == pytest.approx(max(0.0, theirs), abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=widths, d=dimensions, r=st.floats(0.01, 3))
def test_crown_is_the_textbook_bound_with_the_best_slopes(seed: int, k: int, d: int, r: float) -> None:
    """Neuron by neuron in plain Python; the best slopes by scipy, on the other side of the duality."""
    net, x, y = random_net(seed, 1, k, d)
    a, yv = net.preactivations(x[None])[0], y[:, None] * net.v[0]
    w, slopes, constant = net.w[0].numpy(), np.zeros(k), 0.0  # the bound's slope in each z_j, at α = 0
    free = []
    for j in range(k):
        low, high = (float(a[0, j]) + sign * r * np.linalg.norm(w[j]) for sign in (-1, 1))
        if low >= 0:
            slopes[j] = yv[0, j]
        elif high > 0 and yv[0, j] > 0:
            free.append(j)
        elif high > 0:
            slopes[j] = yv[0, j] * high / (high - low)
            constant -= float(yv[0, j]) * high * low / (high - low)

    def bound(alpha: np.ndarray) -> float:
        full = slopes.copy()
        full[free] = alpha * yv[0, free].numpy()
        return constant + full @ a[0].numpy() - r * float(np.linalg.norm(full @ w))

    radius = torch.tensor([r], dtype=torch.float64)
    plain = float(certify.crown_bound(a, yv, net.w[0], radius)[0])
    assert plain == pytest.approx(bound((a[0, free] > 0).double().numpy()), abs=1e-7)
    # max_α min_δ = min_δ max_α: with σ itself for the free neurons, as h ≥ 0 and h ≥ z.
    p, W = yv[0, free].numpy(), w[free]

    def relaxed(variables: np.ndarray) -> float:
        return constant + slopes @ (a[0].numpy() + w @ variables[:d]) + p @ variables[d:]

    inside = [
        {"type": "ineq", "fun": lambda s: r**2 - s[:d] @ s[:d]},
        {"type": "ineq", "fun": lambda s: s[d:] - a[0, free].numpy() - W @ s[:d]},
        {"type": "ineq", "fun": lambda s: s[d:]},
    ]
    found = [
        optimize.minimize(
            relaxed, np.append(u, (a[0, free].numpy() + W @ u).clip(0)), constraints=inside, method="SLSQP"
        )
        for u in 0.5 * r / math.sqrt(d) * np.array(list(product([-1.0, 1.0], repeat=d)))
    ]
    deltas = [f.x[:d] * min(1.0, r / np.linalg.norm(f.x[:d])) for f in found]  # SLSQP may step out by a hair
    # On objectives of 1e-3 SLSQP may stop at once: also the ends of the ball, with all free neurons off and on.
    deltas += [-r * g / max(float(np.linalg.norm(g)), 1e-300) for g in (slopes @ w, slopes @ w + p @ W)]
    best = min(relaxed(np.append(delta, (a[0, free].numpy() + W @ delta).clip(0))) for delta in deltas)
    ours = float(certify.crown_bound(a, yv, net.w[0], radius, 300)[0])
    size = float(yv.abs().sum()) * r
    assert best - 0.02 * size <= ours <= best + 1e-9


def test_the_robust_network_is_certified_at_its_closed_form() -> None:
    """Thm 3.1: every sample survives what is smaller than √d(1 - c)/2, and no more."""
    x, y = (torch.from_numpy(t).double() for t in sphere.sample(60, 40, np.random.default_rng(0)))
    net, radius = robust_network(x, y)
    found = certified(net, x, y)
    assert bool(found.exact.all())
    np.testing.assert_allclose(found.radius, radius, rtol=1e-8)


@pytest.mark.parametrize("positive", [1, 3, 6])
def test_both_networks_of_the_worked_example_are_certified_at_their_closed_forms(positive: int) -> None:
    """§5.1, x_i = √d e_i. N survives √d/2. N' does not: its own neuron and the n of the other class all begin at their
    kink or fall together, and the nearest flip is at √(d/(1 + n)).
    """
    d = 8
    x = math.sqrt(d) * torch.eye(d, dtype=torch.float64)
    y = torch.tensor([1.0] * positive + [-1.0] * (d - positive), dtype=torch.float64)
    robust = TwoLayer(2 * x[None] / d, x.new_full((1, d), -1.0), y[None])
    np.testing.assert_allclose(certified(robust, x, y).radius, math.sqrt(d) / 2, rtol=1e-8)
    brittle = TwoLayer(x[None] / d, x.new_zeros(1, d), y[None])
    others = torch.where(y > 0, d - positive, positive).double()
    true, found = (d / (1 + others)).sqrt(), certified(brittle, x, y)
    assert bool((found.radius <= true).all())
    np.testing.assert_allclose(found.radius, true, rtol=1e-6)
    np.testing.assert_allclose(found.quadratic, true, rtol=0.02)


def test_a_sample_that_is_wrong_already_has_radius_zero() -> None:
    net, x, y = random_net(3, 6, 8, 3)
    assert certified(net, x, -y).radius.tolist() == [0.0] * 6


@settings(max_examples=50, deadline=None)
@given(
    w=st.floats(0.1, 10), x=st.floats(1, 1e9), left=st.floats(1e-3, 1), kink=st.floats(-3, 3), v=st.floats(-0.3, 0.3)
)
def test_a_certificate_survives_the_rounding_of_large_inputs(
    w: float, x: float, left: float, kink: float, v: float
) -> None:
    """N(x) = σ(wx - b) + vσ(-wx + b + kink), with wx and b of equal size: in fractions, N is positive up to it."""
    b = w * x - left
    net = TwoLayer(
        torch.tensor([[[w], [-w]]], dtype=torch.float64),
        torch.tensor([[-b, b + kink]], dtype=torch.float64),
        torch.tensor([[1.0, v]], dtype=torch.float64),
    )
    one = torch.ones(1, dtype=torch.float64)
    radius = Fraction(float(certified(net, torch.tensor([[x]], dtype=torch.float64), one).radius[0]))
    for side in (-1, 1):
        at = Fraction(x) + side * radius * (1 - Fraction(1, 10**12))
        first, second = Fraction(w) * at - Fraction(b), -Fraction(w) * at + Fraction(b + kink)
        assert max(first, 0) + Fraction(v) * max(second, 0) > 0 or radius == 0


def test_networks_with_idle_neurons_and_without_any_boundary_have_finite_answers() -> None:
    """w_j = 0, v_j = 0, a_j = 0, and N = σ(x) + 1, which nothing flips."""
    one, two = torch.ones(1, 1, dtype=torch.float64), torch.tensor([[1.0, 1.0]], dtype=torch.float64)
    never = TwoLayer(torch.tensor([[[1.0], [0.0]]], dtype=torch.float64), torch.tensor([[0.0, 1.0]]).double(), two)
    assert float(certified(never, one, one[0]).radius) >= 1
    idle = torch.tensor([[[1.0], [0.0], [1.0], [1.0]]], dtype=torch.float64)
    net = TwoLayer(
        idle, torch.tensor([[0.0, 0.0, -1.0, 5.0]]).double(), torch.tensor([[1.0, -1.0, -1.0, 0.0]]).double()
    )
    found = certified(net, one, one[0])  # N(x) = σ(x) - σ(x - 1): positive exactly for x > 0
    assert 0.5 <= float(found.radius) <= 1


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x, y = random_net(0, 20, 12, 4)
    whole = certified(net, x, y)
    monkeypatch.setattr(certify, "CHUNK", 7 * 16)
    parts = certified(net, x, y)
    np.testing.assert_allclose(parts.crown, whole.crown, rtol=1e-9)
    np.testing.assert_allclose(parts.quadratic, whole.quadratic, rtol=0.02)  # the ascent is in float32
    assert torch.equal(parts.exact, whole.exact)


@pytest.mark.parametrize("stored", [0, 12 * 8 * 3, 1 << 20])
def test_sums_over_pairs_are_sums_of_outer_products(monkeypatch: pytest.MonkeyPatch, stored: int) -> None:
    monkeypatch.setattr(certify, "STORED", stored)
    g = torch.Generator().manual_seed(0)
    w, s, matrix = (torch.randn(*shape, generator=g) for shape in ((12, 4), (5, 12), (5, 4, 4)))
    matrix, pairs = matrix + matrix.mT, certify.Pairs(w)
    np.testing.assert_allclose(pairs.sum(s), torch.einsum("nk,kd,ke->nde", s, w, w), atol=1e-5)
    np.testing.assert_allclose(pairs.forms(matrix), torch.einsum("kd,nde,ke->nk", w, matrix, w), atol=1e-4)
