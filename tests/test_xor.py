"""XOR and what its networks learn: the world, the directions of neurons, linear probes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from brittle.core.rng import rng
from brittle.nets.fcn import Fcn
from brittle.probes.angles import apart
from brittle.probes.directions import directions
from brittle.probes.linear_probe import RIDGE, decodable
from brittle.worlds import xor


@given(n=st.sampled_from([16, 100, 512]), degrees=st.floats(10, 170), seed=st.integers(0, 50))
def test_points_of_either_label_lie_on_both_sides_alike(n: int, degrees: float, seed: int) -> None:
    x, y = xor.sample(n, math.radians(degrees), rng(seed, "test"))
    assert x.shape == (n, 2)
    assert (y == -1).sum() == (y == 1).sum() == n / 2
    for label, angle in ((-1, 0.0), (1, math.radians(degrees))):
        centre = np.array([math.cos(angle), math.sin(angle)])
        away = np.minimum(*(np.linalg.norm(x[y == label] - side * centre, axis=1) for side in (1, -1)))
        assert away.max() < xor.CUT
        along = x[y == label] @ centre
        np.testing.assert_allclose(np.sort(along), np.sort(-along), atol=1e-12)  # as many on either side, as far out


def at(*degrees: float) -> torch.Tensor:
    return torch.tensor([[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in degrees])


def test_clusters_of_neurons_are_found_across_zero_degrees() -> None:
    w = torch.cat([at(*[centre + shift for shift in (-6, -3, 0, 3, 6)]) for centre in (0, 90, 180, 270)])
    found = directions(w)
    assert found.mass == pytest.approx(1)
    assert found.count == 4
    assert apart(found.angles, [0, 90, 180, 270]) < 0.6


def test_mass_counts_and_not_neurons() -> None:
    w = torch.cat([10 * at(45), at(*range(100, 340, 30))])  # one large neuron, eight small ones
    assert directions(w).mass == pytest.approx((100 + 3) / 108)
    assert directions(w).count == 1 + 3  # (100 + 3)/108 ≥ 0.95


def test_neurons_all_around_need_many_directions() -> None:
    found = directions(at(*range(360)))
    assert found.mass == pytest.approx(4 * 21 / 360)
    assert math.ceil(0.95 * 360 / 21) <= found.count <= 22  # windows may leave gaps


def test_the_angle_between_lists_of_directions_is_the_worst_one() -> None:
    assert apart([1.0, 90.0], [359.0, 92.0]) == pytest.approx(2)
    assert apart([0.0, 90.0], [0.0, 90.0, 200.0]) == pytest.approx(110)


def test_the_linear_probe_is_ridge_regression() -> None:
    g = np.random.default_rng(0)
    h, noise = g.standard_normal((300, 8)) * g.uniform(0.5, 2, 8) + 3, g.standard_normal(300)
    y = np.sign(h[:, 0] - 3 + noise)
    centred = h[:200] - h[:200].mean(0)
    ridge = Ridge(alpha=RIDGE * (centred**2).sum(0).mean()).fit(h[:200], y[:200])
    expected = ((ridge.predict(h[200:]) * y[200:]) > 0).mean()
    parts = (torch.from_numpy(a) for a in (h[:200], y[:200], h[200:], y[200:]))
    assert decodable(*parts) == pytest.approx(expected)
    assert 0.6 < expected < 1


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "prelu", "tanh"])
def test_scores_are_linear_in_the_features(activation: str) -> None:
    family = Fcn(4, 6, 2, activation)
    theta = family.initial([rng(0, "test")])
    x = torch.randn(1, 20, 4, generator=torch.Generator().manual_seed(0))
    h, scores = family.features(theta, x)[0], family(theta, x)[0]
    assert h.shape == (20, 6)
    design = torch.cat([h, torch.ones(20, 1)], 1)
    fitted = torch.linalg.lstsq(design.double(), scores.double()[:, None]).solution
    torch.testing.assert_close(design.double() @ fitted, scores.double()[:, None], atol=1e-5, rtol=1e-5)
