"""Residuals of margin problems in other norms: against a closed form, definitions and the steps of the optimisers."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from brittle.core.rng import rng
from brittle.nets.deep import Deep, initial
from brittle.nets.smooth_deep import SmoothDeep
from brittle.probes.margin import NotSeparated
from brittle.probes.steepest import GEOMETRIES, L2, LINF, SPECTRAL, margin, pull, residual
from brittle.train.optimisers import OPTIMISERS, Here, train
from brittle.worlds import sphere


def all_on(m: int, v: float, bias: float, of_op: float = 1.0) -> tuple[Deep, Tensor, Tensor]:
    """A KKT point in Muon's norm, in closed form.

    Samples √m e_i with balanced labels, W = a I, b = β 1 with β > 0, v_i = v y_i: every neuron sees every sample, and
    all y_i N(x_i) = a v √m. So λ is uniform, G_W ∝ v y zᵀ has rank one and ⟨W, G_W⟩ = a ‖G_W‖_nuc, G_b = 0 and
    G_v ∝ a √m y. Muon's norm is a = ‖v‖ = √m v; that of b may be anything up to it.
    """
    a = of_op * math.sqrt(m) * v
    y = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(m // 2)
    eye = torch.eye(m, dtype=torch.float64)
    net = Deep((a * eye[None], v * y[None, None]), torch.full((1, m), bias, dtype=torch.float64))
    return net, math.sqrt(m) * eye, y


@pytest.mark.parametrize(("m", "v", "bias"), [(2, 1.0, 0.5), (6, 0.7, 0.1), (16, 0.3, 0.3)])
def test_a_kkt_point_in_the_spectral_geometry_has_residual_zero_in_that_geometry_alone(
    m: int, v: float, bias: float
) -> None:
    net, x, y = all_on(m, v, bias)
    assert residual(net, x, y, SPECTRAL) == pytest.approx(0, abs=1e-12)
    cosine = math.sqrt(2 / (m + 1 + (bias / v) ** 2))  # ‖θ‖² = m²v² + mβ² + mv²
    assert residual(net, x, y, L2) == pytest.approx(1 - cosine, abs=1e-12)
    # ‖θ‖_∞ = a; ⟨θ, G⟩ = 2 λ m a v √m and ‖G‖₁ = λ (m² v √m + m a √m)
    assert residual(net, x, y, LINF) == pytest.approx(1 - 2 / (m + math.sqrt(m)), abs=1e-12)


def test_normalised_margins_are_those_of_the_closed_form_and_do_not_change_with_the_scale() -> None:
    """All outputs are a v √m = m v² with ‖θ‖ = √m v in Muon's norm and in ‖·‖_∞, so the margin is 1 in both."""
    m, v = 6, 0.7
    net, x, y = all_on(m, v, 0.1)
    expected = {"spectral": 1.0, "linf": 1.0, "l2": m * v**2 / (m**2 * v**2 + m * 0.1**2 + m * v**2)}
    for name, geometry in GEOMETRIES.items():
        assert margin(net, x, y, geometry) == pytest.approx(expected[name], rel=1e-12)
        assert margin(net.like(1.7 * net.flat()), x, y, geometry) == pytest.approx(expected[name], rel=1e-12)
    smooth = SmoothDeep(net.ws, net.b)
    assert margin(smooth.like(1.7 * smooth.flat()), x, y, L2) == pytest.approx(margin(smooth, x, y, L2), rel=1e-12)


def test_layers_of_unequal_norm_are_no_kkt_point_of_a_maximum() -> None:
    net, x, y = all_on(6, 0.7, 0.1, of_op=2.0)
    # With a = 2‖v‖: ⟨θ, G⟩ = 4, ‖θ‖ = 2 and ‖G‖_* = 1 + 2 in units of the balanced network's.
    assert residual(net, x, y, SPECTRAL) == pytest.approx(1 - 4 / 6)


def random_net(seed: int, d: int, widths: list[int]) -> tuple[Deep, Tensor, Tensor]:
    """A network with its own labels, so that it separates."""
    net = initial(d, widths, 1.0, [rng(seed, "init")]).to(torch.float64)
    x = torch.from_numpy(sphere.sample(d, 12, rng(seed, "data"))[0]).double()
    return net, x, net(x[None])[0].sign()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([[7], [3], [9, 5]]))
