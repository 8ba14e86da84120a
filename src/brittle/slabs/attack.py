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
from brittle.core.progress import bar
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.parse import family
from brittle.slabs import draws, groups, measures
from brittle.slabs.params import SlabsParams, Uap

SHORT = 0.8  # × the radius: where S has slabs, the next slab is nearer than the authors' radius
PGD_STEPS = 10  # for the per-sample perturbations whose singular vector is computed
POINTS, FEW = 13, 1000  # for a curve of accuracy against size: points, and test samples


def main(params: SlabsParams) -> None:
    p, how = params.slabs, params.slabs.uap
    where = device.pick(params.device)
    every = {world: [model for model in p.models if world in draws.worlds_of(p, model)] for world in p.worlds}
    rows, pairs, curves, vectors = [], [], [], []
    with bar(sum(map(len, every.values())), "attacking") as shown:
        for world, models in every.items():
            sample = draws.load_sample("slabs", world, p.d, where)
            x, y = sample.x[: how.samples], sample.y[: how.samples]
            eps = how.eps_linear if "lms" in world else how.eps_slab
            few, z = (sample.x_test[:FEW], sample.y_test[:FEW]), z_direction(sample.x, sample.y)
            fs, deltas = [], []
            for model in models:
                worlds, seeds = draws.worlds_of(p, model), draws.how(p, model).seeds
                trained = groups.load_groups(f"models/slabs/{model}.safetensors", [model], s=len(worlds) * len(seeds))
                f = measures.network(family(model, p.d), trained[model], worlds.index(world) * len(seeds), where)
                found = perturbations(f, x, y, eps, how)
                for method, delta in found.items():
                    rows.append(
                        {"model": model, "world": world, "method": method, "eps": float(delta.norm())}
                        | {"share": uap.share(delta, sample.q_s), "z_cosine": float(z @ delta / delta.norm())}
                        | {"accuracy": uap.accuracy(f, *few, delta)}
                    )
                    vectors.append(
                        pd.DataFrame(
                            {"model": model, "world": world, "method": method, "feature": range(p.d)}
                            | {"component": (sample.q @ delta).cpu().numpy()}
                        )
                    )
                fs.append(f)
                deltas.append(found["ascent"])
                shown.update(1)
            directions = {model: delta / delta.norm() for model, delta in zip(models, deltas, strict=True)}
            noise = torch.from_numpy(rng(0, "uap random").standard_normal(p.d)).float().to(where)
            directions |= {"random": noise / noise.norm(), "z": z}
            for f, model in zip(fs, models, strict=True):
                for size in np.linspace(0, 1.5 * eps, POINTS):
                    curves += [
                        {"model": model, "world": world, "direction": name, "size": size}
                        | {"accuracy": uap.accuracy(f, *few, float(size) * direction)}
                        for name, direction in (("own", directions[model]), *list(directions.items())[-2:])
                    ]
            on, cosines = uap.transfer(fs, deltas, *few), uap.cosines(deltas)
            pairs += [
                {"world": world, "of": of, "on": model, "accuracy": float(on[i, j]), "cosine": float(cosines[i, j])}
                for i, of in enumerate(models)
                for j, model in enumerate(models)
            ]
    store.save_table("plots/slabs_uap.csv", pd.DataFrame(rows))
    store.save_table("plots/slabs_uap_curves.csv", pd.DataFrame(curves))
    store.save_table("plots/slabs_uap_vectors.csv", pd.concat(vectors))
    store.save_table("plots/slabs_transfer.csv", pd.DataFrame(pairs))


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
