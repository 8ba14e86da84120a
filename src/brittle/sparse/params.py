"""The section of "Feature Purification" (FP): the sparse coding model, what is trained on it, and how."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import model_validator

from brittle.core.params import (
    MOST,
    Rule,
    Section,
    TopLevel,
    cross,
    distinct_integers,
    distinct_numbers,
    integer,
    number,
    one_of,
)

POSITIVE = number("> 0", lambda v: v > 0)
NOT_NEGATIVE = number("≥ 0", lambda v: v >= 0)
SHARE = number("≥ 0 and < 1", lambda v: 0 <= v < 1)
SIZE = integer(1, 10**6)
STARTS = ("random", "pure")
TRAININGS, ALSO = ("clean", "fgm", "pgd"), ("pgd", "direct")
VARIANTS = ("spikes", "incoherent", "spread", "linf")


def any_of(*choices: str) -> Rule:
    return Rule(
        f"a list, which may be empty, of different ones of {', '.join(choices)}",
        lambda v: isinstance(v, list) and len(v) == len(set(map(str, v))) and set(map(str, v)) <= set(choices),
    )


def some_of(*choices: str) -> Rule:
    few = any_of(*choices)
    return Rule(f"a list of different ones of {', '.join(choices)}", lambda v: few.holds(v) and len(v) > 0)


class Descent(Section):
    steps: Annotated[int, SIZE]
    batch: Annotated[int, SIZE]
    lr: Annotated[float, POSITIVE]


class Lottery(Section):
    """The bias grows from b0 = bias σ0 √log d to until · b0, by growth/d per unit of time."""

    bias: Annotated[float, POSITIVE]
    growth: Annotated[float, POSITIVE]
    until: Annotated[float, number("> 1", lambda v: v > 1)]
    batch: Annotated[int, SIZE]
    lr: Annotated[float, POSITIVE]


class Random(Section):
    seeds: Annotated[list[int], distinct_integers(0)]
    neurons: Annotated[int, SIZE]
    scale: Annotated[float, POSITIVE]
    lottery: Lottery
    clean: Descent
    adversarial: Descent
    also: Annotated[list[str], any_of(*ALSO)]
    certified: Annotated[int, integer(0)]


class Pure(Section):
    seeds: Annotated[list[int], distinct_integers(0)]
    copies: Annotated[int, SIZE]
    size: Annotated[float, POSITIVE]
    noise: Annotated[float, NOT_NEGATIVE]
    bias: Annotated[float, POSITIVE]
    clean: Descent
    adversarial: Descent
    also: Annotated[list[str], any_of(*ALSO)]
    certified: Annotated[int, integer(0)]


class Linear(Section):
    epochs: Annotated[int, SIZE]
    lr: Annotated[float, POSITIVE]


class Ntk(Section):
    width: Annotated[int, SIZE]
    bias: Annotated[float, NOT_NEGATIVE]
    rho: Annotated[float, POSITIVE]
    epochs: Annotated[int, SIZE]
    lr: Annotated[float, POSITIVE]


class Polynomial(Section):
    degrees: Annotated[list[int], distinct_integers(2)]
    epochs: Annotated[int, SIZE]
    lr: Annotated[float, POSITIVE]


class Low(Section):
    samples: Annotated[int, SIZE]
    batch: Annotated[int, SIZE]
    trainings: Annotated[list[str], some_of(*TRAININGS)]
    linear: Linear
    ntk: Ntk
    polynomial: Polynomial


class Grid(Section):
    seeds: Annotated[list[int], distinct_integers(0)]
    ds: Annotated[list[int], distinct_integers(8)]
    ks: Annotated[list[int], distinct_integers(1)]
    kappa: Annotated[float, SHARE]
    variants: Annotated[list[str], any_of(*VARIANTS)]
    spikes: Annotated[float, POSITIVE]
    words: Annotated[float, number("> 1", lambda v: v > 1)]
    spread: Annotated[float, SHARE]
    random_ds: Annotated[list[int], distinct_integers(8)]


class Sparse(Section):
    d: Annotated[int, integer(8, 10**5)]
    words: Annotated[int, integer(8, 10**5)]
    dictionary: Annotated[str, one_of("orthogonal", "incoherent", "identity")]
    k: Annotated[int, integer(1)]
    c1: Annotated[float, POSITIVE]
    c2: Annotated[float, POSITIVE]
    sigma_x: Annotated[float, NOT_NEGATIVE]
    spikes: Annotated[float, NOT_NEGATIVE]
    spike_size: Annotated[float, SHARE]
    spread: Annotated[float, SHARE]
    margin: Annotated[float, NOT_NEGATIVE]
    seed: Annotated[int, integer(0)]
    test: Annotated[int, integer(10, 10**7)]
    tau: Annotated[float, POSITIVE]
    taus: Annotated[list[float], distinct_numbers("> 0", lambda v: v > 0)]
    linf: Annotated[list[float], distinct_numbers("> 0", lambda v: v > 0)]
    momentum: Annotated[float, SHARE]
    decay: Annotated[float, NOT_NEGATIVE]
    rho: Annotated[float, SHARE]
    pgd: Annotated[int, integer(2)]
    starts: Annotated[list[str], some_of(*STARTS)]
    random: Random
    pure: Pure
    low: Low
    grid: Grid

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.dictionary != "incoherent" and self.words > self.d:
            raise cross("sparse.words", self.words, f"must be ≤ d = {self.d} unless the dictionary is incoherent")
        g = self.grid
        sizes = [("sparse.k", self.k, self.words), *(("sparse.grid.ks", k, self.words) for k in g.ks)]
        for d in (*g.ds, *g.random_ds):
            sizes.append(("sparse.grid.ds", round(self.k * (d / self.d) ** g.kappa), d * self.words / self.d))
        for key, k, words in sizes:
            if self.c1 + self.c2 * k > 0.5 * words:
                raise cross(key, k, f"must be smaller: c1 + c2 k words of a sample must be a minority of D = {words:g}")
        if self.margin > self.c1 + self.c2 * self.k:
            raise cross("sparse.margin", self.margin, "must be smaller: hardly a sample would pass the filter")
        if self.tau not in self.taus:
            raise cross("sparse.taus", self.taus, f"must contain tau = {self.tau}")
        if self.test * self.d > MOST or self.random.neurons * self.d > MOST:
            raise cross("sparse.d", self.d, f"must be smaller: samples and weights have at most {MOST} numbers each")
        return self


class SparseParams(TopLevel):
    sparse: Sparse
