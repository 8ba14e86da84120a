"""How robust FP §8's networks are, and what their features and the perturbations against them look like."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.attacks.image_pgd import accuracy, strongest
from brittle.core import device, store
from brittle.core.progress import bar
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.image_layers import Layered
from brittle.pictures import cifar10_nets
from brittle.pictures.cifar10_params import Cifar10, Cifar10Params
from brittle.probes.image_statistics import densities, high_frequency, total_variation
from brittle.probes.theta import theta
from brittle.probes.visualise import excite
from brittle.worlds.pixels import shown

PATH = ("clean", cifar10_nets.ROBUST, "again")  # trained one after the other
SHOWN = ("init", "clean", cifar10_nets.ROBUST)  # networks whose features are visualised
PERTURBED = ("clean", "control", cifar10_nets.ROBUST)  # networks whose perturbations are measured
EXAMPLES = 6  # pictures in the figures


def main(params: Cifar10Params) -> None:
    p = params.cifar10
    where = device.pick(params.device)
    _, test = cifar10_nets.first_pictures(p, where)
    x, y = shown(test.x), test.y
    tables: dict[str, list[dict[str, object]]] = {
        name: [] for name in ("accuracy", "features", "path", "perturbations")
    }
    images: dict[str, np.ndarray] = {"examples": test.x[:EXAMPLES].cpu().numpy()}
    names = cifar10_nets.networks(p)
    with bar(len(p.nets) * len(p.seeds) * len(names), "probing CIFAR-10") as progress:
        for net in p.nets:
            arrays = store.load_tensors(cifar10_nets.path(net), {})
            for seed in p.seeds:
                about, first = {"net": net, "seed": seed}, seed == p.seeds[0]
                for name in names:
                    network = cifar10_nets.restored(net, arrays, f"{seed}.{name}", where)
                    about_it = about | {"network": name}
                    found, deltas = withstood(p, network, x, y)
                    tables["accuracy"] += [about_it | row for row in found]
                    filters = network.convolutions[0].weight.detach()
                    row = {"layer": 1, "high_frequency": high_frequency(filters), "variation": total_variation(filters)}
                    tables["features"].append(about_it | {"of": "filters"} | row)
                    if name in PERTURBED:
                        tables["perturbations"].append(about_it | perturbation(deltas))
                        images |= {f"{net}.delta.{name}": deltas[:EXAMPLES].cpu().numpy()} if first else {}
                    if name in SHOWN and first:
                        images[f"{net}.filters.{name}"] = filters.cpu().numpy()
                        for layer in cifar10_nets.within(net, p.visualise.layers):
                            seen = visualised(p, network, layer)
                            images[f"{net}.visualised.{name}.{layer}"] = seen.cpu().numpy()
                            row = {"layer": layer, "of": "visualised", "variation": total_variation(seen)}
                            tables["features"].append(about_it | row)
                    progress.update(1)
                tables["path"] += [about | row for row in along(arrays, seed)]
    for name, rows in tables.items():
        store.save_table(f"plots/cifar10_{name}.csv", pd.DataFrame(rows))
    for name, folder, columns, text in (
        ("activity", "cifar10_growth", ["seed", "epoch", "active"], ["network"]),
        ("theta", "cifar10_layers", ["seed", "layer", "median"], ["of"]),
        ("layers", "cifar10_layers_accuracy", ["seed", "layer", "robust"], ["network"]),
    ):
        store.save_table(f"plots/cifar10_{name}.csv", together(p, folder, columns, text))
    store.save_tensors("data/cifar10_shown.safetensors", images)
    store.save_metrics("metrics/cifar10.json", summary(p, pd.DataFrame(tables["accuracy"])))


def together(p: Cifar10, folder: str, columns: list[str], text: list[str]) -> pd.DataFrame:
    """The tables that stages wrote for each network, as one table."""
    parts = [store.load_table(f"plots/{folder}/{net}.csv", columns, text=text) for net in p.nets]
    return pd.concat([part.assign(net=net) for part, net in zip(parts, p.nets, strict=True)])


def withstood(p: Cifar10, net: Layered, x: Tensor, y: Tensor) -> tuple[list[dict[str, object]], Tensor]:
    """Accuracy without attack and under the strongest attack of each kind; and the first attacker's perturbations."""
    some, truth = x[: p.measure.pictures], y[: p.measure.pictures]
    clean, rows, kept = accuracy(net, x, y), [], None
    for name in p.attackers:
        norm, eps = cifar10_nets.ball(name)
        draws = torch.Generator(x.device).manual_seed(0)
        delta = strongest(net, some, truth, norm, eps, p.measure.steps, p.measure.restarts, draws)
        kept = delta if kept is None else kept
        rows.append({"attacker": name, "norm": norm, "eps": eps, "accuracy": clean})
        rows[-1] |= {"robust": accuracy(net, some, truth, delta)}
        rows[-1] |= {"samples": p.samples, "test": len(x), "attacked": len(some)}
    return rows, kept


def perturbation(deltas: Tensor) -> dict[str, float]:
    """How dense the perturbations are, for pictures that were classified correctly without them."""
    found = deltas[deltas.flatten(1).norm(dim=1) > 0]
    if len(found) == 0:
        return {"pictures": 0}
    return densities(found) | {"variation": total_variation(found), "pictures": len(found)}


def visualised(p: Cifar10, net: Layered, layer: int) -> Tensor:
    """The pictures that most excite the first neurons of a layer, each at the middle of its feature map."""
    v = p.visualise
    where = next(net.parameters()).device
    wanted = min(v.neurons, net.convolutions[layer - 1].out_channels)
    kept: list[Tensor] = []
    hook = net.convolutions[layer - 1].register_forward_hook(lambda _, __, out: kept.append(out.clone()))

    def feature(x: Tensor) -> Tensor:
        kept.clear()
        net(x)
        maps = kept[0]
        which = torch.arange(len(x), device=x.device)
        return maps[which, which, maps.shape[2] // 2, maps.shape[3] // 2]

    try:
        seen = excite(feature, (wanted, 3, 32, 32), v.steps, v.lr, v.decay, rng(0, f"layer {layer}"), device=where)
    finally:
        hook.remove()
    return seen


def along(arrays: dict[str, np.ndarray], seed: int) -> Iterator[dict[str, object]]:
    """The first layer's filters at every epoch: how close they are to the random, the clean and the robust ones."""
    paths = {name: torch.from_numpy(arrays[f"{seed}.path.{name}"]) for name in (*PATH, "control")}
    ends = {"init": paths["clean"][0]} | {name: paths[name][-1] for name in ("clean", cifar10_nets.ROBUST)}
    for name, path in paths.items():
        for epoch, filters in enumerate(path):
            row: dict[str, object] = {"network": name, "epoch": epoch}
            for end, others in ends.items():
                row[f"theta_{end}"] = float(theta(filters.flatten(1), others.flatten(1)).median())
            yield row | {"high_frequency": high_frequency(filters), "variation": total_variation(filters)}


def summary(p: Cifar10, table: pd.DataFrame) -> dict[str, float]:
    """The first attacker's row of FP's Table 1, for the first network."""
    some = (
        table[(table["net"] == p.nets[0]) & (table["attacker"] == p.attackers[0])]
        .groupby("network")
        .mean(numeric_only=True)
    )
    return {
        f"cifar10.{kind}.{name}": float(some.loc[name, column])
        for name in ("clean", cifar10_nets.ROBUST)
        for kind, column in (("accuracy", "accuracy"), ("robust_accuracy", "robust"))
    }


if __name__ == "__main__":
    run(main, Cifar10Params, threads=2)
