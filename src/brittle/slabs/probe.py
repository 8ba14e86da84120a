"""How far trained networks rely on the simple feature S and on all others (SB §4.2, Table 2 of the appendix, Fig 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pandas as pd
from torch import Tensor

from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.parse import family
from brittle.probes import boundary, confidence, randomised
from brittle.slabs import draws, groups, measures
from brittle.slabs.draws import Sample
from brittle.slabs.params import SlabsParams

BINS = 60  # of a histogram of logits
SOME = 500  # samples on which every feature is randomised alone
SIDE, BASES = 64, 8  # for the picture of a boundary: points per side, and samples that supply the other features


def main(params: SlabsParams) -> None:
    p = params.slabs
    where = device.pick(params.device)
    samples = {world: draws.load_sample("slabs", world, p.d, where) for world in p.worlds}
    rows, sure, features, logits, pictures = [], [], [], [], []
    for model in tracked(p.models, "probing"):
        worlds, seeds, net = draws.worlds_of(p, model), draws.how(p, model).seeds, family(model, p.d)
        path = f"models/slabs/{model}.safetensors"
        trained = groups.load_groups(path, [model], s=len(worlds) * len(seeds))[model]
        for w, world in enumerate(worlds):
            sample = samples[world]
            members = [w * len(seeds) + s for s in range(len(seeds))]
            fs = [measures.network(net, trained, i, where) for i in members]
            for i, f, seed in zip(members, fs, seeds, strict=True):
                about = {"model": model, "world": world, "seed": seed, "members": 1}
                versions = measures.drawn(f, sample, p.permutations, seed, list(randomised.VERSIONS))
                trained_for = trained.row(i)
                rows.append(about | trained_for | measures.row(versions, sample.y_test))
                sure.append(about | sureness(f, sample))
                single = singly(f, sample)
                grid = plane(f, sample, single.most_influential([0]), p.b)
                rows[-1] |= {"boundary_changes": grid.changes, "boundary_mixed": grid.mixed}
                if seed == seeds[0]:
                    features.append(pd.DataFrame(about | single_rows(single)))
                if seed == seeds[0] and model == p.models[0]:
                    logits.append(pd.DataFrame(about | histogram(versions, sample.y_test)))
                    pictures.append(pd.DataFrame(about | picture(grid)))
            for size in p.ensembles if model.startswith("fcn") else []:
                versions = measures.drawn(measures.average(fs[:size]), sample, p.permutations, seeds[0])
                about = {"model": model, "world": world, "seed": seeds[0], "members": size}
                rows.append(about | measures.row(versions, sample.y_test))
    table = pd.DataFrame(rows)
    store.save_table("plots/slabs_networks.csv", table)
    store.save_table("plots/slabs_confidence.csv", pd.DataFrame(sure))
    store.save_table("plots/slabs_features.csv", pd.concat(features))
    store.save_table("plots/slabs_logits.csv", pd.concat(logits))
    store.save_table("plots/slabs_boundary.csv", pd.concat(pictures))
    store.save_metrics("metrics/slabs.json", headline(table))


def headline(table: pd.DataFrame) -> dict[str, float]:
    """For each world, over single networks: the areas under the ROC curve that the paper's Table 1 reports."""
    alone = table[table["members"] == 1].groupby("world", sort=False)
    names = {"standard_auc_roc": "auc", "s_auc_roc": "s_randomised_auc", "rest_auc_roc": "rest_randomised_auc"}
    return {f"slabs.{w}.{short}": float(t[column].mean()) for w, t in alone for column, short in names.items()}


def sureness(f: Callable[[Tensor], Tensor], sample: Sample) -> dict[str, float]:
    """SB §1 (ii): confidence when one set of features is swapped across the labels."""
    change = confidence.contradicted(f, sample.x_test, sample.y_test, sample.q_s, rng(0, "contradiction"))
    return {f"{name}_{key}": value for name in ("rest", "s") for key, value in asdict(getattr(change, name)).items()}


def singly(f: Callable[[Tensor], Tensor], sample: Sample) -> randomised.Single:
    """The effect of randomising each feature alone."""
    return randomised.single(f, sample.x_test[:SOME], sample.y_test[:SOME], sample.q, rng(0, "single"))


def single_rows(found: randomised.Single) -> dict[str, object]:
    return {
        "feature": range(len(found.change)),
        "auc_roc": found.auc_roc.cpu().numpy(),
        "change": found.change.cpu().numpy(),
    }


def plane(f: Callable[[Tensor], Tensor], sample: Sample, feature: int, b: float) -> boundary.Boundary:
    """The boundary in the plane of S and another feature (Fig 3(c))."""
    return boundary.grid(f, sample.x_test[:BASES], sample.q, 0, feature, SIDE, -b, b)


def picture(grid: boundary.Boundary) -> dict[str, object]:
    """The share of the base samples on which each point of the plane is labelled positive."""
    ticks = grid.ticks.cpu().numpy()
    u, v = np.meshgrid(ticks, ticks, indexing="ij")
    share = grid.labels.double().mean(0).cpu().numpy()
    return {"simple": u.ravel(), "complex": v.ravel(), "positive": share.ravel()}


def histogram(versions: dict[str, randomised.Drawn], y: Tensor) -> dict[str, object]:
    """Histograms of the positives' logits, with the same bins for every version (Fig 3(a))."""
    logits = {name: each.values[y > 0].cpu().numpy() for name, each in versions.items()}
    edges = np.histogram_bin_edges(np.concatenate(list(logits.values())), BINS)
    shares = {name: np.histogram(values, edges)[0] / len(values) for name, values in logits.items()}
    return {"low": edges[:-1], "high": edges[1:]} | shares


if __name__ == "__main__":
    run(main, SlabsParams)
