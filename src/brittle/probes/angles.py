"""How far two lists of directions in the plane are apart. (Without torch: verdicts are judged with it, in a second.)"""

from __future__ import annotations

import math


def apart(a: list[float], b: list[float]) -> float:
    """The largest angle between a direction of one list and the nearest one of the other, in degrees."""

    def from_nearest(angle: float, others: list[float]) -> float:
        return min(abs(math.remainder(angle - other, 360)) for other in others)

    return max(*(from_nearest(each, b) for each in a), *(from_nearest(each, a) for each in b))
