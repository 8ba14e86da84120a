"""How sparsely features reconstruct pictures and perturbations (FP §8.3, Fig 4 and 12)."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.attacks.image_pgd import strongest
from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.nets.image_layers import Layered
from brittle.pictures import cifar10_nets
from brittle.pictures.cifar10_params import Cifar10, Cifar10Params
from brittle.probes.lasso import Dictionary, alike, centred, errors_at, path, unreachable
from brittle.worlds.pixels import shown

FEATURES = {"random": "init", "clean": "clean", "robust": cifar10_nets.ROBUST, "control": "control"}
SPARSITY = 0.0405  # of FP Fig 4
BELOW = {
    ("random", "pictures"): ("clean", "pictures"),
    ("clean", "pictures"): ("robust", "pictures"),
    ("robust", "clean_delta"): ("robust", "robust_delta"),
}
MOST = 3000  # at most this many steps for one weight
ROWS = 500  # pictures evaluated at a time
SHOWN = 6  # reconstructions in the figure


def main(params: Cifar10Params) -> None:
    p = params.cifar10
    where = device.pick(params.device)
    _, test = cifar10_nets.first_pictures(p, where)
    rows, images = [], {}
    for net in p.nets:
        arrays = store.load_tensors(cifar10_nets.path(net), {})
        seed = p.seeds[0]
        of = {
            features: cifar10_nets.restored(net, arrays, f"{seed}.{name}", where) for features, name in FEATURES.items()
        }
        some = chosen(p, of["robust"], shown(test.x), test.y)
        targets = {"pictures": centred(some)}
        for name in ("clean", "robust"):  # against each network's own prediction, right or wrong
            draws = torch.Generator(where).manual_seed(0)
            delta = strongest(of[name], some, answers(of[name], some), *size(p), draws)
            targets[f"{name}_delta"] = alike(delta, centred(some))
        images |= {f"{net}.{name}": x[:SHOWN].cpu().numpy() for name, x in targets.items()}
        weights, found = sorted(p.lasso.weights), {}
        for features in tracked(of, f"Lasso, {net}"):
            first = of[features].convolutions[0]
            dictionary = Dictionary.unit(first.weight, first.stride[0], first.padding[0])
            # The control shows what further training does to features; perturbations need no such row.
            for name, x in targets.items() if features != "control" else [("pictures", targets["pictures"])]:
                curve = path(dictionary, x, weights, p.lasso.tolerance, MOST, keep=weights[len(weights) // 2])
                found[features, name] = errors_at(curve, SPARSITY)
                about = {"net": net, "features": features, "target": name, "pictures": len(x)}
                if (features, name) == ("robust", "clean_delta"):  # Remark 8.2: is it in the span at all?
                    about["unreachable"] = float(unreachable(dictionary, x).median())
                rows += [about | vars(point) for point in curve.points]
                images[f"{net}.{name}.{features}"] = curve.pictures[:SHOWN].cpu().numpy()
        for row in rows:
            if row["net"] == net:
                row["error_spread"] = paired(found, row["features"], row["target"])
    store.save_table("plots/cifar10_lasso.csv", pd.DataFrame(rows))
    store.save_tensors("data/cifar10_lasso.safetensors", images)


def paired(errors: dict[tuple[str, str], np.ndarray], features: str, target: str) -> float:
    """The standard error, at 4.05 %, of the mean difference between this curve and the one that is to be below it.

    It is over the same pictures: NaN if no curve is to be below, or one of the two does not reach this sparsity.
    """
    below = BELOW.get((features, target))
    if below is None:
        return math.nan
    difference = errors[features, target] - errors[below]
    return float(difference.std(ddof=1) / math.sqrt(len(difference))) if len(difference) > 1 else math.nan


def size(p: Cifar10) -> tuple[str, float, int, int]:
    """The norm and radius of the first attacker, and the steps and restarts of the search."""
    return *cifar10_nets.ball(p.attackers[0]), p.measure.steps, p.measure.restarts


def chosen(p: Cifar10, robust: Layered, x: Tensor, y: Tensor) -> Tensor:
    """The first pictures that the robust network classifies correctly (footnote 18); others if these are too few."""
    wrong = answers(robust, x) != y
    return x[wrong.long().sort(stable=True).indices[: p.lasso.pictures]]


def answers(net: Layered, x: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([net(some).argmax(1) for some in x.split(ROWS)])


if __name__ == "__main__":
    run(main, Cifar10Params)
