"""How long a graph of stages takes on so many workers: the time left, and the estimate for many."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brittle.scale.estimate import critical_path, expected, makespan, tails


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[str, list[str]], dict[str, float]]:
    count = draw(st.integers(1, 8))
    names = [str(i) for i in range(count)]
    upstream = {
        name: draw(st.lists(st.sampled_from(names[:i]), unique=True)) if i else [] for i, name in enumerate(names)
    }
    return upstream, {name: draw(st.floats(0.1, 10)) for name in names}


@given(graphs(), st.integers(1, 4))
def test_a_schedule_lies_between_what_no_schedule_beats_and_graham_s_bound(
    graph: tuple[dict[str, list[str]], dict[str, float]], workers: int
) -> None:
    upstream, seconds = graph
    total, (longest, chain) = sum(seconds.values()), critical_path(upstream, seconds)
    assert longest == pytest.approx(sum(seconds[stage] for stage in chain))
    assert all(before in upstream[after] for before, after in pairwise(chain))
    taken = makespan(upstream, seconds, workers)
    assert taken >= max(longest, total / workers) - 1e-9
    assert taken <= total / workers + (1 - 1 / workers) * longest + 1e-9  # Graham 1969
    assert makespan(upstream, seconds, 1) == pytest.approx(total)
    assert makespan(upstream, seconds, len(seconds)) == pytest.approx(longest)


def test_the_longest_chain_goes_first_and_larger_cells_are_taken_for_longer() -> None:
    stages = ["train@10", "train@40", "attack@10", "attack@40", "train@cnn", "end"]
    assert expected(stages, {}, 8.0) == dict(zip(stages, [2, 8, 2, 8, 8, 8], strict=True))
    assert expected(stages, {"train@40": 20.0, "end": 4.0}, 8.0)["train@10"] == 3.0  # a quarter of 12, the mean
    upstream = {"a": [], "b": [], "c": ["a"], "d": ["b", "c"]}
    assert tails(upstream, {"a": 1.0, "b": 3.0, "c": 4.0, "d": 1.0}) == {"a": 6.0, "b": 4.0, "c": 5.0, "d": 1.0}


def test_what_runs_already_counts_with_what_it_still_needs() -> None:
    upstream = {"a": [], "b": ["a"], "c": []}
    assert makespan(upstream, {"a": 4.0, "b": 1.0, "c": 3.0}, 2, running={"a": 2.0}) == 3.0
    assert makespan({}, {}, 2) == 0.0
