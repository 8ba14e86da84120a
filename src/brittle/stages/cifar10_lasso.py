"""How sparsely features reconstruct pictures and perturbations (FP §8.3, Fig 4 and 12)."""

from __future__ import annotations

import pandas as pd
import torch
from torch import Tensor

from brittle import device, store
from brittle.attacks.pictures import strongest
from brittle.nets.pictures import Layered
from brittle.params.cifar10 import Cifar10, Cifar10Params
from brittle.probes.lasso import Dictionary, alike, centred, path, unreachable
from brittle.stages import cifar10_nets as nets
from brittle.stages import pictures
from brittle.stages.progress import tracked
from brittle.stages.run import run
from brittle.train.pictures import shown

FEATURES = {"random": "init", "clean": "clean", "robust": nets.ROBUST, "control": "control"}
MOST = 3000  # steps for one weight
ROWS = 500  # pictures evaluated at a time
SHOWN = 6  # reconstructions in the figure


def main(params: Cifar10Params) -> None:
    p = params.cifar10
    where = device.pick(params.device)
    _, test = nets.load(p, where)
    rows, images = [], {}
    for net in p.nets:
        arrays = store.load_tensors(nets.path(net), {})
        seed = p.seeds[0]
        of = {
            features: pictures.take(nets.build(net, where), arrays, f"{seed}.{name}", nets.path(net))
            for features, name in FEATURES.items()
        }
        some = chosen(p, of["robust"], shown(test.x), test.y)
        targets = {"pictures": centred(some)}
        for name in ("clean", "robust"):  # against each network's own answer, right or wrong
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
    """The first attacker's ball, and how it is searched."""
    return *nets.ball(p.attackers[0]), p.measure.steps, p.measure.restarts


def chosen(p: Cifar10, robust: Layered, x: Tensor, y: Tensor) -> Tensor:
    """The first pictures that the robust network labels right (footnote 18); others only if there are too few."""
    wrong = answers(robust, x) != y
    return x[wrong.long().sort(stable=True).indices[: p.lasso.pictures]]


def answers(net: Layered, x: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([net(some).argmax(1) for some in x.split(ROWS)])


if __name__ == "__main__":
    run(main, Cifar10Params, threads=2)
