"""Randomised scores, boundaries and confidence: against loops, closed forms and other ways to count."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import astuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from brittle.core.errors import BadInput
from brittle.probes import randomised as module
from brittle.probes.boundary import Boundary, grid
from brittle.probes.confidence import confidence, contradicted
from brittle.probes.randomised import (
    evaluate,
    ks,
    randomise_rest,
    randomise_s,
    randomised,
    scores,
    shuffled,
    single,
    swapped,
)
from brittle.worlds import slabs

seeds = st.integers(0, 2**31)
D = 6


def seen(seed: int = 0, n: int = 400, d: int = D) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Samples of LMS-5, rotated: x, y, the rotation, and the coordinates."""
    rng = np.random.default_rng(seed)
    u, y = (torch.from_numpy(t).double() for t in slabs.world("lms-5", d).sample(n, rng))
    q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    q = torch.from_numpy(q)
    return u @ q, y, q, u


def wavy(u: Tensor) -> Tensor:
    """A network of three coordinates with an interaction."""  # (n, d) -> (n,)
    return u[:, 0] + torch.sin(3 * u[:, 1]) * u[:, 2] + 0.3 * u[:, 2]


@settings(max_examples=20, deadline=None)
@given(seed=seeds, members=st.sets(st.integers(0, D - 1)))
def test_randomising_is_to_unrotate_exchange_and_rotate_back(seed: int, members: set[int]) -> None:
    x, y, q, u = seen(seed, n=12)
    index = shuffled(y, np.random.default_rng(seed))
    assert sorted(index.tolist()) == list(range(12))
    kept, given_up = u.clone(), u.clone()
    for row, feature in itertools.product(range(12), range(D)):
        (kept if feature in members else given_up)[row, feature] = u[index[row], feature]
    q_s = q[sorted(members)]
    np.testing.assert_allclose(randomise_s(x, x[index], q_s), kept @ q, atol=1e-12)
    np.testing.assert_allclose(randomise_rest(x, x[index], q_s), given_up @ q, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, positives=st.integers(1, 20), negatives=st.integers(1, 20))
def test_swapped_donors_have_the_other_label_and_serve_equally_often(seed: int, positives: int, negatives: int) -> None:
    rng = np.random.default_rng(seed)
    y = torch.from_numpy(rng.permutation(np.repeat([1.0, -1.0], [positives, negatives])))
    index = swapped(y, rng)
    assert torch.equal(y[index], -y)
    served = torch.bincount(index, minlength=len(y))
    for label in (1, -1):
        assert int(served[y == label].max() - served[y == label].min()) <= 1


def test_swapped_donors_are_drawn_at_random() -> None:
    y = torch.tensor([1.0, -1, 1, -1, -1, 1])
    rng = np.random.default_rng(0)
    pairs = torch.stack([swapped(y, rng) for _ in range(600)])
    for row in range(6):
        others = torch.bincount(pairs[:, row], minlength=6)[y != y[row]]
        assert bool((others > 140).all())  # of 200 expected, with a deviation of 12
    lopsided = torch.tensor([1.0, -1, -1, 1, -1, 1, -1, -1])  # three donors for five takers: two serve twice
    pairs = torch.stack([swapped(lopsided, rng) for _ in range(600)])
    takers = (lopsided < 0).nonzero()[:, 0]
    for first, second in itertools.combinations(takers.tolist(), 2):
        together = float((pairs[:, first] == pairs[:, second]).double().mean())
        assert together == pytest.approx(0.2, abs=0.08)  # two pairs of ten, no taker in a privileged place


