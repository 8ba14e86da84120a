"""What f* of SB §4.3 promises: every sample right, and far from the boundary."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brittle.attacks.nearest_boundary import best
from brittle.core.rng import rng
from brittle.nets.f_star import f_star, lipschitz
from brittle.probes.certify import certified as house_certified
from brittle.probes.f_star import certified, smallest
from brittle.worlds import slabs

WORLDS = ("lms-5", "lms-7", "ms-5-7", "ms-5")
GAMMA, B = 0.1, 1.0


def value(world: slabs.SlabWorld, x: np.ndarray, q: np.ndarray | None = None) -> np.ndarray:
    """f* as a network, at samples as they are seen."""
    net = f_star(world, np.eye(world.d) if q is None else q)
    return net(torch.from_numpy(np.asarray(x, dtype=np.float64))[None])[0].numpy()


def slab_classifier(k: int, gamma: float, b: float, u: np.ndarray) -> np.ndarray:
    """±1 on the slabs of Appendix B, laid from the left, and straight lines in between."""
    width = 2 * b * (1 - (k - 1) * gamma) / k
    lows = -b + np.arange(k) * (width + 2 * gamma * b)
    signs = (-1.0) ** (np.arange(k) - k // 2 + 1)  # the middle one's is -1
    return np.interp(u, np.stack([lows, lows + width], 1).ravel(), np.repeat(signs, 2))


def slowly(name: str, gamma: float, b: float, u: np.ndarray) -> np.ndarray:
    """f* in the features' coordinates, by its definition."""  # (n, d) -> (n,)
    ks = [int(part) for part in name.split("-") if part.isdigit()]
    linear = np.interp(u[:, 0], [-gamma * b, gamma * b], [-1, 1])
    first = linear if "lms" in name else slab_classifier(ks[0], gamma, b, u[:, 0])
    return np.mean([first] + [slab_classifier(ks[-1], gamma, b, column) for column in u.T[1:]], axis=0)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("d", [1, 2, 50])
def test_f_star_is_right_and_sure_on_every_sample(name: str, d: int) -> None:
    world = slabs.world(name, d)
    x, y = world.sample(2000, rng(0, "test"))
    np.testing.assert_allclose(y * value(world, x), 1, atol=1e-5)  # samples are in float32, slopes are 10


def test_f_star_is_right_where_the_noisy_feature_is_not_and_sure_of_all_the_others() -> None:
    world = slabs.world("noisy-lms-7", 20)
    x, y = world.sample(2000, rng(0, "test"))
    sure, noisy = y * value(world, x), np.abs(x[:, 0]) < GAMMA * B
    assert (y * x[:, 0] < 0).sum() > 50
    assert sure.min() > 1 - 2 / 20 - 1e-5
    np.testing.assert_allclose(sure[~noisy], 1, atol=1e-5)
    np.testing.assert_allclose(sure[noisy], 1 - (1 - (y * x[:, 0])[noisy] / (GAMMA * B)) / 20, atol=1e-5)


def test_f_star_of_the_noisy_feature_alone_is_its_best_linear_classifier() -> None:
    world = slabs.world("noisy-lms-7", 1)
    x, _ = world.sample(2000, rng(0, "test"))
    assert (np.sign(value(world, x)) == np.sign(x[:, 0])).all()


@settings(max_examples=40)
@given(
    name=st.sampled_from([*WORLDS, "noisy-lms-7", "ms-3-5"]),
    d=st.integers(1, 20),
    gamma=st.floats(0.01, 0.16),
    b=st.floats(0.5, 2.0),
    seed=st.integers(0, 2**32),
)
def test_the_network_is_the_average_of_the_features_classifiers(
    name: str, d: int, gamma: float, b: float, seed: int
) -> None:
    world, generator = slabs.world(name, d, gamma=gamma, b=b), rng(seed, "test")
    u = generator.uniform(-1.5 * b, 1.5 * b, (30, d))  # in gaps and beyond the support, too
    q, _ = np.linalg.qr(generator.standard_normal((d, d)))
    np.testing.assert_allclose(value(world, u @ q, q), slowly(name, gamma, b, u), atol=1e-9)
    assert lipschitz(world) == pytest.approx(1 / (gamma * b * np.sqrt(d)), rel=1e-6)


