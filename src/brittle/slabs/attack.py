"""Universal perturbations of the networks trained on slabs: their share on S, and their transfer to others (Fig 4)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.attacks import uap
from brittle.attacks.pgd import pgd
from brittle.attacks.pieces import l2_normalise
from brittle.attacks.universal import z_direction
from brittle.core import device, store
from brittle.core.progress import Bar, bar
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.parse import family
from brittle.slabs import draws, groups, measures
from brittle.slabs.draws import Sample
from brittle.slabs.params import Slabs, SlabsParams, Uap

SHORT = 0.8  # × the radius: where S has slabs, the next slab is nearer than the authors' radius
PGD_STEPS = 10  # for the per-sample perturbations whose singular vector is computed
POINTS, FEW = 13, 1000  # for a curve of accuracy against size: points, and test samples


def main(params: SlabsParams) -> None:
    p = params.slabs
    where = device.pick(params.device)
    every = [(world, seed, models) for world in p.worlds for seed, models in same_seed(p, world).items()]
    tables: dict[str, list[pd.DataFrame]] = {}
    with bar(sum(len(models) for *_, models in every), "attacking") as shown:
        for world, seed, models in every:
            sample = draws.load_sample("slabs", world, p.d, where)
            fs = {model: network(p, model, world, seed, where) for model in models}
            for name, table in attacked(p.uap, sample, world, fs, shown).items():
                tables.setdefault(name, []).append(table.assign(seed=seed))
    for name, parts in tables.items():
        store.save_table(f"plots/{name}.csv", pd.concat(parts))


def same_seed(p: Slabs, world: str) -> dict[int, list[str]]:
    """The models of a world that have a network of each seed: it is they that are compared with each other."""
    found: dict[int, list[str]] = {}
    for model in p.models:
        for seed in draws.how(p, model).seeds if world in draws.worlds_of(p, model) else ():
            found.setdefault(seed, []).append(model)
    return found


def network(p: Slabs, model: str, world: str, seed: int, where: torch.device) -> Callable[[Tensor], Tensor]:
    worlds, seeds = draws.worlds_of(p, model), draws.how(p, model).seeds
    trained = groups.load_groups(f"models/slabs/{model}.safetensors", [model], s=len(worlds) * len(seeds))
    i = worlds.index(world) * len(seeds) + seeds.index(seed)
    return measures.network(family(model, p.d), trained[model], i, where)


def attacked(
    how: Uap, sample: Sample, world: str, fs: dict[str, Callable[[Tensor], Tensor]], shown: Bar
) -> dict[str, pd.DataFrame]:
    """The tables about networks of one world: their perturbations, and how each other's and other directions do."""
    x, y, d = sample.x[: how.samples], sample.y[: how.samples], sample.x.shape[1]
    eps = how.eps_linear if "lms" in world else how.eps_slab
    few, z = (sample.x_test[:FEW], sample.y_test[:FEW]), z_direction(sample.x, sample.y)
    rows, vectors, curves, deltas = [], [], [], {}
    for model, f in fs.items():
        found = perturbations(f, x, y, eps, how)
        for method, delta in found.items():
            about = {"model": model, "world": world, "method": method}
            rows.append(
                about
                | {"eps": float(delta.norm()), "share": uap.share(delta, sample.q_s)}
                | {"z_cosine": float(z @ delta / delta.norm()), "accuracy": uap.accuracy(f, *few, delta)}
            )
            component = (sample.q @ delta).cpu().numpy()
            vectors.append(pd.DataFrame(about | {"feature": range(d), "component": component}))
        deltas[model] = found["ascent"]
        shown.update(1)
    noise = torch.from_numpy(rng(0, "uap random").standard_normal(d)).float().to(x.device)
    for model, f in fs.items():
        directions = {"own": deltas[model] / deltas[model].norm(), "random": noise / noise.norm(), "z": z}
        for size in np.linspace(0, 1.5 * eps, POINTS):
            curves += [
                {"model": model, "world": world, "direction": name, "size": size}
                | {"accuracy": uap.accuracy(f, *few, float(size) * direction)}
                for name, direction in directions.items()
            ]
    on, cosines = uap.transfer(list(fs.values()), list(deltas.values()), *few), uap.cosines(list(deltas.values()))
    pairs = [
        {"world": world, "of": of, "on": model, "accuracy": float(on[i, j]), "cosine": float(cosines[i, j])}
        for i, of in enumerate(fs)
        for j, model in enumerate(fs)
    ]
    return {
        "slabs_uap": pd.DataFrame(rows),
        "slabs_uap_curves": pd.DataFrame(curves),
        "slabs_uap_vectors": pd.concat(vectors),
        "slabs_transfer": pd.DataFrame(pairs),
    }


def perturbations(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, eps: float, how: Uap) -> dict[str, Tensor]:
    """The universal perturbation by every method, each (d,)."""
    steps = (how.step, how.steps, how.epochs, len(x))
    found = {
        name: uap.by_ascent(f, x, y, "l2", radius, *steps, rng(0, "uap"))
        for name, radius in (("ascent", eps), ("short", SHORT * eps))
    }
    return found | {"svd": eps * uap.by_svd(l2_normalise(pgd(f, x, y, "l2", eps, PGD_STEPS)), y)}


if __name__ == "__main__":
    run(main, SlabsParams)
