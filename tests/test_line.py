"""The exact crossing along a line, against dense grids and bisection."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from brittle.attacks import line
from brittle.attacks.line import Crossings, crossings
from brittle.nets.two_layer import TwoLayer
from brittle.probes.margin import along, probe


def random_problem(seed: int, n: int, k: int, d: int) -> tuple[TwoLayer, Tensor, Tensor, Tensor]:
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    net = TwoLayer(normal(1, k, d), normal(1, k), normal(1, k))
    x, u = normal(n, d), normal(d)
    return net, x, normal(n).sign(), u / u.norm()


def signed(net: TwoLayer, x: Tensor, y: Tensor, u: Tensor, c: float) -> Tensor:
    """y_i N(x_i - y_i c u), by the network itself."""
    return y * net((x - c * y[:, None] * u)[None])[0]


def flipped_at(found: Crossings, c: float) -> Tensor:
    """Which samples the crossings say are wrong at c."""
    wrong = found.starts_flipped.clone()
    for sample in found.sample[found.c <= c]:
        wrong[sample] ^= True
    return wrong


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 6), k=st.integers(1, 12), d=st.integers(1, 4))
def test_signs_between_crossings_are_the_networks_own(seed: int, n: int, k: int, d: int) -> None:
    net, x, y, u = random_problem(seed, n, k, d)
    found = along(net, x, y, u)
    ends = torch.cat([torch.zeros(1), found.c.sort().values, torch.tensor([1e4])]).double()
    for c in ((ends[1:] + ends[:-1]) / 2)[ends.diff() > 1e-9].tolist():
        value = signed(net, x, y, u, c)
        clear = value.abs() > 1e-9
        assert torch.equal((value < 0)[clear], flipped_at(found, c)[clear])


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**31), k=st.integers(1, 30))
def test_every_crossing_is_where_bisection_finds_it(seed: int, k: int) -> None:
    net, x, y, u = random_problem(seed, 4, k, 3)
    found = along(net, x, y, u)
    for i in range(len(y)):
        own = found.c[found.sample == i].sort().values.tolist()
        brackets = [0.0, *((a + b) / 2 for a, b in pairwise(own)), 2 * max(own, default=0) + 1]
        for c, (low, high) in zip(own, pairwise(brackets), strict=False):
            starts_wrong = float(signed(net, x, y, u, low)[i]) < 0
            for _ in range(80):
                middle = (low + high) / 2
                same = (float(signed(net, x, y, u, middle)[i]) < 0) == starts_wrong
                low, high = (middle, high) if same else (low, middle)
            assert c == pytest.approx(high, abs=1e-8 * (1 + c))


small = st.integers(-2, 2)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), k=st.integers(1, 6), n=st.integers(1, 3))
def test_ties_zeros_and_plateaus_agree_with_exact_fractions(data: st.DataObject, k: int, n: int) -> None:
    """Networks of small integers: breakpoints coincide, neurons start at 0 or never move, outputs rest at 0."""
    a = data.draw(st.lists(st.lists(small, min_size=k, max_size=k), min_size=n, max_size=n))
    rate, v = (data.draw(st.lists(small, min_size=k, max_size=k)) for _ in range(2))
    y = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n))

    def value(i: int, c: Fraction) -> Fraction:
        return sum((y[i] * v[j] * max(Fraction(0), a[i][j] - y[i] * c * rate[j]) for j in range(k)), Fraction(0))

    # Every c at which anything can change: breakpoints, and zeros on the pieces between them.
    breaks = {Fraction(a[i][j], y[i] * rate[j]) for i in range(n) for j in range(k) if rate[j]}
    pieces = [Fraction(0), *sorted(b for b in breaks if b > 0)]
    pieces.append(pieces[-1] + 1)
    events = set(pieces[:-1])
    for low, high in pairwise(pieces):
        for i in range(n):
            slope = (value(i, high) - value(i, low)) / (high - low)
            zero = low - value(i, low) / slope if slope else low
            if zero >= low and (zero <= high or high == pieces[-1]):
                events.add(zero)
    ordered = sorted(events)
    between = [(low + high) / 2 for low, high in pairwise(ordered)] + [ordered[-1] + 1]
    wrong = [[value(i, c) < 0 for i in range(n)] for c in between]

    found = crossings(*(torch.tensor(t, dtype=torch.float64) for t in (a, rate, v, y)))
    shares = found.flipped(torch.tensor([float(c) for c in between], dtype=torch.float64))
    np.testing.assert_allclose(shares, [sum(row) / n for row in wrong])
    first = [next((float(c) for c, row in zip(ordered, wrong, strict=True) if row[i]), math.inf) for i in range(n)]
    np.testing.assert_allclose(found.first(), first, atol=1e-9)
    everything = next((float(c) for c, row in zip(ordered, wrong, strict=True) if all(row)), math.inf)
    assert found.all_at_once() == pytest.approx(everything, abs=1e-9)


def test_all_at_once_waits_for_a_sample_that_flips_back() -> None:
    found = Crossings(
        n=2,
        starts_flipped=torch.tensor([False, False]),
        sample=torch.tensor([0, 0, 1, 0]),
        c=torch.tensor([1.0, 2.0, 3.0, 5.0]),
        flips=torch.tensor([True, False, True, True]),
    )
    assert found.first().tolist() == [1.0, 3.0]
    assert found.all_at_once() == 5.0  # at 3 the first sample is right again
    shares = found.flipped(torch.tensor([0.5, 1.5, 2.5, 4.0, 6.0]))
    assert shares.tolist() == [0, 0.5, 0, 0.5, 1]


def test_a_network_that_never_flips_has_no_finite_c() -> None:
    # N = σ(x) is 1 at x = 1 and 0, never negative, however far we go.
    one = torch.ones(1, 1, dtype=torch.float64)
    found = crossings(a=one, rate=one[0], v=one[0], y=one[0])
    assert found.all_at_once() == math.inf
    assert found.first().tolist() == [math.inf]


def test_the_worked_example_flips_where_the_closed_form_says() -> None:
    """§5.1's N': v_j = y_j, w_j = x_j/d, b = 0. Along z = Σ y_i x_i each sample's own neuron dies linearly and every
    neuron of the other class rises: y_i N'(x_i - y_i c z/‖z‖) = (1 - t)⁺ - t·d/2 with t = c/d, zero at t = 2/(d + 2).
    """
    d = 8
    x = math.sqrt(d) * torch.eye(d, dtype=torch.float64)
    y = torch.tensor([1.0] * (d // 2) + [-1.0] * (d // 2), dtype=torch.float64)
    net = TwoLayer(x[None] / d, x.new_zeros(1, d), y[None])
    found = probe(net, x, y, 1.1)
    assert bool(found.margin.all())
    assert found.c == pytest.approx(d * 2 / (d + 2), abs=1e-12)
    np.testing.assert_allclose(found.z.first(), found.c)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x, y, u = random_problem(0, 50, 20, 5)
    whole = along(net, x, y, u)
    monkeypatch.setattr(line, "CHUNK", 7 * 20)
    parts = along(net, x, y, u)
    assert torch.equal(whole.first(), parts.first())
    assert whole.all_at_once() == parts.all_at_once()
