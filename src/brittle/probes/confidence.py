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
    """What a swap does to a network. Confidence does not see a flipped label, and where it is near 1 it sees little."""

    before: float  # mean confidence
    after: float
    confidence: float  # mean |Δ confidence|
    logit: float  # mean |Δf| as a share of mean |f|: not hidden where the confidence is near 1
    flips: float  # the share of samples whose label changes


@dataclass(frozen=True)
class Contradiction:
    rest: Change  # all features but S tell the other label: a network that lives on S does not notice
    s: Change  # S tells the other label: it changes its mind, and is as sure as before


def change(before: Tensor, after: Tensor) -> Change:
    """From scores before a swap and after."""  # (n,), (n,)
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
    """The same donors, of the other label, give either set."""  # (n, d), (n,), (|S|, d)
    before, donors = evaluate(f, x), x[swapped(y, rng)]
    rest, s = (evaluate(f, exchange(x, donors, q_s)) for exchange in (randomise_rest, randomise_s))
    return Contradiction(rest=change(before, rest), s=change(before, s))
