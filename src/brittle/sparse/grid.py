"""The sparse coding model at other sizes and in other versions: which of the theorems' o(1) terms shrink, and how fast.

Training starts from pure features at every d and k, with and without the margin filter, and in versions of the world
(spike noise, more words than dimensions, uneven labellings, l∞); and from random weights at some d. The number of steps
grows like d and the number k of words in a sample like d^κ; radii shrink like 1/√k (Theorem 5.3) and the final bias
like 1/√d, as does the window that it has to be in (docs/sparse.md).

While the bias grows, a step of it is in proportion to η/d. With the same η at every d it would pass σ0 in ever more
steps, against the same memory of momentum: more neurons would win, and each stay smaller. So η grows like d there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from brittle.attacks import softened_pgd
from brittle.attacks.fgm import Attack
from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.probes.mixture import decompose, mixture
from brittle.probes.theta import correlated, local, moved, theta, theta_pairs, turned
from brittle.sparse import schedules
from brittle.sparse.params import Sparse, SparseParams
from brittle.sparse.settings import Setting
from brittle.sparse.world import draw_world
from brittle.train import purify
from brittle.train.purify import drawn

ATTACKED = 500  # test samples under attack


class Varied:
    """Parameters with some values replaced."""

    def __init__(self, base: Any, **changes: Any) -> None:
        self._base, self._changes = base, changes

    def __getattr__(self, name: str) -> Any:
        return self._changes[name] if name in self._changes else getattr(self._base, name)


@dataclass(frozen=True)
class Cell:
    of: str  # what is varied
    start: str
    p: Sparse
    seed: int = 0
    norm: str = "l2"


def main(params: SparseParams) -> None:
    where = device.pick(params.device)
    rows = [measured(cell, where) for cell in tracked(list(cells(params.sparse)), "the grid")]
    store.save_table("plots/sparse_grid.csv", pd.DataFrame(rows))


def cells(p: Sparse) -> Iterator[Cell]:
    g, filters = p.grid, dict.fromkeys((p.margin, 0.0))
    first = g.seeds[0]
    for d in g.ds:
        for margin in filters:
            at = sized(p, d, k_at(p, d), margin=margin)
            yield from (Cell("d", "pure", at, seed) for seed in g.seeds)
    for k in g.ks:
        yield Cell("k", "pure", sized(p, p.d, k), first)
    changes: dict[str, dict[str, Any]] = {
        "spikes": {"spikes": g.spikes},
        "incoherent": {"dictionary": "incoherent", "words": round(g.words * p.d)},
        "spread": {"spread": g.spread},
    }
    for name in g.variants:
        if name == "linf":  # small ‖M‖₁ and ‖M‖∞, as Theorem 5.4 assumes
            for margin in filters:
                at = sized(p, p.d, p.k, dictionary="identity", words=p.d, margin=margin)
                yield from (Cell(name, "pure", Varied(at, tau=p.k**-power), first, "linf") for power in p.linf)
        else:
            yield Cell(name, "pure", sized(p, p.d, p.k, **changes[name]), first)
    for d in g.random_ds:
        yield from (Cell("d", "random", sized(p, d, k_at(p, d)), seed) for seed in g.seeds)


def k_at(p: Sparse, d: int) -> int:
    """The sparsity k in d dimensions."""
    return max(1, round(p.k * (d / p.d) ** p.grid.kappa))


def sized(p: Sparse, d: int, k: int, **changes: Any) -> Sparse:
    """The parameters at another d and k."""
    longer, shorter, lottery = d / p.d, math.sqrt(p.k / k), p.random.lottery
    narrower = math.sqrt(longer * math.log(d) / math.log(p.d))  # b0 grows like √log d, the final bias falls like 1/√d
    lottery = Varied(lottery, lr=lottery.lr * longer, until=max(1.0, lottery.until / narrower))

    def descent(how: Any) -> Any:
        return Varied(how, steps=math.ceil(how.steps * longer))

    def start(how: Any, **more: Any) -> Any:
        return Varied(how, clean=descent(how.clean), adversarial=descent(how.adversarial), also=[], **more)

    return Varied(
        p,
        d=d,
        k=k,
        tau=p.tau * shorter,
        **({"words": round(p.words * longer)} | changes),
        pure=start(p.pure, bias=p.pure.bias / math.sqrt(longer)),
        random=start(p.random, neurons=math.ceil(p.random.neurons * longer), lottery=lottery),
    )


def measured(cell: Cell, where: torch.device) -> dict[str, object]:
    """Train one network cleanly and adversarially; return all measurements as one row."""
    p, tau, seed = cell.p, cell.p.tau, cell.seed
    world, rules = draw_world(p), schedules.rules(p, p.d)
    setting = Setting.of(world, *drawn(world, p.test, rng(p.seed, "sparse test"), where))
    state, nets = schedules.begin(p, world, cell.start, seed, where), {}
    for job in schedules.jobs(p, cell.start, Attack(cell.norm, tau)):
        purify.run(state, world, job.stretch, rules, seed, f"sparse {job.name}")
        nets[job.name] = state.net(rules)
        start, state = state.start, state.then()
    clean, robust = nets["clean"], nets["robust"]
    row: dict[str, object] = {"of": cell.of, "start": cell.start, "seed": seed, "norm": cell.norm, "d": p.d}
    row |= {
        "k": p.k,
        "words": p.words,
        "margin": p.margin,
        "tau": tau,
        "attacked": min(ATTACKED, p.test),
        "test": p.test,
        "steps": job.stretch.steps,
        "predicted": world.words_on() / p.words,
    }
    for name, net in (("clean", clean), ("robust", robust)):
        few = setting.first(ATTACKED)
        neurons = decompose(net.w, setting.dictionary, setting.w_star)
        found = mixture(neurons, net.w, setting.dictionary, setting.w_star)
        found |= {"accuracy": setting.accuracy(net), "correlated": correlated(net.w)}
        found |= {"moved": moved(net.w, start)}
        deltas = few.perturbed(net, cell.norm, tau, softened_pgd.soft(net))
        found |= {attack: few.accuracy(net, delta) for attack, delta in deltas.items()}
        row |= {f"{name}_{key}": value for key, value in found.items()}
    row |= {"local": local(clean.w, robust.w), "turned": turned(clean.w, robust.w)}
    pairs = {"start_clean": (start, clean.w), "start_robust": (start, robust.w), "clean_robust": (clean.w, robust.w)}
    row |= {f"theta_{name}": float(theta(*pair).median()) for name, pair in pairs.items()}
    return row | {"theta_pairs": float(theta_pairs(clean.w).median())}


if __name__ == "__main__":
    run(main, SparseParams)