def test_a_random_network_is_none_and_every_residual_is_between_0_and_1(seed: int, widths: list[int]) -> None:
    net, x, y = random_net(seed, 5, widths)
    if not bool((y != 0).all()):
        return
    for name, geometry in GEOMETRIES.items():
        assert 0.01 < residual(net, x, y, geometry) < 1, name
        scaled = net.like(3.0 * net.flat())  # λ changes with the scale, but not the range
        assert 0 < residual(scaled, x, y, geometry) < 1, name


@pytest.mark.parametrize("widths", [[20], [20, 30]])
def test_muons_own_step_is_the_steepest_in_its_norm(widths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """⟨D, G⟩ = ‖D‖ ‖G‖_* for the step D of the rule itself, once its matrices are orthogonalised exactly."""

    def exactly(m: Tensor) -> Tensor:
        u, _, vt = torch.linalg.svd(m, full_matrices=False)
        return u @ vt

    monkeypatch.setattr("brittle.train.muon.orthogonalised", exactly)
    net, x, y = random_net(0, 6, widths)
    for rule, geometry in (("muon", SPECTRAL), ("sign", LINF), ("gd", L2)):
        g = pull(net, x, y)
        flat = torch.cat([p.flatten() for p in g])[None]
        none = torch.zeros_like(flat)
        move = OPTIMISERS[rule].rule(Here(1, net.flat(), flat, lambda theta: theta, net.shapes(), (none, none)))
        step = [p[0] for p in net.like(move.direction).parameters()]
        inner = float(sum((p * q).sum() for p, q in zip(step, g, strict=True)))
        assert inner == pytest.approx(float(geometry.norm(step) * geometry.dual(g)), rel=1e-9), rule


def test_pull_is_minus_the_gradient_of_ln_loss() -> None:
    net, x, y = random_net(1, 5, [7, 4])
    theta = net.flat().requires_grad_()
    loss = (-y * net.like(theta)(x[None])[0]).exp().mean().log()
    (g,) = torch.autograd.grad(loss, theta)
    torch.testing.assert_close(torch.cat([p.flatten() for p in pull(net, x, y)]), -g[0])


@pytest.mark.parametrize("kind", [Deep, SmoothDeep])
def test_each_optimiser_has_the_largest_margin_in_its_own_norm(kind: type[Deep]) -> None:
    x, y = (torch.from_numpy(a)[None].double() for a in sphere.sample(20, 20, rng(0, "data")))
    found = {}
    for rule in ("momentum", "signum", "muon"):
        net = initial(20, [60], 0.1, [rng(0, "init")]).to(torch.float64)
        how = {"loss": "exponential", "ln_target": -30 * math.log(10), "max_steps": 10_000}
        trained, _ = train(x, y, kind(net.ws, net.b), optimiser=OPTIMISERS[rule], **how)
        found[rule] = {name: margin(trained, x[0], y[0], geometry) for name, geometry in GEOMETRIES.items()}
    for rule, own in (("momentum", "l2"), ("signum", "linf"), ("muon", "spectral")):
        assert max(found, key=lambda each: found[each][own]) == rule


@pytest.mark.parametrize("widths", [[80], [40, 40]], ids=["depth 2", "depth 3"])
def test_each_optimiser_comes_nearest_to_a_kkt_point_of_its_own_problem(widths: list[int]) -> None:
    """From small initial weights, which θ soon outgrows."""
    x, y = (torch.from_numpy(a)[None] for a in sphere.sample(20, 20, rng(0, "data")))
    for rule, own in (("gd", "l2"), ("sign", "linf"), ("muon", "spectral")):
        net = initial(20, widths, 0.01, [rng(0, "init")]).to(torch.float64)
        how = {"loss": "exponential", "ln_target": -30 * math.log(10), "max_steps": 10_000}
        trained, _ = train(x.double(), y.double(), net, optimiser=OPTIMISERS[rule], **how)
        found = {
            name: residual(trained, x[0].double(), y[0].double(), geometry) for name, geometry in GEOMETRIES.items()
        }
        assert min(found, key=found.__getitem__) == own, (rule, found)
        assert found[own] < 0.4, (rule, found)


def test_a_network_that_does_not_separate_has_no_margin_problem() -> None:
    net, x, y = random_net(2, 5, [7])
    with pytest.raises(NotSeparated):
        residual(net, x, -y, L2)
