"""How robust FP §8's networks are, and what their features and the perturbations against them look like."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from brittle.attacks.image_pgd import ROWS, Attacker, accuracy, fixed, strongest
from brittle.attacks.image_pgd import named as attacker_named
from brittle.core import device, store
from brittle.core.progress import bar
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.image_layers import Layered
from brittle.pictures import cifar10_nets
from brittle.pictures.cifar10_params import Cifar10, Cifar10Params
from brittle.probes.image_statistics import high_frequencies, spreads, total_variations
from brittle.probes.lasso import centred
from brittle.probes.summary import resampled
from brittle.probes.theta import theta
from brittle.probes.visualise import GREY, excite
from brittle.worlds.pixels import shown

PATH = ("clean", cifar10_nets.ROBUST, "again")  # trained one after the other
SHOWN = ("init", "clean", "control", cifar10_nets.ROBUST)  # networks whose features are visualised
ALONE = ("init", "clean", "robust")  # of §8.2's, too
PERTURBED = ("clean", "control", cifar10_nets.ROBUST)  # networks whose perturbations are measured
EXAMPLES = 6  # pictures in the figures
FILTERS = 8  # filters of the first layer shown along training
OWN_STEPS = {"l2": 4, "linf": 7}  # of the paper's own attackers (§8, footnote 14)
OWN_COPIES = 2

Rows = list[dict[str, object]]


def main(params: Cifar10Params) -> None:
    p = params.cifar10
    where = device.pick(params.device)
    _, test = cifar10_nets.first_pictures(p, where)
    x, y = shown(test.x), test.y
    tables: dict[str, Rows] = {name: [] for name in ("accuracy", "features", "path", "perturbations")}
    images: dict[str, np.ndarray] = {"examples": test.x[:EXAMPLES].cpu().numpy()}
    names = cifar10_nets.networks(p)
    with bar(len(p.nets) * (len(p.seeds) * len(names) + 1), "probing CIFAR-10") as progress:
        for net in p.nets:
            arrays = store.load_tensors(cifar10_nets.path(net), {})
            for seed in p.seeds:
                about, first = {"net": net, "seed": seed}, seed == p.seeds[0]
                some = x[: p.measure.pictures]
                tables["perturbations"].append(about | {"network": "pictures"} | perturbation(centred(some)))
                for name in names:
                    network = cifar10_nets.restored(net, arrays, f"{seed}.{name}", where)
                    about_it = about | {"network": name}
                    found, deltas = withstood(p, network, x, y)
                    tables["accuracy"] += [about_it | row for row in found]
                    filters = network.convolutions[0].weight.detach()
                    tables["features"].append(about_it | {"of": "filters", "layer": 1} | roughness(filters))
                    if name in PERTURBED:
                        tables["perturbations"].append(about_it | perturbation(deltas))
                        images |= {f"{net}.delta.{name}": deltas[:EXAMPLES].cpu().numpy()} if first else {}
                    if name in SHOWN and first:
                        images[f"{net}.filters.{name}"] = filters.cpu().numpy()
                        for layer in cifar10_nets.within(net, p.visualise.layers):
                            seen = visualised(p, network, layer)
                            images[f"{net}.visualised.{name}.{layer}"] = seen.cpu().numpy()
                            row = {"layer": layer, "of": "visualised"} | of_pictures(seen)
                            tables["features"].append(about_it | row)
                    progress.update(1)
                tables["path"] += [about | row for row in along(arrays, seed)]
            images |= pictured(p, net, arrays, where)
            progress.update(1)
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


def pictured(p: Cifar10, net: str, arrays: dict[str, np.ndarray], where: torch.device) -> dict[str, np.ndarray]:
    """What only figures show: filters along training (Fig 8, 9), features of other networks (Fig 6, 11, 13)."""
    seed, layers = p.seeds[0], cifar10_nets.within(net, p.visualise.layers)
    found = {f"{net}.along.{name}": arrays[f"{seed}.path.{name}"][:, :FILTERS] for name in PATH}
    alone = store.load_tensors(cifar10_nets.layers_path(net), {})
    numbers = [number for number in cifar10_nets.within(net, p.layers.numbers) if number > 1]
    for number in numbers:
        for name in ALONE:
            network = cifar10_nets.restored(net, alone, f"{seed}.{number}.{name}", where)
            found[f"{net}.alone.{name}.{number}"] = visualised(p, network, number).cpu().numpy()
            if number == numbers[-1]:  # Fig 6: towards black instead of grey (footnote 16)
                found[f"{net}.black.{name}.{number}"] = visualised(p, network, number, rest=0.0).cpu().numpy()
    layer = layers[len(layers) // 2]
    for attacker in p.attackers[1:]:  # of the first, `robust` has been visualised already
        network = cifar10_nets.restored(net, arrays, f"{seed}.{attacker}.clean", where)
        found[f"{net}.visualised.{attacker}.clean.{layer}"] = visualised(p, network, layer).cpu().numpy()
    return found


def together(p: Cifar10, folder: str, columns: list[str], text: list[str]) -> pd.DataFrame:
    """The tables that stages wrote for each network, as one table."""
    parts = [store.load_table(f"plots/{folder}/{net}.csv", columns, text=text) for net in p.nets]
    return pd.concat([part.assign(net=net) for part, net in zip(parts, p.nets, strict=True)])


def withstood(p: Cifar10, net: Layered, x: Tensor, y: Tensor) -> tuple[Rows, Tensor]:
    """Accuracy without attack, under the strongest attack of each kind, and under the attacker as the paper has it.

    Also the first attacker's strongest perturbations.
    """
    some, truth = x[: p.measure.pictures], y[: p.measure.pictures]
    clean, rows, kept = accuracy(net, x, y), [], None
    for name in p.attackers:
        norm, eps = cifar10_nets.ball(name)
        draws = torch.Generator(x.device).manual_seed(0)
        delta = strongest(net, some, truth, norm, eps, p.measure.steps, p.measure.restarts, draws)
        kept = delta if kept is None else kept
        own = attacker_named(name, OWN_STEPS[norm], OWN_COPIES)
        rows.append({"attacker": name, "norm": norm, "eps": eps, "accuracy": clean})
        rows[-1] |= {"robust": accuracy(net, some, truth, delta), "own": against(own, net, some, truth)}
        rows[-1] |= {"samples": p.samples, "test": len(x), "attacked": len(some)}
    return rows, kept


def against(attacker: Attacker, net: Layered, x: Tensor, y: Tensor) -> float:
    """Accuracy on the pictures that this attacker trains with, noise included."""
    noise = torch.Generator(x.device).manual_seed(0)
    right = [
        accuracy(net, *attacker(net, some, truth, math.inf, noise)) * len(some)
        for some, truth in zip(x.split(ROWS), y.split(ROWS), strict=True)
    ]
    return sum(right) / len(x)


def roughness(filters: Tensor) -> dict[str, float]:
    """High frequencies and total variation of filters: medians, and their spreads over resampled filters."""
    high = high_frequencies(filters).tolist()
    return {"high_frequency": float(np.median(high)), "high_frequency_spread": resampled(high)} | of_pictures(filters)


def of_pictures(x: Tensor) -> dict[str, float]:
    values = total_variations(x).tolist()
    return {"variation": float(np.median(values)), "variation_spread": resampled(values)}


def perturbation(deltas: Tensor) -> dict[str, float]:
    """How dense the perturbations are, for pictures that were classified correctly without them."""
    found = deltas[deltas.flatten(1).norm(dim=1) > 0]
    if len(found) == 0:
        return {"pictures": 0}
    dense = {name: values.tolist() for name, values in spreads(found).items()}
    medians = {name: float(np.median(values)) for name, values in dense.items()}
    return medians | {"haar_spread": resampled(dense["haar"])} | of_pictures(found) | {"pictures": len(found)}


class Reached(Exception):
    """The layer that is looked at has its map; the layers above need not be computed."""


def visualised(p: Cifar10, net: Layered, layer: int, rest: float = GREY) -> Tensor:
    """The pictures that most excite the first neurons of a layer, each at the middle of its feature map."""
    v = p.visualise
    where = next(net.parameters()).device
    wanted = min(v.neurons, net.convolutions[layer - 1].out_channels)

    def stop(module: nn.Module, inputs: object, maps: Tensor) -> None:
        raise Reached(maps)

    def feature(x: Tensor) -> Tensor:
        try:
            net(x)
        except Reached as reached:
            (maps,) = reached.args
        which = torch.arange(len(x), device=x.device)
        return maps[which, which, maps.shape[2] // 2, maps.shape[3] // 2]

    hook = net.convolutions[layer - 1].register_forward_hook(stop)
    try:
        size, draws = (wanted, 3, 32, 32), rng(0, f"layer {layer}")
        with fixed(net):
            return excite(feature, size, v.steps, v.lr, v.decay, draws, rest, device=where)
    finally:
        hook.remove()


def along(arrays: dict[str, np.ndarray], seed: int) -> Iterator[dict[str, object]]:
    """The first layer's filters at every epoch: how close they are to the random, the clean and the robust ones.

    The spreads, over resampled filters, are of the last epoch.
    """
    paths = {name: torch.from_numpy(arrays[f"{seed}.path.{name}"]) for name in (*PATH, "control")}
    ends = {"init": paths["clean"][0]} | {name: paths[name][-1] for name in ("clean", cifar10_nets.ROBUST)}
    for name, path in paths.items():
        for epoch, filters in enumerate(path):
            found = {f"theta_{end}": theta(filters.flatten(1), others.flatten(1)) for end, others in ends.items()}
            found |= {"high_frequency": high_frequencies(filters), "variation": total_variations(filters)}
            row: dict[str, object] = {"network": name, "epoch": epoch}
            for column, values in found.items():
                row[column] = float(np.median(values))
                if epoch == len(path) - 1:
                    row[f"{column}_spread"] = resampled(values.tolist())
            yield row


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
    run(main, Cifar10Params)
