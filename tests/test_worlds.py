"""What each world promises of its samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brittle.core.rng import rng
from brittle.worlds import clusters, gaussian, orthogonal, sphere

dims, sizes, seeds = st.integers(2, 60), st.integers(2, 80), st.integers(0, 2**32)


@given(d=dims, m=sizes, seed=seeds)
def test_sphere_samples_have_norm_sqrt_d_and_labels_of_either_sign(d: int, m: int, seed: int) -> None:
    x, y = sphere.sample(d, m, rng(seed, "test"))
    assert x.shape == (m, d)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), np.sqrt(d))
    assert y.shape == (m,)
    assert set(y) <= {-1.0, 1.0}


@given(d=dims, m=st.integers(2, 60), seed=seeds)
def test_orthogonal_samples_are_the_worked_example(d: int, m: int, seed: int) -> None:
    m = min(m, d)
    x, y = orthogonal.sample(d, m)
    np.testing.assert_allclose(x @ x.T, d * np.eye(m))
    assert abs(y.sum()) == m % 2
    assert (np.diff(y) <= 0).all()


@given(d=dims, m=sizes, size=st.integers(1, 40), spread=st.floats(0, 0.9), seed=seeds)
def test_clusters_hold_together(d: int, m: int, size: int, spread: float, seed: int) -> None:
    x, y = clusters.sample(d, m, size, spread, rng(seed, "test"))
    assert x.shape == (m, d)
    for start in range(0, m, size):
        members, centre = x[start : start + size], x[start]
        assert (y[start : start + size] == y[start]).all()
        assert np.linalg.norm(centre) == pytest.approx(np.sqrt(d))
        scale = members[1:] @ centre / d
        assert (np.linalg.norm(members[1:] - scale[:, None] * centre, axis=1) <= spread * np.sqrt(d) + 1e-9).all()
    assert (y[::size] == [(-1) ** i for i in range(len(y[::size]))]).all()


def test_sphere_coordinates_and_inner_products_are_those_of_the_uniform_distribution() -> None:
    # E⟨u, x⟩² = 1 for every unit u, and the first coordinate over √d has the fourth moment 3/(d(d+2)).
    x, y = sphere.sample(20, 200_000, rng(0, "test"))
    np.testing.assert_allclose(x.T @ x / len(x), np.eye(20), atol=0.02)
    assert np.mean(x[:, 0] ** 4) / 20**2 == pytest.approx(3 / (20 * 22), rel=0.03)
    assert abs(y.mean()) < 0.01
    assert np.abs(y @ x / len(x)).max() < 0.02


def test_gaussian_samples_have_variance_one_over_d() -> None:
    x, y = gaussian.sample(50, 20_000, rng(0, "test"))
    np.testing.assert_allclose(x.T @ x / len(x), np.eye(50) / 50, atol=2e-3)
    assert set(y) == {-1.0, 1.0}


def test_the_norm_of_the_data_is_a_parameter() -> None:
    x, _ = gaussian.sample(50, 20_000, rng(0, "test"), norm=50**0.5)
    np.testing.assert_allclose(x.T @ x / len(x), np.eye(50), atol=0.1)
    unit, labels = sphere.sample(50, 9, rng(0, "test"), radius=1.0)
    far, same = sphere.sample(50, 9, rng(0, "test"))
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0)
    np.testing.assert_allclose(unit * 50**0.5, far)
    np.testing.assert_array_equal(labels, same)


@given(d=st.integers(8, 40), size=st.integers(1, 6), seed=seeds)
def test_clusters_may_have_orthogonal_centres(d: int, size: int, seed: int) -> None:
    x, _ = clusters.sample(d, 4 * size, size, 0.1, rng(seed, "test"), orthogonal=True)
    np.testing.assert_allclose(x[::size] @ x[::size].T, d * np.eye(4), atol=1e-9)


def test_streams_differ_by_seed_and_by_purpose_and_repeat_exactly() -> None:
    draws = {(s, p): rng(s, p).integers(1 << 60) for s in (0, 1) for p in ("data", "init")}
    assert len(set(draws.values())) == 4
    assert draws[0, "data"] == rng(0, "data").integers(1 << 60)
