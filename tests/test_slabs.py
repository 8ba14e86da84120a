"""What the synthetic worlds of SB §3.1 and Appendix B promise: the slabs, the linear block and LSN."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from brittle.core.errors import BadInput
from brittle.core.rng import rng
from brittle.worlds import lsn, slabs

ALARM = 1e-7  # how likely a statistical test here is to fail for nothing, had its seed not been fixed
SIX = 6.0  # standard errors; beyond them lies 2e-9 of a Gaussian
WORLDS = ("lms-3", "lms-5", "lms-7", "noisy-lms-5", "noisy-lms-7", "ms-3", "ms-5", "ms-5-7")

seeds, ks, shares = st.integers(0, 2**32), st.sampled_from([3, 5, 7]), st.floats(0.01, 0.99)
widths = st.floats(0.5, 2.0)


def largest_gamma(k: int) -> float:
    """Below 1/(k-1) the slabs have a width; the paper's margins are small."""
    return min(0.2, 1 / (k - 1))


def intervals(mixture: slabs.Mixture) -> list[tuple[float, float, float]]:
    return list(zip(mixture.lows, mixture.highs, mixture.shares, strict=True))


def cdf(mixture: slabs.Mixture, x: np.ndarray) -> np.ndarray:
    """The share of a mixture to the left of x, by its definition."""
    return sum(share * np.clip((x - low) / (high - low), 0, 1) for low, high, share in intervals(mixture))


def variance(mixture: slabs.Mixture) -> float:
    mean = sum(share * (low + high) / 2 for low, high, share in intervals(mixture))
    return sum(share * (low**2 + low * high + high**2) / 3 for low, high, share in intervals(mixture)) - mean**2


def mixtures(world: slabs.SlabWorld, label: int) -> list[slabs.Mixture]:
    """Of every coordinate, given the label."""
    return [b.positive if label > 0 else b.negative for b in [world.first] + [world.rest] * (world.d - 1)]


def by_coordinate(name: str, n: int, d: int = 3) -> list[tuple[slabs.Mixture, np.ndarray]]:
    """Each coordinate's mixture and samples, label by label."""
    world = slabs.world(name, d)
    x, y = world.sample(n, rng(0, name))
    return [(m, x[y == s, i].astype(float)) for s in (1, -1) for i, m in enumerate(mixtures(world, s))]


