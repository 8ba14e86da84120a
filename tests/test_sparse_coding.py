"""The sparse coding world against FP §2: Assumption 2.1, Fact 2.2, the filter, both noises, the dictionaries."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import csr_matrix

from brittle.core.rng import rng
from brittle.worlds import sparse_coding
from brittle.worlds.sparse_coding import DICTIONARIES, SparseCoding, bernoulli, labelling

ALARM = 1e-7  # how likely a statistical test here is to fail for nothing, had its seed not been fixed
SIX = 6.0  # standard errors; beyond them lies 2e-9 of a Gaussian
D, K = 30, 4  # words; 1/√k = 0.5
SPIKE = 0.3  # of 0.5: no sum of a z and a spike is the sum of others

seeds = st.integers(0, 2**32)


def world(
    dictionary: str = "orthogonal", d: int = D, words: int = D, spread: float = 0.3, **options: float
) -> SparseCoding:
    columns, w_star = DICTIONARIES[dictionary](d, words, rng(0, "dictionary")), labelling(words, spread, rng(0, "w*"))
    return SparseCoding(columns, w_star, **{"k": K, **options})


def laws(w: SparseCoding) -> dict[float, float]:
    """The values of z_i and their probabilities, by Assumption 2.1."""
    small, large = w.c2 * w.k / w.words / 2, w.c1 / w.words / 2
    a = 1 / math.sqrt(w.k)
    return {-1.0: large, -a: small, 0.0: 1 - 2 * small - 2 * large, a: small, 1.0: large}


def slow(w: SparseCoding, n: int, generator: np.random.Generator) -> np.ndarray:
    """n draws of z as anyone would write it: every coordinate, sample by sample, until enough pass the filter."""
    values, chances = list(laws(w)), list(laws(w).values())
    kept: list[np.ndarray] = []
    while len(kept) < n:
        z = generator.choice(values, p=chances, size=w.words)
        if abs(w.w_star.astype(float) @ z) >= w.margin:
            kept.append(z)
    return np.array(kept)


def near(found: np.ndarray, expected: float, spread: float) -> bool:
    """The mean of independent values with this standard deviation is where it should be."""
    return abs(found.mean() - expected) < SIX * spread / math.sqrt(found.size)


def nearest(values: np.ndarray, options: list[float]) -> np.ndarray:
    """Which option each value is next to."""
    return np.abs(values[..., None] - np.array(options)).argmin(-1)


# Hidden vectors


@given(n=st.integers(1, 60), words=st.integers(6, 40), k=st.integers(1, 9), margin=st.floats(0, 1.2), seed=seeds)
def test_hidden_vectors_are_as_many_as_asked_for_of_the_right_values_and_pass_the_filter(
    n: int, words: int, k: int, margin: float, seed: int
) -> None:
    w = world("identity", words, words, k=k, margin=margin)
    z = w.hidden(n, rng(seed, "z"))
    assert z.shape == (n, words)
    assert z.dtype == np.float32
    assert z.has_canonical_format  # no cell twice
    assert set(z.data) <= {np.float32(s * v) for s in (1, -1) for v in (1.0, 1 / math.sqrt(k))}
    assert (np.abs(z.toarray().astype(float) @ w.w_star) >= margin - 1e-5).all()


@pytest.mark.parametrize(("c1", "c2", "k"), [(0.5, 0.5, 4), (2.0, 1.0, 9), (1.0, 0.3, 4)])
def test_every_coordinate_has_the_law_of_assumption_2_1(c1: float, c2: float, k: int) -> None:
    n = 40_000
    w = world(c1=c1, c2=c2, k=k)
    z = w.hidden(n, rng(0, "z")).toarray().astype(float)
    law = laws(w)
    assert law[1.0] + law[-1.0] == pytest.approx(c1 / D)
    counts = (nearest(z, list(law))[..., None] == np.arange(5)).sum(0)  # (D, values)
    for column in counts:
        assert stats.chisquare(column, n * np.array(list(law.values()))).pvalue > ALARM
    assert stats.chisquare(counts.sum(0), n * D * np.array(list(law.values()))).pvalue > ALARM
    fourth = (c1 + c2 / k) / D  # E z⁴
    assert near(z**2, (c1 + c2) / D, math.sqrt(fourth))
    assert near(z, 0, math.sqrt((c1 + c2) / D))


def test_coordinates_and_samples_are_independent() -> None:
    n = 40_000
    z = world().hidden(n, rng(0, "z")).toarray().astype(float)
    for told in (z, np.abs(z), (z != 0).astype(float)):
        assert np.abs(np.corrcoef(told.T) - np.eye(D)).max() < SIX / math.sqrt(n)
        after = np.corrcoef(told[:-1].T, told[1:].T)[:D, D:]
        assert np.abs(after).max() < SIX / math.sqrt(n)


def test_number_of_nonzeros_is_that_of_independent_coordinates_around_k_fact_2_2() -> None:
    n = 40_000
    w = world(k=9, c1=0.7)
    count = np.diff(w.hidden(n, rng(0, "z")).indptr)
    assert w.active == pytest.approx(0.7 + 0.5 * 9)
    p = w.active / D
    variance = D * p * (1 - p)
    assert near(count, w.active, math.sqrt(variance))
    assert count.var() == pytest.approx(variance, rel=SIX * math.sqrt(2 / n))
    bins = np.arange(1, 12)
    expected = np.diff(np.concatenate([[0], stats.binom.cdf(bins, D, p), [1]]))
    observed = np.bincount(np.searchsorted(bins, count), minlength=len(bins) + 1)
    assert stats.chisquare(observed, n * expected).pvalue > ALARM


# The filter


@pytest.mark.parametrize("margin", [0.4, 1.5])
def test_filter_keeps_what_slow_rejection_keeps(margin: float) -> None:
    n = 6000
    w = world(margin=margin)
    z, other = w.hidden(3 * n, rng(0, "fast")).toarray().astype(float), slow(w, n, rng(0, "slow"))
    assert (np.abs(z @ w.w_star) >= margin - 1e-5).all()
    assert (np.abs(slow(replace(w, margin=0.0), 500, rng(1, "slow")) @ w.w_star) >= margin).mean() < 0.8  # it matters
    for measure in (lambda z: (z != 0).sum(1), lambda z: (np.abs(z) == 1).sum(1), lambda z: z @ w.w_star > 0):
        a, b = (np.bincount(measure(each).astype(int), minlength=20)[:20] for each in (z, other))
        often = a + b > 40
        assert stats.chi2_contingency([a[often], b[often]]).pvalue > ALARM
        error = math.hypot(measure(z).std() / math.sqrt(len(z)), measure(other).std() / math.sqrt(n))
        assert abs(measure(z).mean() - measure(other).mean()) < SIX * error
    assert stats.ks_2samp(np.abs(z @ w.w_star), np.abs(other @ w.w_star)).pvalue > ALARM


def test_a_filter_that_few_pass_takes_several_rounds_and_counts_none_twice() -> None:
    n = 50
    w = world(margin=3.0)
    share = (np.abs(replace(w, margin=0.0).hidden(40_000, rng(0, "z")) @ w.w_star) >= 3).mean()
    assert share < 0.02  # of the first 71 none or one
    z = w.hidden(n, rng(0, "z")).toarray().astype(float)
    assert len(np.unique(z, axis=0)) == n
    assert (np.abs(z @ w.w_star) >= 3 - 1e-5).all()


def test_without_a_margin_everything_is_kept_even_what_is_zero() -> None:
    n = 40_000
    w = world()
    p = (1 - w.active / D) ** D
    empty, filtered = (np.diff(each.hidden(n, rng(0, "z")).indptr) == 0 for each in (w, replace(w, margin=1e-3)))
    assert stats.binomtest(int(empty.sum()), n, p).pvalue > ALARM
    assert not filtered.any()


def exactly(w: SparseCoding, z: csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """For w* = ±1, ⟨w*, z⟩ = large + small/√k in whole numbers."""
    terms, size = np.sign(z.toarray()) * w.w_star, np.abs(z.toarray())
    return (terms * (size == 1)).sum(1), (terms * (size < 1)).sum(1)


def test_a_sample_at_the_margin_is_kept_whatever_the_rounding() -> None:
    n = 20_000
    w = world(d=60, words=60, spread=0.0, k=12, margin=1.0)
    shares = []
    for each in (w, replace(w, margin=0.0)):
        large, small = exactly(w, each.hidden(n, rng(0, "z")))
        passes = np.abs(large + small / math.sqrt(12)) > 1 - 1e-6
        edge = (np.abs(large) == 1) & (small == 0)  # √12 is irrational
        assert passes.all() or not each.margin
        shares.append((edge.sum(), passes.sum()))
    assert stats.chi2_contingency([(edge, passes - edge) for edge, passes in shares]).pvalue > ALARM


# Labels


def test_labels_are_signs_and_that_of_zero_is_one() -> None:
    z = csr_matrix(
        np.array([[1, 0, 0], [-1, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0], [0, 0, -0.5], [0.5, 0, -0.5]], np.float32)
    )
    w = SparseCoding(np.eye(3, dtype=np.float32), np.array([1, -1, 1], np.float32), K)
    y = w.labels(z)
    assert y.tolist() == [1, -1, 1, 1, -1, 1]
    assert y.dtype == np.float32


def test_label_of_a_tie_is_one_whatever_the_rounding() -> None:
    w = world(spread=0.0, k=20)
    z = w.hidden(5000, rng(0, "z"))
    large, small = exactly(w, z)
    tie = (small == 0) & (large == 0)  # √20 is irrational
    assert tie.mean() > 0.05
    assert (w.labels(z)[tie] == 1).all()


def test_labels_are_fair() -> None:
    n = 40_000
    _, y = world(margin=0.5).draw(n, rng(0, "draw"))
    assert set(y) == {-1.0, 1.0}
    assert stats.binomtest(int((y > 0).sum()), n, 0.5).pvalue > ALARM


# Samples and their noise


@pytest.mark.parametrize(
    ("dictionary", "d", "words"), [("orthogonal", 30, 20), ("incoherent", 20, 50), ("identity", 9, 9)]
)
def test_samples_without_noise_are_sums_of_words(dictionary: str, d: int, words: int) -> None:
    w = world(dictionary, d, words, margin=0.3)
    x, y = w.draw(200, rng(0, "draw"))
    z = w.hidden(200, rng(0, "draw")).toarray().astype(float)  # the first thing drawn
    expected = [sum(z[i, j] * w.dictionary[:, j].astype(float) for j in range(words)) for i in range(200)]
    np.testing.assert_allclose(x, expected, atol=2e-6)
    assert (w.ambient, w.words) == (d, words) == (x.shape[1], w.w_star.size)
    assert (x.dtype, y.dtype, y.shape) == (np.float32, np.float32, (200,))
    assert (y == np.where(z @ w.w_star >= 0, 1, -1)).all()


def test_gaussian_noise_is_isotropic_of_norm_sigma_x() -> None:
    n, d, sigma = 4000, 60, 0.2  # per coordinate 0.026: z is the nearest value
    w = world(d=d, sigma_x=sigma)
    x, y = w.draw(n, rng(0, "draw"))
    m = w.dictionary.astype(float)
    z = np.array(list(laws(w)))[nearest(x @ m, list(laws(w)))]
    noise = (x - z @ m.T) / (sigma / math.sqrt(d))
    assert stats.kstest(noise.ravel(), "norm").pvalue > ALARM
    assert near(noise, 0, 1)
    assert near(noise**2, 1, math.sqrt(2))
    assert np.abs(np.corrcoef(noise.T) - np.eye(d)).max() < SIX / math.sqrt(n)
    assert np.abs(np.corrcoef(z.T, noise.T)[:D, D:]).max() < SIX / math.sqrt(n)
    assert (y == np.where(z @ w.w_star >= 0, 1, -1)).mean() > 0.999  # but for rounding of ties


@pytest.mark.parametrize("margin", [0.0, 0.6])
def test_spike_noise_is_sparse_symmetric_small_in_the_basis_of_words_and_not_in_the_label(margin: float) -> None:
    n, spikes = 40_000, 1.5
    w = world(d=40, spikes=spikes, spike_size=SPIKE, margin=margin)
    x, y = w.draw(n, rng(0, "draw"))
    m, size = w.dictionary.astype(float), SPIKE / math.sqrt(K)
    pairs = list(itertools.product(laws(w), (-size, 0.0, size)))
    at = nearest(x @ m, [z + spike for z, spike in pairs])
    z, spike = (np.array(each)[at] for each in zip(*pairs, strict=True))
    np.testing.assert_allclose(x, (z + spike) @ m.T, atol=2e-6)  # nothing else, and nothing out of the span
    assert size <= K**-0.501  # the paper's bound
    p = spikes / D
    for column in spike.T:
        counts = [(column == s).sum() for s in (-size, 0.0, size)]
        assert stats.chisquare(counts, n * np.array([p / 2, 1 - p, p / 2])).pvalue > ALARM
    assert np.abs(np.corrcoef(spike.T) - np.eye(D)).max() < SIX / math.sqrt(n)
    assert np.abs(np.corrcoef(z.T, spike.T)[:D, D:]).max() < SIX / math.sqrt(n)
    clear = np.abs(z @ w.w_star) > 1e-4
    assert (y == np.where(z @ w.w_star >= 0, 1, -1))[clear].all()
    assert (np.abs(z @ w.w_star) >= margin - 1e-5).all()


def test_the_same_stream_gives_the_same_bytes_and_another_does_not() -> None:
    w = world(sigma_x=0.5, spikes=1.0, margin=0.3)
    (x, y), (again, y_again), (other, _) = (w.draw(50, rng(seed, "draw")) for seed in (0, 0, 1))
    assert np.array_equal(x, again)
    assert np.array_equal(y, y_again)
    assert not (x == other).any()
    assert x.flags.c_contiguous


# Sparse trials


@settings(max_examples=50)
@given(n=st.integers(0, 500), p=st.floats(0.001, 1.0), seed=seeds)
def test_successes_are_trials_in_order(n: int, p: float, seed: int) -> None:
    at = bernoulli(n, p, rng(seed, "trials"))
    assert (np.diff(at) > 0).all()
    assert ((at >= 0) & (at < n)).all()
    assert np.array_equal(bernoulli(n, 1.0, rng(seed, "trials")), np.arange(n))


@pytest.mark.parametrize("p", [0.1, 0.35, 0.8])
def test_every_pattern_of_successes_is_as_likely_as_independent_trials_make_it(p: float) -> None:
    n, draws, generator = 5, 20_000, rng(0, "trials")
    codes = [(1 << bernoulli(n, p, generator)).sum() for _ in range(draws)]
    successes = np.array([bin(code).count("1") for code in range(2**n)])
    expected = draws * p**successes * (1 - p) ** (n - successes)
    often = expected > 5
    found = np.bincount(codes, minlength=2**n)
    pairs = [np.append(each[often], each[~often].sum()) for each in (found, expected)]
    assert stats.chisquare(*(each[pairs[1] > 0] for each in pairs)).pvalue > ALARM


def test_many_trials_succeed_as_often_as_numpy_s() -> None:
    n, p, generator = 10_000, 0.003, rng(0, "trials")
    counts = np.array([len(bernoulli(n, p, generator)) for _ in range(3000)])
    brute = np.array([(generator.random(n) < p).sum() for _ in range(3000)])
    assert stats.ks_2samp(counts, brute).pvalue > ALARM
    assert near(counts, n * p, math.sqrt(n * p * (1 - p)))
    assert counts.var() == pytest.approx(n * p * (1 - p), rel=SIX * math.sqrt(2 / 3000))


class Lucky(np.random.Generator):
    """Succeeds far more often than it is asked to, as a Generator may once in an age."""

    def geometric(self, p: float, size: int) -> np.ndarray:
        return super().geometric(0.9, size)


def test_trials_go_on_to_the_last_when_successes_are_more_than_expected() -> None:
    n = 5000
    at = bernoulli(n, 0.001, Lucky(np.random.PCG64(0)))
    assert (np.diff(at) > 0).all()
    assert n - 10 < at[-1] < n
    assert abs(len(at) - 0.9 * n) < SIX * math.sqrt(n * 0.9 * 0.1)


# Dictionaries and labellings


@settings(max_examples=30)
@given(d=st.integers(1, 60), share=st.floats(0, 1), seed=seeds)
def test_orthogonal_words_are_orthonormal(d: int, share: float, seed: int) -> None:
    words = max(1, round(share * d))
    m = sparse_coding.orthogonal(d, words, rng(seed, "dictionary"))
    assert (m.shape, m.dtype) == ((d, words), np.float32)
    np.testing.assert_allclose(m.T.astype(float) @ m, np.eye(words), atol=2e-6)


def test_orthogonal_words_are_uniform_among_all() -> None:
    generator = rng(0, "dictionary")
    for words in (1, 2):
        ms = np.stack([sparse_coding.orthogonal(2, words, generator) for _ in range(4000)]).astype(float)
        for column in range(words):
            angles = np.arctan2(ms[:, 1, column], ms[:, 0, column])
            assert stats.kstest(angles / (2 * np.pi) + 0.5, "uniform").pvalue > ALARM
    assert stats.binomtest(int((np.linalg.det(ms) > 0).sum()), len(ms), 0.5).pvalue > ALARM


def test_incoherent_words_are_unit_vectors_with_products_like_one_over_the_root_of_d() -> None:
    d, words = 256, 600
    m = sparse_coding.incoherent(d, words, rng(0, "dictionary"))
    assert (m.shape, m.dtype) == ((d, words), np.float32)
    products = m.T.astype(float) @ m
    np.testing.assert_allclose(np.diag(products), 1, atol=1e-6)
    off = products[~np.eye(words, dtype=bool)]
    assert np.abs(off).max() < SIX / math.sqrt(d)
    assert (off**2).mean() == pytest.approx(1 / d, rel=0.03)
    assert off.mean() == pytest.approx(0, abs=SIX / math.sqrt(d) / words)


@pytest.mark.parametrize(("d", "words"), [(7, 7), (9, 4)])
def test_identity_shows_z_itself(d: int, words: int) -> None:
    w = world("identity", d, words, k=2)
    x, _ = w.draw(100, rng(0, "draw"))
    z = w.hidden(100, rng(0, "draw")).toarray()
    assert np.array_equal(x, np.hstack([z, np.zeros((100, d - words), np.float32)]))


@pytest.mark.parametrize("dictionary", ["orthogonal", "incoherent"])
def test_dense_direction_is_the_one_along_m_w_star(dictionary: str) -> None:
    w = world(dictionary, 40, 25)
    assert (w.dense.shape, w.dense.dtype) == ((40,), np.float32)
    mixture = sum(w.w_star[j].astype(float) * w.dictionary[:, j] for j in range(25))
    assert np.linalg.norm(w.dense) == pytest.approx(1, abs=1e-6)
    assert w.dense @ mixture == pytest.approx(np.linalg.norm(mixture), rel=1e-6)


def test_dense_direction_of_orthogonal_words_reads_the_label_off_a_sample() -> None:
    w = world(d=40)
    x, y = w.draw(500, rng(0, "draw"))
    z = w.hidden(500, rng(0, "draw"))
    np.testing.assert_allclose(x @ w.dense, z @ w.w_star / np.linalg.norm(w.w_star), atol=1e-6)
    clear = np.abs(z @ w.w_star) > 1e-4
    assert (np.sign(x @ w.dense) == y)[clear].all()


@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_labelling_has_fair_signs_and_sizes_around_one(spread: float) -> None:
    n = 20_000
    w = labelling(n, spread, rng(0, "w*")).astype(float)
    assert stats.binomtest(int((w > 0).sum()), n, 0.5).pvalue > ALARM
    assert np.abs(np.corrcoef(np.sign(w[1:]), np.sign(w[:-1]))[0, 1]) < SIX / math.sqrt(n)
    if not spread:
        assert (np.abs(w) == 1).all()
        return
    assert stats.kstest((np.abs(w) - 1) / spread, "uniform", args=(-1, 2)).pvalue > ALARM
    assert stats.ks_2samp(w[w > 0], -w[w < 0]).pvalue > ALARM
