"""How sparsely features reconstruct pictures and perturbations (FP §8.3, Fig 4 and 12)."""

from __future__ import annotations

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
from brittle.probes.lasso import Dictionary, alike, centred, path, unreachable
from brittle.worlds.pixels import shown

FEATURES = {"random": "init", "clean": "clean", "robust": cifar10_nets.ROBUST, "control": "control"}
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
        weights = sorted(p.lasso.weights)
        for features in tracked(of, f"Lasso, {net}"):
            first = of[features].convolutions[0]
            dictionary = Dictionary.unit(first.weight, first.stride[0], first.padding[0])
            # The control shows what further training does to features; perturbations need no such row.
            for name, x in targets.items() if features != "control" else [("pictures", targets["pictures"])]:
                curve = path(dictionary, x, weights, p.lasso.tolerance, MOST, keep=weights[len(weights) // 2])
                about = {"net": net, "features": features, "target": name, "pictures": len(x)}
                if (features, name) == ("robust", "clean_delta"):  # Remark 8.2: is it in the span at all?
                    about["unreachable"] = float(unreachable(dictionary, x).median())
                rows += [about | vars(point) for point in curve.points]
                images[f"{net}.{name}.{features}"] = curve.pictures[:SHOWN].cpu().numpy()
    store.save_table("plots/cifar10_lasso.csv", pd.DataFrame(rows))
    store.save_tensors("data/cifar10_lasso.safetensors", images)


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
    run(main, Cifar10Params, threads=2)