@given(k=ks, share=shares, b=widths)
def test_slabs_are_those_of_appendix_b(k: int, share: float, b: float) -> None:
    gamma = share * largest_gamma(k)
    block = slabs.slab(k, gamma, b)
    labelled = sorted([(*i, 1) for i in intervals(block.positive)] + [(*i, -1) for i in intervals(block.negative)])
    lows, highs, _, labels = np.array(labelled).T
    assert len(labelled) == k
    np.testing.assert_allclose(highs - lows, 2 * b * (1 - (k - 1) * gamma) / k, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(lows[1:] - highs[:-1], 2 * gamma * b, atol=1e-12)
    assert (lows[0], highs[-1]) == (pytest.approx(-b), pytest.approx(b))
    assert (labels[1:] == -labels[:-1]).all()
    assert labels[k // 2] == -1


@pytest.mark.parametrize(("k", "label", "outermost"), [(3, 1, 1.0), (5, -1, 1 / 4), (7, 1, 1 / 8)])
def test_shares_are_symmetric_and_the_outermost_are_those_of_appendix_b(k: int, label: int, outermost: float) -> None:
    block = slabs.slab(k, 0.1, 1.0)
    for mixture in (block.positive, block.negative):
        assert sum(mixture.shares) == 1
        assert mixture.shares == mixture.shares[::-1]
    far = block.positive if label > 0 else block.negative
    assert far.shares[0] + far.shares[-1] == outermost
    assert far.highs[-1] == pytest.approx(1.0)


@given(gamma=st.floats(0.001, 0.2), b=widths, noise=st.floats(0.01, 0.9))
def test_the_linear_block_keeps_its_margin_and_its_noise_keeps_inside_it(gamma: float, b: float, noise: float) -> None:
    clean, noisy = slabs.linear(gamma, b), slabs.linear(gamma, b, noise)
    assert intervals(clean.positive) == [(gamma * b, b, 1.0)]
    assert intervals(clean.negative) == [(-b, -gamma * b, 1.0)]
    assert set(intervals(noisy.positive)) == {(-gamma * b, gamma * b, noise), (gamma * b, b, 1 - noise)}
    assert set(intervals(noisy.negative)) == {(-gamma * b, gamma * b, noise), (-b, -gamma * b, 1 - noise)}


@given(k=st.sampled_from([5, 7]), share=shares, b=widths)
def test_five_and_seven_slabs_give_both_labels_the_same_variance(k: int, share: float, b: float) -> None:
    block = slabs.slab(k, share * largest_gamma(k), b)
    assert variance(block.positive) == pytest.approx(variance(block.negative), rel=1e-9)


def test_three_slabs_do_not() -> None:
    block = slabs.slab(3, 0.1, 1.0)
    assert variance(block.positive) > 2 * variance(block.negative)


@pytest.mark.parametrize("name", ["ms-5", "ms-5-7"])
def test_samples_have_the_same_variance_whatever_the_label(name: str) -> None:
    samples = [x for _, x in by_coordinate(name, 100_000)]
    for positive, negative in zip(samples[:3], samples[3:], strict=True):
        error = np.sqrt(sum(np.var(x**2) / len(x) for x in (positive, negative)))
        assert abs(np.mean(positive**2) - np.mean(negative**2)) < SIX * error
        assert abs(positive.mean()) < SIX * positive.std() / np.sqrt(len(positive))


@settings(max_examples=50)
@given(name=st.sampled_from(WORLDS), d=st.integers(1, 12), n=st.integers(1, 60), share=shares, b=widths, seed=seeds)
def test_samples_lie_in_the_support_of_their_label(
    name: str, d: int, n: int, share: float, b: float, seed: int
) -> None:
    world = slabs.world(name, d, gamma=share / 6, b=b)
    x, y = world.sample(n, rng(seed, "test"))
    assert (x.shape, y.shape, x.dtype, y.dtype) == ((n, d), (n,), np.float32, np.float32)
    for row, label in zip(x, y, strict=True):
        assert label in (-1, 1)
        for value, mixture in zip(row, mixtures(world, label), strict=True):
            assert any(low - 1e-6 <= value <= high + 1e-6 for low, high, _ in intervals(mixture))


@pytest.mark.parametrize("name", WORLDS)
def test_samples_fall_in_each_slab_as_often_as_they_should(name: str) -> None:
    for mixture, x in by_coordinate(name, 20_000):
        middles = [(a + b) / 2 for a, b in zip(mixture.highs, mixture.lows[1:], strict=False)]
        counts = np.bincount(np.searchsorted(middles, x), minlength=len(mixture.shares))
        for count, share in zip(counts, mixture.shares, strict=True):
            assert stats.binomtest(int(count), len(x), share).pvalue > ALARM


@pytest.mark.parametrize("name", WORLDS)
def test_samples_are_uniform_within_their_slabs(name: str) -> None:
    for mixture, x in by_coordinate(name, 20_000):
        assert stats.kstest(cdf(mixture, x), "uniform").pvalue > ALARM


@pytest.mark.parametrize("name", ["ms-3", "ms-5-7", "noisy-lms-5"])
def test_coordinates_are_independent_given_the_label(name: str) -> None:
    world = slabs.world(name, 3)
    x, y = world.sample(50_000, rng(1, name))
    for label in (1, -1):
        rows = x[y == label].astype(float)
        slab = [np.searchsorted(m.lows, c) for m, c in zip(mixtures(world, label), rows.T, strict=True)]
        features = [[c, np.abs(c), i] for c, i in zip(rows.T, slab, strict=True)]
        for some, others in itertools.combinations(features, 2):
            for a, b in itertools.product(some, others):
                if a.std() > 0 and b.std() > 0:  # the middle of three slabs is one slab
                    assert abs(np.corrcoef(a, b)[0, 1]) < SIX / np.sqrt(len(rows))


def test_labels_are_fair_and_do_not_depend_on_the_row_before() -> None:
    n = 100_000
    y = slabs.world("lms-5", 2).sample(n, rng(0, "labels"))[1]
    assert abs(y.mean()) < SIX / np.sqrt(n)
    for lag in (1, 2, 3):
        assert abs(np.mean(y[lag:] * y[:-lag])) < SIX / np.sqrt(n)


def test_rows_are_independent() -> None:
    x, _ = slabs.world("lms-5", 2).sample(50_000, rng(0, "rows"))
    correlation = np.corrcoef(np.hstack([x[1:], x[:-1]]).T)[:2, 2:]
    assert np.abs(correlation).max() < SIX / np.sqrt(len(x))


def test_samples_repeat_exactly_and_differ_by_seed() -> None:
    draws = [slabs.world("noisy-lms-7", 5).sample(20, rng(seed, "test"))[0] for seed in (0, 0, 1)]
    assert (draws[0] == draws[1]).all()
    assert not np.isclose(draws[0], draws[2]).all()


def best_accuracies(x: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """The best accuracy of a classifier of the line with exactly 0, 1, …, `most` changes of sign, by dynamic
    programming over the sorted samples: how many are right so far, if the sign is now s, after t changes."""
    gains = np.where(y[np.argsort(x), None] == [1, -1], 1.0, 0.0)  # (n, 2)
    right = np.full((most + 1, 2), -np.inf)
    right[0] = gains[0]
    for gain in gains[1:]:
        changed = np.vstack([[-np.inf, -np.inf], right[:-1, ::-1]])
        right = np.maximum(right, changed) + gain
    return right.max(1) / len(x)


def evenly(block: slabs.Block, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples at the quantiles (i + ½)/m of either label: the shares of every threshold are right up to 1/m."""
    u = (np.arange(m) + 0.5) / m
    return np.concatenate([block.positive.quantile(u), block.negative.quantile(u)]), np.repeat([1, -1], m)


def test_the_dynamic_program_finds_what_trying_all_classifiers_finds() -> None:
    generator = rng(0, "dynamic")
    for _ in range(10):
        x, y = generator.permutation(9), generator.choice([-1, 1], 9)
        signs = np.array(list(itertools.product([-1, 1], repeat=9)))
        changes, accuracy = (np.diff(signs) != 0).sum(1), (signs == y[np.argsort(x)]).mean(1)
        np.testing.assert_allclose(best_accuracies(x, y, 8), [accuracy[changes == t].max() for t in range(9)])


@pytest.mark.parametrize(
    ("block", "accuracies"),
    [
        (slabs.linear(0.1, 1.0), [1 / 2, 1]),
        (slabs.linear(0.1, 1.0, 0.2), [1 / 2, 0.9]),
        (slabs.slab(3, 0.1, 1.0), [1 / 2, 3 / 4, 1]),
        (slabs.slab(5, 0.1, 1.0), [1 / 2, 11 / 16, 7 / 8, 15 / 16, 1]),
        (slabs.slab(7, 0.1, 1.0), [1 / 2, 5 / 8, 3 / 4, 27 / 32, 15 / 16, 31 / 32, 1]),
    ],
    ids=["linear", "noisy linear", "3 slabs", "5 slabs", "7 slabs"],
)
def test_a_block_needs_as_many_changes_of_sign_as_it_has_pieces(block: slabs.Block, accuracies: list[float]) -> None:
    m, more = 800, 3
    found = best_accuracies(*evenly(block, m), len(accuracies) - 1 + more)
    np.testing.assert_allclose(found[: len(accuracies)], accuracies, atol=2 / m)
    assert found[len(accuracies) :].max() <= accuracies[-1] + 2 * more / m  # further changes gain nothing
    assert (np.diff(accuracies) > 0.02).all()
    assert block.pieces == len(accuracies) - 1


@settings(max_examples=60)
@given(k=st.sampled_from([1, 3, 5, 7]), label=st.booleans(), noise=st.floats(0.01, 0.9), u=st.floats(0.0, 0.999999))
def test_quantile_is_the_inverse_of_the_share_to_the_left(k: int, label: bool, noise: float, u: float) -> None:
    block = slabs.linear(0.1, 1.3, noise) if k == 1 else slabs.slab(k, 0.1, 1.3)
    mixture = block.positive if label else block.negative
    assume(np.abs(np.cumsum(mixture.shares) - u).min() > 1e-6)  # at a jump either side will do
    low, high = -2.0, 2.0
    for _ in range(60):  # the furthest x with no more than u to its left
        middle = (low + high) / 2
        low, high = (middle, high) if cdf(mixture, middle) <= u else (low, middle)
    assert mixture.quantile(np.array([u]))[0] == pytest.approx(low, abs=1e-9)
    single = mixture.quantile(np.array([u], dtype=np.float32))
    assert single.dtype == np.float32
    assert single[0] == pytest.approx(low, abs=1e-5)


@settings(max_examples=30)
@given(d=st.integers(1, 60), seed=seeds)
def test_rotation_is_orthogonal_and_gives_the_coordinates_back(d: int, seed: int) -> None:
    q = slabs.rotation(d, rng(seed, "rotation"))
    x, _ = slabs.world("lms-5", d).sample(10, rng(seed, "data"))
    np.testing.assert_allclose(q @ q.T, np.eye(d), atol=2e-6)
    np.testing.assert_allclose((x @ q) @ q.T, x, atol=1e-5)


def test_rotation_is_uniform_among_all() -> None:
    generator = rng(0, "rotation")
    qs = np.stack([slabs.rotation(2, generator) for _ in range(4000)]).astype(float)
    for column in (qs[:, :, 0], qs[:, :, 1], qs[:, 0], qs[:, 1]):
        angles = np.arctan2(column[:, 1], column[:, 0])
        assert stats.kstest(angles / (2 * np.pi) + 0.5, "uniform").pvalue > ALARM
    assert stats.binomtest(int((np.linalg.det(qs) > 0).sum()), len(qs), 0.5).pvalue > ALARM


@pytest.mark.parametrize("name", ["", "lms", "lms-4", "lms-5-7", "noisy-lms-5-7", "noisy-ms-5", "ms-5-7-5", "LMS-5"])
def test_a_world_that_does_not_exist_is_refused_by_name(name: str) -> None:
    with pytest.raises(BadInput, match=f"^{name}: is not a world; worlds are lms-K"):
        slabs.world(name, 10)


@pytest.mark.parametrize(
    ("name", "first", "rest", "simple", "title"),
    [
        ("lms-5", slabs.linear(0.1, 1.0), slabs.slab(5, 0.1, 1.0), True, "LMS-5"),
        ("noisy-lms-7", slabs.linear(0.1, 1.0, 0.1), slabs.slab(7, 0.1, 1.0), True, "noisy LMS-7"),
        ("ms-5-7", slabs.slab(5, 0.1, 1.0), slabs.slab(7, 0.1, 1.0), True, "MS-(5, 7)"),
        ("ms-5", slabs.slab(5, 0.1, 1.0), slabs.slab(5, 0.1, 1.0), False, "MS-5"),
    ],
)
def test_the_paper_s_worlds_are_made_of_its_blocks(
    name: str, first: slabs.Block, rest: slabs.Block, simple: bool, title: str
) -> None:
    world = slabs.world(name, 50)
    assert (world.name, world.d, world.first, world.rest, world.has_simple) == (name, 50, first, rest, simple)
    assert slabs.title(name) == title


@given(d=st.integers(2, 30), n=st.integers(1, 60), seed=seeds)
def test_lsn_has_its_label_in_the_first_coordinate_and_three_points_in_the_second(d: int, n: int, seed: int) -> None:
    x, y = lsn.sample(d, n, rng(seed, "test"))
    assert (x.shape, y.shape, x.dtype, y.dtype) == ((n, d), (n,), np.float32, np.float32)
    assert (x[:, 0] == y).all()
    assert set(y) <= {-1.0, 1.0}
    assert (np.abs(x[:, 1]) == (y > 0)).all()


def test_lsn_with_a_smaller_linear_margin_is_the_same_but_for_the_first_coordinate() -> None:
    (x, y), (small, same) = (lsn.sample(6, 50, rng(0, "lsn"), margin) for margin in (1.0, 0.2))
    assert np.array_equal(y, same)
    np.testing.assert_allclose(small[:, 0], 0.2 * y, rtol=1e-6)
    assert np.array_equal(small[:, 1:], x[:, 1:])


def test_lsn_has_fair_labels_a_fair_slab_and_noise_that_tells_nothing() -> None:
    n, d = 50_000, 6
    x, y = lsn.sample(d, n, rng(0, "lsn"))
    x = x.astype(float)
    assert stats.binomtest(int((y > 0).sum()), n, 0.5).pvalue > ALARM
    slab, noise = x[y > 0, 1], x[:, 2:]
    assert stats.binomtest(int((slab > 0).sum()), len(slab), 0.5).pvalue > ALARM
    for label in (1, -1):
        for column in noise[y == label].T:
            assert stats.kstest(column, "norm").pvalue > ALARM
    assert np.abs(np.corrcoef(noise.T) - np.eye(d - 2)).max() < SIX / np.sqrt(n)
    for told in (y, x[:, 1]):
        assert max(abs(np.corrcoef(told, column)[0, 1]) for column in noise.T) < SIX / np.sqrt(n)
        assert abs(np.corrcoef(told[1:], told[:-1])[0, 1]) < SIX / np.sqrt(n)
    assert max(abs(np.corrcoef(slab, column)[0, 1]) for column in noise[y > 0].T) < SIX / np.sqrt(len(slab))
