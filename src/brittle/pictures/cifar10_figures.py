"""Draw the figures of purification on CIFAR-10, and write FP's Table 1 with our values beside the paper's."""

from __future__ import annotations

from brittle import long_runs
from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.pictures import plot_cifar10, plot_cifar10_deep, plot_cifar10_pictures

SIZES = ["samples", "test", "attacked"]
# Tables by name: their columns of numbers and of text.
COLUMNS: dict[str, tuple[list[str], list[str]]] = {
    "accuracy": (["seed", "accuracy", "robust", *SIZES], ["net", "network", "attacker"]),
    "features": (["seed", "layer", "high_frequency", "variation"], ["net", "network", "of"]),
    "path": (["epoch", "theta_init", "theta_clean", "theta_robust", "variation"], ["net", "network"]),
    "activity": (["epoch", "active"], ["net", "network"]),
    "theta": (["layer", "low", "median", "high"], ["net", "of"]),
    "layers": (["layer", "robust"], ["net", "network"]),
    "perturbations": (["pictures"], ["net", "network"]),
    "lasso": (["lam", "sparsity", "error"], ["net", "features", "target"]),
}
LONG = ("accuracy", "path", "activity", "theta", "layers")  # for figures without pictures: drawn from the evidence


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    own = {name: store.load_table(f"plots/cifar10_{name}.csv", *columns) for name, columns in COLUMNS.items()}
    long = {name: long_runs.load(f"cifar10_{name}", *COLUMNS[name]) for name in LONG}
    if any(table.empty for table in long.values()):
        long = own
    accuracy = own["accuracy"]
    shown = store.load_tensors("data/cifar10_shown.safetensors", {"examples": "..."})
    rebuilt = store.load_tensors("data/cifar10_lasso.safetensors", {})
    figures = {
        "filters": plot_cifar10_pictures.filters(shown, own["features"], accuracy),
        "theta": plot_cifar10.theta(long["theta"], long["layers"], long["accuracy"]),
        "path": plot_cifar10.path(long["path"], long["activity"], long["accuracy"]),
        "along": plot_cifar10_deep.along(shown, accuracy),
        "perturbations": plot_cifar10_pictures.perturbations(shown | rebuilt, own["perturbations"], accuracy),
        "features": plot_cifar10_pictures.features(shown, own["features"], accuracy),
        "deep": plot_cifar10_deep.deep(shown, accuracy),
        "lasso": plot_cifar10_pictures.lasso(rebuilt, own["lasso"], accuracy),
    }
    save({f"plots/cifar10_{name}": figure for name, figure in figures.items()}, params.figures.dpi)
    store.save_bytes("plots/cifar10_table1.md", plot_cifar10.table1(accuracy).encode("utf-8"))


if __name__ == "__main__":
    run(main, FigureParams)
