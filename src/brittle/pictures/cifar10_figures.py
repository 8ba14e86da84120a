"""Draw the figures of purification on CIFAR-10, and write FP's Table 1 with our values beside the paper's."""

from __future__ import annotations

from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.pictures import plot_cifar10, plot_cifar10_pictures


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    sizes = ["samples", "test", "attacked"]
    accuracy = store.load_table(
        "plots/cifar10_accuracy.csv", ["seed", "accuracy", "robust", *sizes], text=["net", "network", "attacker"]
    )
    features = store.load_table(
        "plots/cifar10_features.csv", ["seed", "layer", "high_frequency", "variation"], text=["net", "network", "of"]
    )
    path = store.load_table(
        "plots/cifar10_path.csv",
        ["epoch", "theta_init", "theta_clean", "theta_robust", "variation"],
        text=["net", "network"],
    )
    activity = store.load_table("plots/cifar10_activity.csv", ["epoch", "active"], text=["net", "network"])
    theta = store.load_table("plots/cifar10_theta.csv", ["layer", "low", "median", "high"], text=["net", "of"])
    layers = store.load_table("plots/cifar10_layers.csv", ["layer", "robust"], text=["net", "network"])
    perturbations = store.load_table("plots/cifar10_perturbations.csv", ["pictures"], text=["net", "network"])
    lasso = store.load_table(
        "plots/cifar10_lasso.csv", ["lam", "sparsity", "error"], text=["net", "features", "target"]
    )
    shown = store.load_tensors("data/cifar10_shown.safetensors", {"examples": "..."})
    rebuilt = store.load_tensors("data/cifar10_lasso.safetensors", {})
    figures = {
        "filters": plot_cifar10_pictures.filters(shown, features, accuracy),
        "theta": plot_cifar10.theta(theta, layers, accuracy),
        "path": plot_cifar10.path(path, activity, accuracy),
        "perturbations": plot_cifar10_pictures.perturbations(shown | rebuilt, perturbations, accuracy),
        "features": plot_cifar10_pictures.features(shown, features, accuracy),
        "lasso": plot_cifar10_pictures.lasso(rebuilt, lasso, accuracy),
    }
    save({f"plots/cifar10_{name}": figure for name, figure in figures.items()}, params.figures.dpi)
    store.save_bytes("plots/cifar10_table1.md", plot_cifar10.table1(accuracy).encode("utf-8"))


if __name__ == "__main__":
    run(main, FigureParams)
