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


def makespan(
    upstream: Upstream, seconds: Mapping[str, float], workers: int, running: Mapping[str, float] | None = None
) -> float:
    """When the last stage ends if a free worker always takes the ready stage that the longest chain hangs on.

    (Graham's list schedule: at most twice the best possible.) `running` are stages under way, with the time they still
    need; stages that are done are left out of `upstream`.
    """
    running = running or {}
    waits = {stage: {other for other in needed if other in upstream} for stage, needed in upstream.items()}
    feeds: dict[str, list[str]] = {stage: [] for stage in upstream}
    for stage, needed in waits.items():
        for other in needed:
            feeds[other].append(stage)
    tail: dict[str, float] = {}
    for stage in reversed(list(upstream)):
        tail[stage] = seconds[stage] + max((tail[other] for other in feeds[stage]), default=0.0)

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
