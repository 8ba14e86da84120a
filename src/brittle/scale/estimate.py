"""Estimate how long a graph of stages takes on a number of workers: a greedy schedule, and the critical path."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

Upstream = Mapping[str, Sequence[str]]  # the stages that each stage waits for, in an order in which they can run


def critical_path(upstream: Upstream, seconds: Mapping[str, float]) -> tuple[float, list[str]]:
    """How long the longest chain of stages that wait for one another takes, and the chain."""
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
    """For each stage, the stages that wait for it."""
    feeds: dict[str, list[str]] = {stage: [] for stage in upstream}
    for stage, needed in upstream.items():
        for other in needed:
            if other in feeds:
                feeds[other].append(stage)
    return feeds


def tails(upstream: Upstream, seconds: Mapping[str, float]) -> dict[str, float]:
    """For each stage, the length of the longest chain that begins with it: the longer, the sooner it should run."""
    feeds, tail = fed(upstream), {}
    for stage in reversed(list(upstream)):
        tail[stage] = seconds[stage] + max((tail[other] for other in feeds[stage]), default=0.0)
    return tail


def expected(stages: Sequence[str], times: Mapping[str, float], guess: float) -> dict[str, float]:
    """Expected seconds of each stage: as last time, or the mean of the others, scaled by the size of a grid's cell."""
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
    upstream: Upstream, seconds: Mapping[str, float], places: int, running: Mapping[str, float] | None = None
) -> float:
    """When the last stage ends if the ready stage that starts the longest chain always goes next.

    (Graham's list schedule: at most twice the best possible.) `running` maps stages under way to the time they still
    need; stages that are done are not in `upstream`.
    """
    running = running or {}
    feeds, tail = fed(upstream), tails(upstream, seconds)
    waits = {stage: {other for other in needed if other in upstream} for stage, needed in upstream.items()}
    now, busy = 0.0, [(left, stage) for stage, left in running.items()]
    heapq.heapify(busy)
    ready = [(-tail[stage], stage) for stage in upstream if not waits[stage] and stage not in running]
    heapq.heapify(ready)
    free = max(1, places) - len(running)
    while busy or ready:
        while ready and free >= 1:
            _, stage = heapq.heappop(ready)
            free -= 1
            heapq.heappush(busy, (now + seconds[stage], stage))
        now, ended = heapq.heappop(busy)
        free += 1
        for stage in feeds[ended]:
            waits[stage].discard(ended)
            if not waits[stage]:
                heapq.heappush(ready, (-tail[stage], stage))
    return now
