"""Pictures of FP §6 and §8: filters along training (Fig 8, 9), and features of deeper layers (Fig 6, 11, 13).

`images` are the tensors that the stage cifar10_probe saved, by name. Colours are those of `plot_cifar10`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brittle.drawing.style import GREY
from brittle.drawing.tiles import show, signed
from brittle.pictures.plot_cifar10 import NETWORKS, STRETCHES, about, attacker_title, net_title

Images = Mapping[str, np.ndarray]
COLUMNS = 15  # epochs shown, at most
ALONE = ("init", "clean", "robust")


def _of(images: Images, kind: str) -> list[str]:
    """The networks of which there are such pictures."""
    return list(dict.fromkeys(name.split(".")[0] for name in images if f".{kind}." in name))


# --- Filters along training


def along(images: Images, accuracy: pd.DataFrame) -> Figure:
    """FP Figures 8 and 9: the same filters before training and at epochs of clean, adversarial and clean training."""
    nets = _of(images, "along")
    figure = plt.figure(figsize=(8.8, 0.5 + 4.1 * max(1, len(nets))), layout="constrained")
    axes = np.atleast_1d(figure.subplots(max(1, len(nets)), 1))
    for ax, net in zip(axes, nets, strict=False):
        epochs, shown = _epochs({name: images[f"{net}.along.{name}"] for name in STRETCHES}, COLUMNS)
        rows = [[signed(filters[i]) for filters in shown] for i in range(len(shown[0]))]
        show(ax, rows, above=epochs)
        ax.set_title(f"{net_title(net)}: filters of the first layer, each scaled by its largest value", pad=24)
        ax.set_xlabel("epoch; the first column is random, then clean, robust, and clean again", color=GREY)
    about(figure, accuracy)
    return figure


def _epochs(paths: Mapping[str, np.ndarray], most: int) -> tuple[list[str], list[np.ndarray]]:
    """The titles and the filters of epochs at equal distances in each stretch, and at its end."""
    total = sum(len(path) - 1 for path in paths.values())
    titles, shown = ["0"], [next(iter(paths.values()))[0]]
    for name, path in paths.items():
        last = len(path) - 1
        count = min(last, max(1, round((most - 1) * last / max(1, total))))
        for epoch in np.unique(np.linspace(last / count, last, count).round().astype(int)):
            titles.append(f"{STRETCHES[name]}\n{epoch}" if epoch == last else f"\n{epoch}")
            shown.append(path[epoch])
    return titles, shown


# --- Features of deeper layers


def deep(images: Images, accuracy: pd.DataFrame) -> Figure:
    """FP Figures 6, 11 and 13: features above frozen layers, on grey and on black; features against each attacker."""
    nets = _of(images, "alone")
    figure = plt.figure(figsize=(8.8, 0.4 + 3.1 * max(1, len(nets))), layout="constrained")
    parts = np.atleast_1d(figure.subfigures(max(1, len(nets)), 1))
    for part, net in zip(parts, nets, strict=False):
        alone, attackers = part.subplots(1, 2, width_ratios=[1.25, 1])
        _alone(alone, images, net)
        _attackers(attackers, images, net, list(accuracy["attacker"].unique()))
    about(figure, accuracy)
    return figure


def _alone(ax: Axes, images: Images, net: str) -> None:
    """One row for each network, layer and colour that pictures are drawn towards."""
    rows: dict[str, list[np.ndarray]] = {}
    for kind, words in (("alone", ""), ("black", ", on black")):
        for layer in sorted({int(name.split(".")[-1]) for name in images if name.startswith(f"{net}.{kind}.")}):
            for name in ALONE:
                title = f"layer {layer}{words}, {NETWORKS[name][0]}"
                rows[title] = _pictures(images.get(f"{net}.{kind}.{name}.{layer}", ()))
    show(ax, list(rows.values()), list(rows))
    ax.set_title(f"{net_title(net)}: features of a layer above\nfrozen layers of adversarial training")


def _attackers(ax: Axes, images: Images, net: str, attackers: list[str]) -> None:
    """One row for the clean network, and one for each attacker."""
    found = [name for name in images if name.startswith(f"{net}.visualised.{attackers[-1]}.")]
    layer = found[0].split(".")[-1] if found else ""
    names = {"clean": "clean", attacker_title(attackers[0]): "robust"}
    names |= {attacker_title(name): f"{name}.clean" for name in attackers[1:]}
    rows = {title: _pictures(images.get(f"{net}.visualised.{name}.{layer}", ())) for title, name in names.items()}
    show(ax, list(rows.values()), list(rows))
    ax.set_title(f"layer {layer}, whole network trained\nagainst each attacker from clean weights")


def _pictures(seen: Iterable[np.ndarray]) -> list[np.ndarray]:
    return [each.transpose(1, 2, 0).clip(0, 1) for each in seen]
