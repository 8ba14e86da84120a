"""Clusters with noise, what is measured on fresh samples of them, and the networks trained on them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from brittle.after.unseen_params import UnseenParams
from brittle.after.unseen_settings import Setting, settings
from brittle.attacks.line import crossings
from brittle.core.params import load
from brittle.core.rng import rng
from brittle.nets.on_centres import class_sums
from brittle.nets.robust_construction import thm31
from brittle.nets.two_layer import TwoLayer, initial
from brittle.probes.certify import certified
from brittle.probes.unseen import Samples, size_for, unseen
from brittle.probes.within_span import certified_within_span
from brittle.worlds.noisy_clusters import correlation, labels, orthogonal_centres, random_centres, sample
from conftest import ROOT


@given(k=st.integers(2, 8), per=st.integers(1, 9), positive=st.integers(1, 7), seed=st.integers(0, 99))
def test_clusters_are_of_equal_size_and_have_one_label_each(k: int, per: int, positive: int, seed: int) -> None:
    mu, y = random_centres(20, k, rng(seed, "test")), labels(k, min(positive, k - 1))
    x, labelled = sample(mu, y, k * per, 0.0, rng(seed, "test"))
    assert (y == 1).sum() == min(positive, k - 1)
    for centre, label in zip(mu, y, strict=True):
        mine = (x == centre).all(1)
        assert mine.sum() == per
        assert (labelled[mine] == label).all()


def test_noise_is_gaussian_of_the_given_size_in_every_coordinate() -> None:
    mu = orthogonal_centres(30, 3, 5.0)
    x, _ = sample(mu, labels(3, 2), 3000, 0.2, rng(0, "test"))
    noise = x - mu[np.arange(3000) % 3]
    assert kstest(noise.ravel(), "norm", (0, 0.2)).pvalue > 1e-7
    assert float(np.abs(np.corrcoef(noise.T) - np.eye(30)).max()) < 6 / math.sqrt(3000)


def test_fresh_samples_are_others_of_the_same_clusters() -> None:
    setting = Setting("random", 40, 4, 5, 0.1)
    (x, y), (again, _), (fresh, _) = (setting.draw(3, 20, what) for what in ("training", "training", "fresh"))
    np.testing.assert_array_equal(x, again)
    assert (x != fresh).all()
    assert np.abs(x - fresh).max() < 0.1 * math.sqrt(2) * 6
    assert y.sum() == 0
    np.testing.assert_allclose(np.linalg.norm(setting.draw_centres(3)[0], axis=1), math.sqrt(40))


def test_the_correlation_is_that_of_the_papers_assumption() -> None:
    """k (p + Δ + 1) / (d - Δ + 1), computed pair by pair."""
    d, k, sigma = 400, 5, 0.01
    mu = random_centres(d, k, rng(0, "test"))
    p = max(abs(float(mu[i] @ mu[j])) for i in range(k) for j in range(i))
    delta = 4 * sigma * 20 * math.log(d)
    assert correlation(mu, sigma) == pytest.approx(k * (p + delta + 1) / (d - delta + 1))
    assert correlation(orthogonal_centres(d, k, 20.0), 0.0) == pytest.approx(k / (d + 1))
    assert correlation(mu, 5.0) == math.inf


@pytest.mark.parametrize(("sigma", "k", "least"), [(0.01, 10, 1000), (0.1, 2, 5200)])
def test_the_assumption_begins_to_hold_where_it_was_computed_by_hand(sigma: float, k: int, least: int) -> None:
    assert correlation(orthogonal_centres(int(1.02 * least), k, (1.02 * least) ** 0.5), sigma) <= 0.1
    assert correlation(orthogonal_centres(int(0.9 * least), k, (0.9 * least) ** 0.5), sigma) > 0.1


def test_the_quick_scale_has_cells_with_the_assumption_for_every_k_and_without_it() -> None:
    p = load(UnseenParams, ROOT / "params.yaml").unseen
    applies = {(s.k, correlation(s.draw_centres(0)[0], s.sigma) <= 0.1) for s in settings(p)}
    assert applies == {(k, holds) for k in p.ks for holds in (True, False)}


# --- Probes


def small(k: int = 3, width: int = 4) -> TwoLayer:
    net = initial(12, width, 1.0, [rng(k, "test")])
    return net.to(torch.float64)


def test_certificates_within_the_span_are_those_in_all_dimensions() -> None:
    for seed in range(5):
        net = small(seed)
        x = torch.from_numpy(rng(seed, "x").standard_normal((6, 12)))
        y = net(x[None])[0].sign()
        whole, within = certified(net, x, y), certified_within_span(net, x, y)
        torch.testing.assert_close(within.local, whole.local, rtol=1e-6, atol=1e-9)  # in closed form
        torch.testing.assert_close(within.branched, whole.branched, rtol=0.02, atol=1e-3, equal_nan=True)  # a search
        torch.testing.assert_close(within.radius, whole.radius, rtol=0.02, atol=1e-3)


def test_the_size_for_a_share_is_the_first_that_flips_it() -> None:
    """N(x) = x, and samples at 1, 2, …, 10."""
    net = TwoLayer(*(torch.tensor(t).double() for t in ([[[1.0], [-1.0]]], [[0.0, 0.0]], [[1.0, -1.0]])))
    x, y = torch.arange(1.0, 11.0, dtype=torch.float64)[:, None], torch.ones(10, dtype=torch.float64)
    by = crossings(net.preactivations(x[None])[0], net.w[0, :, 0], net.v[0], y)
    assert [size_for(by, share) for share in (0.1, 0.5, 0.99)] == pytest.approx([1.0, 5.0, 10.0])
    away = crossings(net.preactivations(x[None])[0], -net.w[0, :, 0], net.v[0], y)
    assert size_for(away, 0.1) == math.inf


def test_class_averages_flip_at_root_d_over_k_and_the_constructed_network_is_half_of_root_d_away() -> None:
    """A network built by hand for which everything that is measured is known."""
    d, k = 100, 16
    mu, y = (torch.from_numpy(a) for a in (orthogonal_centres(d, k, 10.0), labels(k, 8)))
    w, v = class_sums(mu / 10, y, 1.0)
    net = TwoLayer(w[None], torch.zeros(1, 2).double(), v[None])
    drawn = sample(mu.numpy(), y.numpy(), 160, 1e-4, rng(0, "test"))
    points, centres = Samples(*map(torch.from_numpy, drawn)), Samples(mu, y)
    u = torch.from_numpy(rng(1, "test").standard_normal(d))
    sizes = torch.tensor([0.0, 2.0, 3.0]).double()
    found = unseen(net, points, points, centres, 8, u, sizes)
    assert (found.accuracy, found.robust_accuracy, found.random_at_c) == (1.0, 1.0, 0.0)
    assert found.c == pytest.approx(math.sqrt(d / k), rel=1e-3) == found.c_train
    assert found.attacked == pytest.approx(math.sqrt(d / k), rel=1e-3)
    assert found.certified == pytest.approx(math.sqrt(d) / 2, rel=1e-3)
    assert found.ratio == pytest.approx(math.sqrt(k) / 2, rel=1e-3)
    assert found.curve["z"].tolist() == [0.0, 0.0, 1.0]
    assert found.curve["random"].tolist() == [0.0, 0.0, 0.0]


def test_thm31s_network_on_orthogonal_centres_is_exactly_half_of_root_d_away() -> None:
    """The way half-way to another centre is as short as the one towards 0, and nothing is shorter."""
    mu, y = (torch.from_numpy(a) for a in (orthogonal_centres(64, 6, 8.0), labels(6, 3)))
    net = thm31(mu, y)
    assert certified(net, mu, y).radius.tolist() == pytest.approx([4.0] * 6, rel=1e-6)
    assert float(y[0] * net((mu[:1] * (0.5 - 1e-9))[None])) <= 1e-6
