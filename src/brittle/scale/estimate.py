"""How long a graph of stages takes on so many workers: a greedy schedule, and the longest chain no number can beat."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

Upstream = Mapping[str, Sequence[str]]  # of each stage, in an order in which they can run


def critical_path(upstream: Upstream, seconds: Mapping[str, float]) -> tuple[float, list[str]]:
    """The longest chain of stages that wait for one another, and how long it takes."""
    ends: dict[str, float] = {}
    before: dict[str, str | None] = {}
    for stage, needed in upstream.items():
        before[stage] = max(needed, key=ends.__getitem__, default=None)
        ends[stage] = seconds[stage] + (ends[before[stage]] if before[stage] else 0.0)
    stage = max(ends, key=ends.__getitem__, default=None)
    length, chain = ends.get(stage, 0.0), []
    while stage is not None:
        chain.append(stage)
        stage = before[stage]
    return length, chain[::-1]


def fed(upstream: Upstream) -> dict[str, list[str]]:
    """The stages that wait for each."""
    feeds: dict[str, list[str]] = {stage: [] for stage in upstream}
    for stage, needed in upstream.items():
        for other in needed:
            if other in feeds:
                feeds[other].append(stage)
    return feeds


def tails(upstream: Upstream, seconds: Mapping[str, float]) -> dict[str, float]:
    """The longest chain that begins with each stage: the longer, the sooner it should run."""
    feeds, tail = fed(upstream), {}
    for stage in reversed(list(upstream)):
        tail[stage] = seconds[stage] + max((tail[other] for other in feeds[stage]), default=0.0)
    return tail


def expected(stages: Sequence[str], times: Mapping[str, float], guess: float) -> dict[str, float]:
    """Seconds of each stage: as last time, or as the others on average, and the larger a grid's cell the longer."""
    known = [times[stage] for stage in stages if stage in times]
    typical = sum(known) / len(known) if known else guess
    largest: dict[str, float] = {}
    for stage in stages:
        group, _, cell = stage.partition("@")
        if cell.isdecimal():
            largest[group] = max(largest.get(group, 1.0), float(cell))
    return {
        stage: times.get(stage, typical * float(cell) / largest[group] if cell.isdecimal() else typical)
        for stage, (group, _, cell) in ((stage, stage.partition("@")) for stage in stages)
    }


def makespan(
    upstream: Upstream, seconds: Mapping[str, float], workers: int, running: Mapping[str, float] | None = None
) -> float:
    """When the last stage ends if a free worker always takes the ready stage that the longest chain hangs on.

    (Graham's list schedule: at most twice the best possible.) `running` are stages under way, with the time they still
    need; stages that are done are left out of `upstream`.
    """
    running = running or {}
    feeds, tail = fed(upstream), tails(upstream, seconds)
    waits = {stage: {other for other in needed if other in upstream} for stage, needed in upstream.items()}
    now, busy = 0.0, [(left, stage) for stage, left in running.items()]
    heapq.heapify(busy)
    ready = [(-tail[stage], stage) for stage in upstream if not waits[stage] and stage not in running]
    heapq.heapify(ready)
    while busy or ready:
        while ready and len(busy) < max(1, workers):
            _, stage = heapq.heappop(ready)
            heapq.heappush(busy, (now + seconds[stage], stage))
        now, ended = heapq.heappop(busy)
        for stage in feeds[ended]:
            waits[stage].discard(ended)
            if not waits[stage]:
                heapq.heappush(ready, (-tail[stage], stage))
    return now