def test_the_rotation_of_the_world_may_be_given_as_it_is_drawn() -> None:
    world, q = slabs.world("lms-5", 30), slabs.rotation(30, rng(0, "rotation"))
    x, y = world.sample(500, rng(0, "test"))
    net = f_star(world, torch.from_numpy(q))
    assert (net.w.dtype, net.b.dtype, net.v.dtype) == (torch.float64,) * 3
    np.testing.assert_allclose(y * net(torch.from_numpy(x @ q).double()[None])[0].numpy(), 1, atol=1e-4)


@pytest.mark.parametrize(("name", "gaps"), [("lms-5", 1 + 49 * 4), ("ms-5-7", 4 + 49 * 6), ("noisy-lms-7", 1 + 49 * 6)])
def test_f_star_has_two_neurons_a_gap_and_one_for_the_constant(name: str, gaps: int) -> None:
    assert f_star(slabs.world(name, 50), np.eye(50)).w.shape == (1, 2 * gaps + 1, 50)


@pytest.mark.parametrize("name", [*WORLDS, "noisy-lms-7"])
@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_certificate_and_both_bounds_are_in_order_and_the_perturbation_reaches_the_boundary(name: str, d: int) -> None:
    world, q = slabs.world(name, d), np.linalg.qr(rng(0, "q").standard_normal((d, d)))[0]
    u, y = world.sample(100, rng(0, "test"))
    bracket = smallest(world, u, y)
    promised = certified(world, value(world, u), y)
    assert (promised <= bracket.lower + 1e-7).all()
    assert (bracket.lower <= bracket.upper).all()
    np.testing.assert_allclose(np.linalg.norm(bracket.delta, axis=1), bracket.upper)
    after = y * value(world, (u + bracket.delta) @ q, q)
    assert after.max() <= 1e-9
    right = y * value(world, u) > 1e-9
    assert right.sum() > 80
    np.testing.assert_allclose(after[right], 0, atol=1e-9)  # no further than that
    if not name.startswith("noisy"):
        np.testing.assert_allclose(promised, GAMMA * B * np.sqrt(d), rtol=1e-5)


def test_the_certificate_is_attained_where_every_feature_is_at_the_edge_of_its_slab() -> None:
    world = slabs.world("ms-5", 12)
    edge = np.full((1, 12), world.rest.positive.lows[-1])
    bracket = smallest(world, edge, np.ones(1))
    np.testing.assert_allclose([bracket.lower, bracket.upper], GAMMA * B * np.sqrt(12), rtol=1e-6)


def test_what_is_wrong_already_needs_no_perturbation() -> None:
    world = slabs.world("lms-5", 8)
    u, y = world.sample(20, rng(0, "test"))
    bracket = smallest(world, u, -y)
    assert (bracket.lower.max(), bracket.upper.max(), np.abs(bracket.delta).max()) == (0, 0, 0)
    assert (certified(world, value(world, u), -y) == 0).all()
    world = slabs.world("noisy-lms-5", 1)
    u, y = world.sample(400, rng(0, "test"))
    assert (u[:, 0] * y < 0).sum() > 5
    np.testing.assert_allclose(smallest(world, u, y).upper, np.maximum(u[:, 0] * y, 0), atol=1e-12)


@pytest.mark.parametrize(("name", "d", "step"), [("lms-5", 2, 0.004), ("noisy-lms-7", 2, 0.004), ("ms-5-7", 3, 0.025)])
def test_a_fine_grid_of_perturbations_agrees_with_the_bracket(name: str, d: int, step: float) -> None:
    world = slabs.world(name, d)
    u, y = world.sample(8, rng(1, "test"))
    bracket = smallest(world, u, y)
    axis = np.arange(-1.2, 1.2, step)
    points = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), -1).reshape(-1, d)
    there = slowly(name, GAMMA, B, points)
    # A point of the grid is within half a diagonal of every point; f* changes by no more than that allows.
    half = step * np.sqrt(d) / 2
    slack = half / (GAMMA * B * np.sqrt(d))
    for sample, label, lower, upper in zip(u, y, bracket.lower, bracket.upper, strict=True):
        distance = np.linalg.norm(points - sample, axis=1)
        beyond, nearly = distance[label * there <= 0].min(), distance[label * there <= slack].min()
        assert lower <= beyond
        assert nearly - half <= upper <= 1.1 * beyond
        assert lower >= 0.9 * (nearly - half)


