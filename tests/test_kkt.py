"""KKT residuals: against closed forms, an explicit Jacobian and a general-purpose solver."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, nnls
from torch import Tensor

from brittle.attacks.universal import thm41
from brittle.nets.two_layer import TwoLayer, initial
from brittle.probes import kkt
from brittle.probes.kkt import residuals
from brittle.probes.margin import NotSeparated
from brittle.train import flow
from brittle.worlds import sphere


def two_samples(d: int, cosine: float) -> tuple[TwoLayer, Tensor, Tensor]:
    """A KKT point in closed form whose kinks are not at 0 or 1.

    Two samples of norm √d and opposite labels, x̃₁·x̃₂ = ρR² with R² = d + 1. Neuron 1 is v λ (x̃₁ - ρ x̃₂): orthogonal to
    x̃₂, so that x₂ is at its kink and σ' = ρ there. Neuron 2 is its mirror image. λ = 1/(R√(1-ρ²)), v² = λ.
    """
    x = torch.zeros(2, d, dtype=torch.float64)
    x[0, 0] = d**0.5
    x[1, 0], x[1, 1] = cosine * d**0.5, (1 - cosine**2) ** 0.5 * d**0.5
    x1 = torch.cat([x, torch.ones(2, 1, dtype=torch.float64)], 1)
    r2 = d + 1
    rho = float(x1[0] @ x1[1]) / r2
    lam = 1 / (r2 * (1 - rho**2)) ** 0.5
    v = lam**0.5
    w = v * lam * torch.stack([x1[0] - rho * x1[1], x1[1] - rho * x1[0]])
    y = torch.tensor([1.0, -1.0], dtype=torch.float64)
    return TwoLayer(w[None, :, :-1], w[None, :, -1], v * y[None]), x, y


@pytest.mark.parametrize("cosine", [0.0, 0.1, 0.6])
def test_a_kkt_point_with_kinks_has_residual_zero_only_if_the_kinks_are_free(cosine: float) -> None:
    net, x, y = two_samples(20, cosine)
    free = residuals(net, x, y, kink=1e-9)
    assert free.stationarity < 1e-4
    assert free.slackness == pytest.approx(0, abs=1e-9)
    assert free.kinks == 0.5
    torch.testing.assert_close(free.multipliers[0], free.multipliers[1])
    assert residuals(net, x, y).stationarity > 0.03


@pytest.mark.parametrize("cosine", [0.0, 0.005])
def test_thm41_holds_at_a_kkt_point_in_closed_form(cosine: float) -> None:
    net, x, y = two_samples(100, cosine)
    torch.testing.assert_close(y * net(x[None])[0], torch.ones_like(y))
    proof = thm41(x, y)
    assert proof.applies
    assert float(proof.z.norm()) <= proof.bound
    assert float((y * net((x - y[:, None] * proof.z)[None])[0]).max()) <= -1


def test_thm41_gives_the_proofs_eta_on_orthogonal_data() -> None:
    d, m = 30, 10  # p = 0, c = ½, c' = m/(d + 1)
    x, y = d**0.5 * torch.eye(m, d, dtype=torch.float64), torch.tensor([1.0, -1.0] * 5, dtype=torch.float64)
    eta = 1 / d + 2 * (0.5 * m / (d + 1) + 1) * (d + 1) / (m * 0.5 * d)
    assert float(thm41(x, y).z.norm()) == pytest.approx(eta * (m * d) ** 0.5)
    assert thm41(x, y).bound == pytest.approx(18 * 2**0.5 * (d / (0.25 * m)) ** 0.5)
    assert thm41(x, y).applies
    assert not thm41(torch.cat([x, x[:2] + 1e-3]), torch.cat([y, y[:2]])).applies


def random_network(seed: int, m: int, d: int, k: int) -> tuple[TwoLayer, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)
    net = TwoLayer(*(torch.randn(1, *shape, generator=g, dtype=torch.float64) for shape in ((k, d), (k,), (k,))))
    x = torch.randn(m, d, generator=g, dtype=torch.float64)
    return net, x, net(x[None])[0].sign()  # labelled by the network itself, so that it is right


@given(seed=st.integers(0, 10**6), m=st.integers(1, 8), d=st.integers(1, 5), k=st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_fixed_residual_is_nnls_on_the_jacobian_by_autograd(seed: int, m: int, d: int, k: int) -> None:
    net, x, y = random_network(seed, m, d, k)
    if bool((y == 0).any()):
        return
    gamma = (y * net(x[None])[0]).min()
    scaled = TwoLayer(*(p / gamma.sqrt() for p in vars(net).values()))
    parts = [p.clone().requires_grad_() for p in vars(scaled).values()]
    rows = []
    for i in range(m):
        gradients = torch.autograd.grad(y[i] * TwoLayer(*parts)(x[None])[0, i], parts)
        rows.append(torch.cat([g.flatten() for g in gradients]))
    theta = torch.cat([p.detach().flatten() for p in parts])
    _, left = nnls(torch.stack(rows).T.numpy(), theta.numpy())
    assert residuals(net, x, y).stationarity == pytest.approx(left / float(theta.norm()), abs=1e-6)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_free_residual_is_that_of_a_general_solver(seed: int) -> None:
    net, x, y = random_network(seed, 3, 2, 4)
    if bool((y == 0).any()):
        return
    kink = 0.3
    gamma = (y * net(x[None])[0]).min()
    w, b, v = (p[0] / gamma.sqrt() for p in vars(net).values())
    x1, w1 = torch.cat([x, torch.ones(3, 1, dtype=torch.float64)], 1).numpy(), torch.cat([w, b[:, None]], 1).numpy()
    a, v, y_ = x1 @ w1.T, v.numpy(), y.numpy()
    free = np.abs(a) <= kink * np.linalg.norm(x1, axis=1)[:, None] * np.linalg.norm(w1, axis=1)
    squared = (w1**2).sum() + (v**2).sum()

    def left(p: np.ndarray) -> float:  # p = (λ, s): slow and obvious, but not convex in s
        lam, s = p[:3], np.where(free, p[3:].reshape(3, 4), a > 0)
        away_w = w1 - v[:, None] * np.einsum("i,ij,i,id->jd", lam, s, y_, x1)
        away_v = v - (lam * y_) @ np.maximum(a, 0)
        return ((away_w**2).sum() + (away_v**2).sum()) / squared

    g = np.random.default_rng(seed)
    starts = [np.concatenate([g.uniform(0, 1, 3), g.uniform(0, 1, 12)]) for _ in range(6)]
    bounds = [(0, None)] * 3 + [(0, 1)] * 12
    best = min(minimize(left, start, bounds=bounds, method="L-BFGS-B").fun for start in starts)
    found = residuals(net, x, y, kink)
    assert found.stationarity == pytest.approx(best**0.5, abs=5e-3)
    assert found.stationarity <= residuals(net, x, y).stationarity + 1e-9


@given(seed=st.integers(0, 10**6), n=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_projection_onto_the_cones_is_the_nearest_point(seed: int, n: int) -> None:
    g = np.random.default_rng(seed)
    lam, u, free = g.normal(size=2), g.normal(size=(2, n)), g.uniform(size=(2, n)) < 0.7
    found = kkt._onto_cones(torch.tensor(lam), torch.tensor(np.where(free, u, 0.0)), torch.tensor(free))
    for i in range(2):
        target = np.concatenate([lam[i : i + 1], u[i][free[i]]])
        constraints = [{"type": "ineq", "fun": lambda p: p[0] - p[1:]}, {"type": "ineq", "fun": lambda p: p}]
        slow = minimize(
            lambda p, t=target: ((p - t) ** 2).sum(), np.abs(target), jac=lambda p, t=target: 2 * (p - t),
            constraints=constraints, method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        ours = np.concatenate([found[0][i : i + 1].numpy(), found[1][i].numpy()[free[i]]])
        np.testing.assert_allclose(ours, slow.x, atol=1e-5)


def test_a_network_that_is_wrong_somewhere_has_no_residual() -> None:
    net, x, y = random_network(0, 5, 3, 6)
    with pytest.raises(NotSeparated):
        residuals(net, x, -y)


def test_the_tolerance_for_kinks_decides_early_and_hardly_matters_late() -> None:
    """At loss 1e-100 the kinks are not all reached to 10⁻⁴ of a neuron's size; at 1e-10000 they are."""
    data, start = np.random.default_rng(0), initial(30, 200, 0.01, [np.random.default_rng(0)]).to(torch.float64)
    x, y = (torch.from_numpy(part)[None] for part in sphere.sample(30, 30, data))
    state, by = None, {}
    for power in (-100, -10_000):
        how = {"loss": "exponential", "ln_target": power * math.log(10), "momentum": 0.8, "max_steps": 100_000}
        net, state = flow.train(x, y, start, state=state, **how)
        by[power] = [float(residuals(net, x[0], y[0], kink=kink).stationarity) for kink in (0, 1e-4, 1e-3, 1e-2)]
    assert by[-100][1] > 2 * by[-100][2]
    assert max(by[-10_000][1:]) < 1.02 * min(by[-10_000][1:])
    assert by[-10_000][0] > 5 * by[-10_000][1]