def test_one_label_alone_cannot_be_swapped() -> None:
    with pytest.raises(BadInput, match="same label"):
        swapped(torch.ones(3), np.random.default_rng(0))


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n=st.integers(2, 40), levels=st.integers(1, 50))
def test_scores_are_what_counting_gives(seed: int, n: int, levels: int) -> None:
    """Pairs in the right order, a tie half; precision at every threshold, weighed by the recall it adds."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.where(np.arange(n) < rng.integers(1, n), 1.0, -1.0))
    values = rng.integers(-levels, levels + 1, n) / levels
    ours = scores(torch.from_numpy(values), torch.from_numpy(y))
    plus, minus = values[y > 0], values[y < 0]
    pairs = [(a > b) + 0.5 * (a == b) for a, b in itertools.product(plus, minus)]
    assert ours.auc_roc == pytest.approx(sum(pairs) / len(pairs))
    area, recall = 0.0, 0.0
    for threshold in sorted(set(values), reverse=True):
        chosen = values >= threshold
        now = (plus >= threshold).sum() / len(plus)
        area, recall = area + (now - recall) * (y[chosen] > 0).mean(), now
    assert ours.auc_pr == pytest.approx(area)
    assert ours.accuracy == pytest.approx(np.mean([np.sign(v) == label for v, label in zip(values, y, strict=True)]))


@settings(max_examples=20, deadline=None)
@given(seed=seeds, n=st.integers(3, 30), m=st.integers(3, 30))
def test_ks_is_the_largest_gap_of_the_distribution_functions(seed: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 9, n), rng.integers(0, 9, m)
    gap = max(abs((a <= t).mean() - (b <= t).mean()) for t in range(9))
    assert ks(torch.from_numpy(a), torch.from_numpy(b)) == pytest.approx(gap)


def test_a_network_of_the_simple_feature_alone_behaves_as_table_1_says() -> None:
    x, y, q, u = seen(n=2000)
    found = randomised(lambda p: p @ q[0], x, y, q[:1], np.random.default_rng(0), permutations=5)
    assert astuple(found["standard"].mean) == (1, 1, 1)
    np.testing.assert_allclose(found["rest"].values, u[:, 0], atol=1e-12)
    np.testing.assert_allclose(found["rest_swapped"].values, u[:, 0], atol=1e-12)
    assert astuple(found["rest"].mean) == astuple(found["rest_swapped"].mean) == (1, 1, 1)
    assert astuple(found["rest"].error) == (0, 0, 0)
    for chance in astuple(found["s"].mean):
        assert chance == pytest.approx(0.5, abs=0.03)
    assert not np.allclose(found["s"].values, u[:, 0])
    np.testing.assert_allclose(found["s"].values.sort().values, u[:, 0].sort().values)  # a shuffling of the logits
    assert found["s_swapped"].mean.accuracy == found["s_swapped"].mean.auc_roc == 0
    positive = y > 0
    assert ks(found["rest"].values[positive], found["standard"].values[positive]) < 0.002  # rounding
    assert ks(found["s"].values[positive], found["standard"].values[positive]) > 0.4


def test_means_and_standard_errors_are_over_draws_and_the_values_of_the_first() -> None:
    x, y, q, _ = seen(n=60)
    f, q_s = (lambda p: wavy(p @ q.T)), q[[0, 2]]
    found = randomised(f, x, y, q_s, np.random.default_rng(7), permutations=4)
    assert list(found) == ["standard", "s", "rest", "s_swapped", "rest_swapped"]
    rng = np.random.default_rng(7)  # the donors in the same order
    for name, donors, rest in (
        ("s", shuffled, False),
        ("rest", shuffled, True),
        ("s_swapped", swapped, False),
        ("rest_swapped", swapped, True),
    ):
        draws = []
        for draw in range(4):
            coordinates, others = x @ q.T, (x @ q.T)[donors(y, rng)]
            chosen = [i for i in range(D) if (i in (0, 2)) != rest]
            coordinates[:, chosen] = others[:, chosen]
            if draw == 0:
                np.testing.assert_allclose(found[name].values, wavy(coordinates), atol=1e-12)
            draws.append(astuple(scores(wavy(coordinates), y)))
        np.testing.assert_allclose(astuple(found[name].mean), np.mean(draws, axis=0))
        np.testing.assert_allclose(astuple(found[name].error), np.std(draws, axis=0, ddof=1) / 2)
    assert all(map(math.isnan, astuple(found["standard"].error)))


def everything(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, q: Tensor) -> list[np.ndarray]:
    """All the numbers of these probes."""
    rng = np.random.default_rng(3)
    drawn = randomised(f, x, y, q[:2], rng, 2)
    each, told = single(f, x, y, q, rng), contradicted(f, x, y, q[:2], rng)
    numbers = [t for d in drawn.values() for t in (d.values, astuple(d.mean))] + [each.auc_roc, each.change]
    numbers += [grid(f, x[:4], q, 0, 1, 6).scores, astuple(told.rest), astuple(told.s)]
    return [np.asarray(each) for each in numbers]


def test_the_rotation_changes_no_number() -> None:
    x, y, q, u = seen(n=80)
    turned = everything(lambda p: wavy(p @ q.T), x, y, q)
    for ours, plain in zip(turned, everything(wavy, u, y, torch.eye(D).double()), strict=True):
        np.testing.assert_allclose(ours, plain, atol=1e-10)


def test_chunks_change_nothing_and_leave_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, q, _ = seen(n=80)
    weight = torch.ones(1, requires_grad=True)
    sizes: list[int] = []

    def f(points: Tensor) -> Tensor:
        sizes.append(len(points))
        return weight * wavy(points @ q.T)

    whole = everything(f, x, y, q)
    assert not evaluate(f, x).requires_grad
    assert max(sizes) == 80 * D
    for rows in (7, 170):  # less than one feature's samples, two features'
        sizes.clear()
        monkeypatch.setattr(module, "ROWS", rows)
        for part, ours in zip(everything(f, x, y, q), whole, strict=True):
            np.testing.assert_allclose(part, ours, atol=1e-12)
        assert max(sizes) <= rows


def test_single_features_change_the_score_as_far_as_it_depends_on_them() -> None:
    """f = u_0 + 3 |u_2|: feature i alone moves f by |Δu_0|, by 3 |Δ|u_2||, or not at all."""
    x, y, q, u = seen(n=300)
    found = single(lambda p: (p @ q.T)[:, 0] + 3 * (p @ q.T)[:, 2].abs(), x, y, q, np.random.default_rng(5))
    donors = u[shuffled(y, np.random.default_rng(5))]
    expected = torch.zeros(D, dtype=torch.float64)
    expected[0] = (donors[:, 0] - u[:, 0]).abs().mean()
    expected[2] = 3 * (donors[:, 2].abs() - u[:, 2].abs()).abs().mean()
    np.testing.assert_allclose(found.change, expected, atol=1e-12)
    standard = scores(u[:, 0] + 3 * u[:, 2].abs(), y).auc_roc
    np.testing.assert_allclose(found.auc_roc[[1, 3, 4, 5]], standard)
    np.testing.assert_allclose(found.auc_roc[0], scores(donors[:, 0] + 3 * u[:, 2].abs(), y).auc_roc)
    np.testing.assert_allclose(found.auc_roc[2], scores(u[:, 0] + 3 * donors[:, 2].abs(), y).auc_roc)
    assert found.most_influential([]) == int(expected.argmax())
    assert found.most_influential([0]) == 2
    assert found.most_influential([2]) == 0
    with pytest.raises(BadInput, match="outside"):
        found.most_influential(range(D))


def test_the_boundary_of_the_first_feature_alone_never_changes_along_the_second() -> None:
    x, _, q, _ = seen(n=5)
    found = grid(lambda p: p @ q[0], x, q, 0, 1, side=10)
    assert (found.changes, found.mixed) == (0, 0)
    assert found.labels.double().mean() == 0.5
    assert grid(lambda p: p @ q[0], x, q, 1, 0, side=10).changes == 0.5  # the other way round: all along


def test_the_boundary_changes_where_a_known_share_of_the_line_lies_beyond_it() -> None:
    """u_1 > 1/2 at 2 of 8 points; u_0 + u_1/2 > 0, point by point; limits as given."""
    x, _, q, _ = seen(n=3)
    found = grid(lambda p: p @ q[1] - 0.5, x, q, 0, 1, side=8)
    assert (found.changes, found.mixed) == (0.25, 1)
    tilted = grid(lambda p: p @ (q[0] + q[1] / 2), x, q, 0, 1, side=6, low=-1.2, high=1.3)
    ticks = np.linspace(-1.2, 1.3, 6)
    np.testing.assert_allclose(tilted.ticks, ticks)
    np.testing.assert_allclose(tilted.scores, np.broadcast_to(ticks[:, None] + ticks / 2, (3, 6, 6)), atol=1e-12)
    counts = [sum(s + t / 2 > 0 for t in ticks) for s in ticks]
    assert tilted.changes == pytest.approx(np.mean([min(c, 6 - c) / 6 for c in counts]))
    assert tilted.mixed == pytest.approx(np.mean([0 < c < 6 for c in counts]))
    assert 0 < tilted.changes < tilted.mixed < 1


def test_the_other_features_of_the_grid_are_those_of_each_sample() -> None:
    x, _, q, u = seen(n=4)
    found = grid(lambda p: wavy((p @ q.T)[:, [0, 3, 2]]) + (p @ q.T)[:, 5], x, q, 0, 2, side=4)
    for base, (row, s), (column, t) in itertools.product(range(4), *[list(enumerate(np.linspace(-1, 1, 4)))] * 2):
        point = torch.tensor([[s, u[base, 3], t]], dtype=torch.float64)
        assert float(found.scores[base, row, column]) == pytest.approx(float(wavy(point) + u[base, 5]))


def test_a_change_on_one_sample_only_is_not_averaged_away() -> None:
    values = torch.ones(4, 2, 5)
    values[0, 1, :2] = -0.1
    found = Boundary(torch.linspace(-1, 1, 5), values)
    assert found.changes == pytest.approx(2 / 40)
    assert found.mixed == pytest.approx(1 / 8)


def test_confidence_is_the_larger_of_the_two_probabilities() -> None:
    values = torch.linspace(-5, 5, 21, dtype=torch.float64)
    np.testing.assert_allclose(confidence(values), [max(1 / (1 + math.exp(-v)), 1 / (1 + math.exp(v))) for v in values])


def test_contradiction_is_not_noticed_by_a_network_of_s_alone_and_turns_round_one_of_the_rest() -> None:
    """f = ±a by the sign of one feature: a swap of its set flips every label and leaves the confidence σ(a)."""
    x, y, q, _ = seen(n=200)
    x = torch.where(torch.arange(D) < 2, y[:, None], x @ q.T) @ q  # the first two features are the label itself
    a, sure = 2.0, 1 / (1 + math.exp(-2))
    for feature, silent, loud in ((0, "rest", "s"), (1, "s", "rest")):
        found = contradicted(lambda p, w=a * q[feature]: p @ w, x, y, q[:1], np.random.default_rng(0))
        np.testing.assert_allclose(astuple(getattr(found, silent)), (sure, sure, 0, 0, 0), atol=1e-12)
        np.testing.assert_allclose(astuple(getattr(found, loud)), (sure, sure, 0, 2, 1), atol=1e-12)


def test_contradiction_lowers_the_confidence_of_a_network_that_uses_both_sets() -> None:
    """f = 3 u_0 + u_1 of label-valued features is ±4, and ±2 when they disagree: with S, when it is the heavier."""
    x, y, q, _ = seen(n=200)
    x = torch.where(torch.arange(D) < 2, y[:, None], x @ q.T) @ q
    found = contradicted(lambda p: p @ (3 * q[0] + q[1]), x, y, q[:1], np.random.default_rng(0))
    four, two = (1 / (1 + math.exp(-v)) for v in (4, 2))
    np.testing.assert_allclose(astuple(found.rest), (four, two, four - two, 0.5, 0), atol=1e-12)
    np.testing.assert_allclose(astuple(found.s), (four, two, four - two, 1.5, 1), atol=1e-12)
