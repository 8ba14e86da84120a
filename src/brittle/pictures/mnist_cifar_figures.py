"""Draw what networks on MNIST-CIFAR look at, and write SB's Table 3 with our values beside the paper's."""

from __future__ import annotations

from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.pictures import plot_mnist_cifar

AREAS = ["accuracy", "auc", "s_auc", "s_error", "rest_auc", "rest_error"]
SIZES = ["seed", "members", "test", "permutations", "samples", "epochs"]


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    networks = store.load_table("plots/mnist_cifar_networks.csv", [*SIZES, *AREAS], text=["model", "kind", "world"])
    logits = store.load_table("plots/mnist_cifar_logits.csv", ["low", "high", "share"], text=["model", "version"])
    columns = ["eps", "share", "mean_share", "none", "uap", "mean", "random"]
    uap = store.load_table("plots/mnist_cifar_uap.csv", columns, text=["model", "world"])
    shown = store.load_tensors("data/mnist_cifar_shown.safetensors", {})
    worlds = [world for world in networks["world"].unique() if f"examples.{world}" in shown]
    examples = {world: shown[f"examples.{world}"] for world in worlds}
    cells = zip(uap["model"], uap["world"], strict=True)
    deltas = {cell: shown[f"uap.{'.'.join(cell)}"] for cell in cells if f"uap.{'.'.join(cell)}" in shown}
    figures = {
        "plots/mnist_cifar": plot_mnist_cifar.overview(examples, networks, logits),
        "plots/mnist_cifar_uap": plot_mnist_cifar.uap(deltas, uap),
    }
    save(figures, params.figures.dpi)
    store.save_bytes("plots/mnist_cifar_table3.md", plot_mnist_cifar.table3(networks).encode("utf-8"))


if __name__ == "__main__":
    run(main, FigureParams)
