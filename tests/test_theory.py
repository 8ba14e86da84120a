"""Thm 3.1's network, Lemma 3.1 and the settings in which Thm 4.1 applies."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.attacks.universal import thm41
from brittle.core.params import load
from brittle.core.rng import rng
from brittle.margin.draws import draw
from brittle.margin.regime import settings
from brittle.margin.theory_params import TheoryParams
from brittle.nets.robust_construction import largest_cosine, thm31, thm31_bound, without_biases
from brittle.probes.constructions import robust_network, worked_example
from brittle.probes.flipping import flipping
from brittle.probes.lemma import inner_products
from brittle.worlds import orthogonal, sphere
from conftest import ROOT


def sphere_data(d: int, m: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = sphere.sample(d, m, rng(seed, "test"))
    return torch.from_numpy(x), torch.from_numpy(y)


@given(d=st.integers(20, 80), m=st.integers(2, 30), seed=st.integers(0, 1000))
def test_thm31_network_gives_every_sample_its_label_by_its_own_neuron_alone(d: int, m: int, seed: int) -> None:
    x, y = sphere_data(d, m, seed)
    net = thm31(x, y)
    torch.testing.assert_close(net(x[None])[0], y)
    a = net.preactivations(x[None])[0]
    torch.testing.assert_close(a.diagonal(), torch.ones(m, dtype=torch.float64))
    off = a - torch.diag(a.diagonal())
    assert float((off - 2 * torch.eye(m)).max()) <= -1 + 1e-9  # every other neuron sleeps, at -1 or below


def test_thm31_bound_is_the_papers() -> None:
    x, _ = sphere_data(64, 5, 0)
    c = max(abs(float(x[i] @ x[j])) / 64 for i in range(5) for j in range(i))
    assert largest_cosine(x) == pytest.approx(c)
    assert thm31_bound(x) == pytest.approx((1 - c) / 4 * 8)


def test_the_twin_without_biases_has_the_larger_margin_and_falls_to_a_short_vector() -> None:
    d = 64
    x, y = (torch.from_numpy(a) for a in orthogonal.sample(d, d))
    robust, twin = thm31(x, y), without_biases(x, y)
    for net in (robust, twin):
        torch.testing.assert_close(y * net(x[None])[0], torch.ones(d, dtype=torch.float64))

    def squared(net: object) -> float:
        return float(sum((p**2).sum() for p in vars(net).values()))

    assert squared(twin) < squared(robust)
    z = 4 / d * x[y < 0].sum(0)
    assert float(z.norm()) == pytest.approx(8**0.5)
    torch.testing.assert_close(twin((x[y > 0] + z)[None])[0], -torch.ones(d // 2, dtype=torch.float64))
    assert bool((robust((x[y > 0] + z)[None])[0] > 0).all())


@given(d=st.integers(3, 30), m=st.integers(2, 40), seed=st.integers(0, 1000))
def test_largest_inner_product_is_that_of_the_slow_double_loop(d: int, m: int, seed: int) -> None:
    x = sphere.points(d, m, rng(seed, "test")) / d**0.5
    slow = max(abs(float(x[i] @ x[j])) for i in range(m) for j in range(i))
    assert inner_products(x).largest == pytest.approx(slow)


def test_blocks_of_the_gram_matrix_miss_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    x = sphere.points(9, 50, rng(1, "test")) / 3
    whole = inner_products(x).largest
    monkeypatch.setattr("brittle.probes.lemma.BLOCK", 7)
    assert inner_products(x).largest == pytest.approx(whole, rel=1e-12)


def test_every_orthogonal_setting_of_the_regime_is_within_the_theorem_and_has_both_labels() -> None:
    every = settings(load(TheoryParams, ROOT / "params.yaml").theory.regime)
    assert {setting.world for setting in every} == {"orthogonal", "sphere"}
    for setting in every:
        x, y = (torch.from_numpy(a).double() for a in setting.draw(0))
        assert set(y.tolist()) == {-1.0, 1.0}
        assert thm41(x, y).applies or setting.world == "sphere"  # there it depends on the draw, and is recorded


def test_the_sweep_draws_the_samples_of_the_headline_experiment() -> None:
    x, y = sphere.sample(30, 12, rng(4, "margin data"))
    ours = draw(30, 12, 4)
    np.testing.assert_array_equal(ours[0], x.astype("f4"))
    np.testing.assert_array_equal(ours[1], y.astype("f4"))


def test_what_thm31_and_the_worked_example_say_is_found_without_files() -> None:
    """d orthogonal samples: c = 0, so the bound is √d/4, and the network is certified to exactly twice that."""
    d = 16
    x, y = (torch.from_numpy(a).double() for a in orthogonal.sample(d, d))
    found = robust_network(x, y)
    assert (found.cosine, found.beaten) == (0.0, 0)
    assert found.bound == pytest.approx(d**0.5 / 4)
    assert found.certified == pytest.approx(d**0.5 / 2)
    assert found.attacked >= found.certified * (1 - 1e-9)
    example = worked_example(x, y)
    assert example.certified == pytest.approx(d**0.5 / 2)
    assert max(example.certified_error, example.z_norm_error, example.twin_error) < 1e-6


def test_flipping_is_that_of_the_network_itself() -> None:
    """On Thm 3.1's network: the numbers of the headline table, by evaluating the network on both sides of c."""
    x, y = (torch.from_numpy(a) for a in sphere.sample(30, 10, rng(0, "test")))
    net = thm31(x, y)
    found = flipping(net, x, y, 1.1, torch.ones(30, dtype=x.dtype))
    numbers, samples = found.numbers(30**0.5), found.samples()
    z = (y[:, None] * x).sum(0)
    z = z / z.norm()
    c = numbers["c"]
    assert numbers["on_margin"] == 1.0
    assert numbers["c_over_norm"] == pytest.approx(c / 30**0.5)
    for size, all_flipped in ((c * (1 + 1e-6), True), (c * (1 - 1e-6), False)):
        outputs = y * net((x - y[:, None] * size * z)[None])[0]
        assert bool((outputs < 0).all()) is all_flipped
    for size, own in zip(samples["c"] * (1 + 1e-6), range(10), strict=True):
        if size.isfinite():
            assert float(y[own] * net((x[own] - y[own] * size * z)[None, None])[0, 0]) < 0
    shares = found.curve(torch.tensor([0.0, c * (1 + 1e-9)], dtype=x.dtype))["z"]
    assert shares.tolist() == [0.0, 1.0]