def test_the_perturbation_is_the_best_over_all_choices_of_pieces_in_three_dimensions() -> None:
    # Each feature stays, or goes some way along some ramp; with the ways of two given, the third's is known.
    world = slabs.world("ms-5", 3)
    u, y = world.sample(30, rng(2, "test"))
    bracket = smallest(world, u, y)
    width = 2 * B * (1 - 4 * GAMMA) / 5
    gaps = -B + width + np.arange(4) * (width + 2 * GAMMA * B)  # where each begins
    ways = np.linspace(0, 2 * GAMMA * B, 201)
    for sample, label, lower, upper in zip(u.astype(float), y, bracket.lower, bracket.upper, strict=True):
        costs = []  # of each feature: the least cost of every value from 1 to -1, downwards
        for coordinate in sample:
            at = (gaps[:, None] + ways).ravel()
            h, cost = label * slab_classifier(5, GAMMA, B, at), (at - coordinate) ** 2
            levels = np.round((1 - h) / 2 * 200).astype(int)
            least = np.full(201, np.inf)
            np.minimum.at(least, levels, cost)
            least[0] = 0
            costs.append(least)
        first, second = np.ogrid[0:201, 0:201]
        third = 300 - first - second  # reductions of 2/200 each, 300 of them bring Σ h from 3 to 0
        total = (
            costs[0][first]
            + costs[1][second]
            + np.where((third >= 0) & (third <= 200), costs[2][np.clip(third, 0, 200)], np.inf)
        )
        exact = np.sqrt(total.min())
        assert lower <= exact * (1 + 1e-3)
        assert exact * (1 - 1e-3) <= upper <= exact * 1.002


@pytest.mark.parametrize("name", [*WORLDS, "noisy-lms-7"])
def test_the_bracket_is_tight_in_twenty_dimensions(name: str) -> None:
    world = slabs.world(name, 20)
    bracket = smallest(world, *world.sample(200, rng(0, "test")))
    assert (bracket.upper / bracket.lower).max() < 1.0005


def test_the_house_s_attacks_and_certificates_are_on_either_side() -> None:
    world, q = slabs.world("lms-5", 6), slabs.rotation(6, rng(0, "q"))
    u, y = world.sample(30, rng(0, "test"))
    bracket, net = smallest(world, u, y), f_star(world, q)
    x, labels = torch.from_numpy(u @ q).double(), torch.from_numpy(y).double()
    radius, found = house_certified(net, x, labels).radius.numpy(), best(net, x, labels).size.numpy()
    # (f* as a network has float32 weights, and certificate and attack may both be exact.)
    assert (radius <= bracket.upper * (1 + 1e-6)).all()
    assert (found >= bracket.lower * (1 - 1e-6)).all()
    assert np.median(radius) > 0.7 * np.median(bracket.lower)
    assert np.median(found) < 1.2 * np.median(bracket.upper)


@pytest.mark.parametrize("name", WORLDS)
def test_the_smallest_perturbation_grows_like_sqrt_d_and_that_of_the_linear_feature_does_not(name: str) -> None:
    ds = [10, 40, 160]
    samples = [(slabs.world(name, d), *slabs.world(name, d).sample(60, rng(d, "test"))) for d in ds]
    brackets = [smallest(*each) for each in samples]
    for bound in ("lower", "upper"):
        medians = [np.median(getattr(bracket, bound)) for bracket in brackets]
        slope = np.polyfit(np.log(ds), np.log(medians), 1)[0]
        assert 0.45 < slope < 0.55
    if name.startswith("lms"):
        alone = [np.median(np.abs(u[:, 0])) for _, u, _ in samples]
        assert abs(np.polyfit(np.log(ds), np.log(alone), 1)[0]) < 0.2
        assert brackets[-1].lower.min() > 1 > alone[-1]
