"""The tables that each figure is drawn from, which the page carries with it."""

from __future__ import annotations

from pathlib import Path

from brittle import long_runs
from brittle.core import store

_CIFAR10 = ["cifar10_accuracy"]


def _both(*names: str) -> list[str]:
    """Tables of this run and of the long ones."""
    return [f"{folder}cifar10_{name}" for folder in ("", "evidence/") for name in names]


_SPARSE = ["sparse_networks"]
_GRID = ["sparse_grid", "evidence/sparse_grid"]

# By the figure's name: tables of this run, and of the long runs (evidence/).
_NAMES = {
    "cross_vectors": ["cross_vectors", "cross_builtin_curves", "cross_plugin_curves"],
    "cross_remedies": ["cross_remedies"],
    "margin_flipped": ["margin_flipped", "margin_seeds", "margin_crossings"],
    "margin_training": ["margin_training", "margin_samples"],
    "fig1": ["sweep", "widths", "evidence/sweep", "evidence/widths"],
    "fig2": ["sweep", "evidence/sweep"],
    "title": ["title"],
    "certify": ["certify"],
    "kkt": ["kkt"],
    "regime": ["regime"],
    "proof": ["proof"],
    "optimisers": ["optimisers"],
    "geometry": ["geometry_margins", "geometry_reliance"],
    "off_subspace_boards": ["off_subspace_boards", "off_subspace_points"],
    "off_subspace": ["off_subspace"],
    "slabs_fig1": ["slabs_samples", "slabs_boundary"],
    "slabs_fig2": ["slabs_samples"],
    "slabs_fig3": ["slabs_logits", "features", "slabs_boundary"],
    "slabs_fig4": ["slabs_uap_vectors", "slabs_uap_curves", "slabs_uap", "slabs_transfer"],
    "lsn": ["lsn"],
    "f_star": ["f_star", "adversarial"],
    "adversarial": ["adversarial_path"],
    "sparse_accuracy": ["sparse_accuracy", *_SPARSE],
    "sparse_mixture": ["sparse_coefficients", *_SPARSE],
    "sparse_prediction": [*_GRID, *_SPARSE],
    "sparse_theta": ["sparse_theta", *_SPARSE],
    "sparse_scaling": [*_GRID, "sparse_accuracy", "sparse_theta", *_SPARSE],
    "sparse_low": ["sparse_low", "sparse_accuracy", "sparse_grid", *_SPARSE],
    "sparse_transfer": ["sparse_transfer", *_SPARSE],
    "mnist_cifar": ["mnist_cifar_networks", "mnist_cifar_logits"],
    "mnist_cifar_uap": ["mnist_cifar_uap"],
    "cifar10_filters": ["cifar10_features", *_CIFAR10],
    "cifar10_theta": _both("theta", "layers", "accuracy"),
    "cifar10_path": _both("path", "activity", "accuracy"),
    "cifar10_along": _CIFAR10,
    "cifar10_deep": _CIFAR10,
    "cifar10_features": ["cifar10_features", *_CIFAR10],
    "cifar10_perturbations": ["cifar10_perturbations", *_CIFAR10],
    "cifar10_lasso": ["cifar10_lasso", *_CIFAR10],
    "unseen": ["unseen", "unseen_curves"],
    "powers": ["powers", "powers_curves"],
    "perturbed_noise": ["perturbed_noise"],
    "reconstruct": ["reconstruct"],
    "xor": ["xor", "mid_training"],
}
TABLES = {figure: [name if "/" in name else f"plots/{name}.csv" for name in names] for figure, names in _NAMES.items()}


def files(table: str) -> list[Path]:
    """The files of a table: one, or for a table of long runs as many as there are."""
    return long_runs.files(table.removeprefix("evidence/")) if table.startswith("evidence/") else [Path(table)]


def data(figure: str) -> dict[str, str]:
    """The tables of a figure as csv, by a name that tells a run's table from that of the long runs."""
    return {_called(table): text for table in TABLES[figure] if (text := _joined(files(table)))}


def _called(table: str) -> str:
    return f"evidence_{Path(table).name}.csv" if table.startswith("evidence/") else Path(table).name


def _joined(parts: list[Path]) -> str:
    """The texts one below the other, under the header that they share."""
    texts = [store.load_text(part) for part in parts]
    return "".join([*texts[:1], *(text.split("\n", 1)[1] for text in texts[1:])])
