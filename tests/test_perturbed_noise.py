"""Perturbations as features: the network of Kumano, Kera and Yamasaki, its perturbations in closed form, noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.attacks.universal import z_direction
from brittle.core.rng import rng
from brittle.nets.family import Members
from brittle.nets.fixed_output import FixedOutput, LeakyFixedOutput
from brittle.probes.perturbed_noise import agreement, direction, towards
from brittle.train.losses import ln_loss_alone
from brittle.train.optimisers import Constant, GradientDescent, Optimiser, train
from brittle.worlds import cube


def along(z: torch.Tensor, units: int, leak: float) -> Members:
    """The network with w_j = v_j z, which is (1 + leak)/2 · z·x."""
    family = LeakyFixedOutput(len(z), units, leak=leak)
    v = torch.cat([torch.ones(units // 2), -torch.ones(units // 2)]) / math.sqrt(units)
    return Members(family, (v[:, None] * z).flatten()[None])


@given(leak=st.floats(0, 1), units=st.sampled_from([2, 6, 20]), seed=st.integers(0, 100))
def test_neurons_along_one_direction_are_a_linear_network(leak: float, units: int, seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    z, x = torch.randn(7, generator=g), torch.randn(5, 7, generator=g)
    torch.testing.assert_close(along(z, units, leak)(x[None])[0], (1 + leak) / 2 * (x @ z), atol=1e-5, rtol=1e-5)


def test_without_a_leak_it_is_the_network_of_sb_thm_1() -> None:
    x = torch.randn(1, 9, 5, generator=torch.Generator().manual_seed(0))
    theta = LeakyFixedOutput(5, 8).initial([rng(0, "test")])
    torch.testing.assert_close(LeakyFixedOutput(5, 8, leak=0.0)(theta, x), FixedOutput(5, 8)(theta, x))
    assert float(theta.abs().max()) <= 1 / math.sqrt(5)  # PyTorch's own initial weights


def test_the_perturbation_of_a_network_along_z_is_z_towards_the_target() -> None:
    """Its gradient is z everywhere, so t·δ = ε z/‖z‖ for every noise point."""
    (x, y), (noise, targets) = (cube.sample(30, n, rng(0, f"test {n}")) for n in (8, 50))
    x, y, noise, targets = (torch.from_numpy(a).float() for a in (x, y, noise, targets))
    delta = towards(along(y @ x, 10, 0.01), noise, targets, 0.3)
    expected = 0.3 * targets[:, None] * z_direction(x, y)
    torch.testing.assert_close(delta, expected, atol=1e-5, rtol=1e-4)
    found = direction(delta, noise, targets, x, y)
    assert found.shared == pytest.approx(1, abs=1e-5)
    assert found.each == pytest.approx(1, abs=1e-5)
    assert abs(found.noise) < 0.7  # of two random directions in 30 dimensions


def test_a_network_agrees_with_itself_and_with_no_point_of_its_negative() -> None:
    g = torch.Generator().manual_seed(1)
    z, x = torch.randn(6, generator=g), torch.randn(1, 40, 6, generator=g)
    net = along(z, 4, 0.01)
    assert agreement(net, net, x).tolist() == [1.0]
    assert agreement(net, along(-z, 4, 0.01), x).tolist() == [0.0]


def test_members_of_a_family_descend_as_the_gradient_says() -> None:
    """Three steps of plain descent on ln L, against central differences of ln L."""
    family, eta = FixedOutput(3, 4), 0.05
    x, y = (torch.from_numpy(a)[None] for a in cube.sample(3, 6, rng(2, "test")))
    theta = 0.5 * torch.randn(1, 12, generator=torch.Generator().manual_seed(3), dtype=torch.float64)

    def ln(at: torch.Tensor) -> float:
        return float(ln_loss_alone(y * family(at, x), "exponential"))

    expected = theta.clone()
    for _ in range(3):
        shifts = 1e-6 * torch.eye(12, dtype=torch.float64)[:, None]
        slope = torch.tensor([[(ln(expected + s) - ln(expected - s)) / 2e-6 for s in shifts]], dtype=torch.float64)
        expected = expected - eta * slope
    plan = Optimiser(GradientDescent(), Constant(eta))
    seen: list[torch.Tensor] = []
    with pytest.raises(Exception, match="after 3 steps"):
        train(
            x, y, Members(family, theta), optimiser=plan, loss="exponential", ln_target=-99.0, max_steps=3,
            watch=lambda state: seen.append(state.theta),
        )  # fmt: skip
    torch.testing.assert_close(seen[-1], expected, atol=1e-8, rtol=1e-6)


def test_noise_fills_the_cube_and_its_labels_tell_nothing() -> None:
    x, y = cube.sample(10, 20_000, rng(0, "test"))
    assert np.abs(x).max() <= 1
    assert x.var() == pytest.approx(1 / 3, abs=0.005)
    assert set(y) == {-1.0, 1.0}
    assert np.abs((y[:, None] * x).mean(0)).max() < 5 * math.sqrt(1 / 3 / 20_000)


@pytest.mark.parametrize(("d", "n"), [(100, 100), (200, 100), (100, 200)])
def test_the_sum_of_samples_labels_as_many_of_them_as_their_number_allows(d: int, n: int) -> None:
    """Φ(√(d/n)), as docs/after.md says: y x·z has d/3 from the sample itself, and the variance n d/9 from others."""
    right = []
    for seed in range(50):
        x, y = cube.sample(d, n, rng(seed, "test"))
        right.append((y * (x @ (y @ x)) > 0).mean())
    assert np.mean(right) == pytest.approx(0.5 * (1 + math.erf(math.sqrt(d / n / 2))), abs=0.015)
