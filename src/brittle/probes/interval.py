"""How well a mean over seeds is known."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import stdtrit


def interval(values: Iterable[float]) -> tuple[float, float]:
    """The mean and half the width of its 95 % confidence interval, by Student's t; nan for a single value."""
    each = np.asarray(list(values), dtype=float)
    if len(each) < 2:
        return float(each.mean()), math.nan
    t = stdtrit(len(each) - 1, 0.975)
    return float(each.mean()), float(t * each.std(ddof=1) / math.sqrt(len(each)))
