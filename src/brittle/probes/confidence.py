"""How sure a network is when its features contradict each other (SB §1 (ii)): one set is swapped across the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from brittle.probes.randomised import evaluate, randomise_rest, randomise_s, swapped


def confidence(values: Tensor) -> Tensor:
    """max(σ(f), σ(-f)), the probability that the network gives to its own label."""  # (n,) -> (n,)
    return values.abs().sigmoid()


@dataclass(frozen=True)
class Change:
    """What a swap does to a network. Confidence does not show a flipped label, and near 1 it shows little."""

    before: float  # mean confidence
    after: float
    confidence: float  # mean |Δ confidence|
    logit: float  # mean |Δf| as a share of mean |f|: not hidden where the confidence is near 1
    flips: float  # the share of samples whose label changes


@dataclass(frozen=True)
class Contradiction:
    rest: Change  # all features but S indicate the other label: a network that relies on S alone does not notice
    s: Change  # S indicates the other label: such a network changes its label and is as confident as before


def change(before: Tensor, after: Tensor) -> Change:
    """The change between the scores before a swap and after it."""  # (n,), (n,)
    sure, then = confidence(before), confidence(after)
    return Change(
        before=float(sure.mean()),
        after=float(then.mean()),
        confidence=float((then - sure).abs().mean()),
        logit=float((after - before).abs().mean() / before.abs().mean()),
        flips=float(((before > 0) != (after > 0)).double().mean()),
    )


def contradicted(
    f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, q_s: Tensor, rng: np.random.Generator
) -> Contradiction:
    """The changes when either set comes from the same donors, of the other label."""  # (n, d), (n,), (|S|, d)
    before, donors = evaluate(f, x), x[swapped(y, rng)]
    rest, s = (evaluate(f, exchange(x, donors, q_s)) for exchange in (randomise_rest, randomise_s))
    return Contradiction(rest=change(before, rest), s=change(before, s))
