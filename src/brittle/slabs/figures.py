"""Draw SB Figures 1 to 4, Theorem 1, f* and adversarial training, and write its Tables 2, 4 and 5 beside ours."""

from __future__ import annotations

from brittle.core import store
from brittle.core.stage import run
from brittle.drawing import style
from brittle.drawing.params import FigureParams
from brittle.drawing.save import save
from brittle.slabs import plot, plot_theory
from brittle.slabs import tables as slab_tables

AREAS = [f"{version}_auc_{curve}" for version in ("standard", "s", "rest") for curve in ("roc", "pr")]
NETWORK = ["seed", "members"]


def main(params: FigureParams) -> None:
    style.use(params.figures.font_size)
    samples = store.load_table("plots/slabs_samples.csv", ["label", "simple", "complex"], text=["world"])
    boundary = store.load_table(
        "plots/slabs_boundary.csv", [*NETWORK, "simple", "complex", "positive"], text=["model", "world"]
    )
    logits = store.load_table(
        "plots/slabs_logits.csv", [*NETWORK, "low", "high", "standard", "s", "rest"], text=["model", "world"]
    )
    features = store.load_table("plots/features.csv", ["complex", "simple", "seed", *AREAS], text=["model"])
    vectors = store.load_table(
        "plots/slabs_uap_vectors.csv", ["seed", "feature", "component"], text=["model", "world", "method"]
    )
    curves = store.load_table(
        "plots/slabs_uap_curves.csv", ["seed", "size", "accuracy"], text=["model", "world", "direction"]
    )
    uap = store.load_table(
        "plots/slabs_uap.csv", ["seed", "eps", "share", "accuracy"], text=["model", "world", "method"]
    )
    transfer = store.load_table("plots/slabs_transfer.csv", ["seed", "accuracy"], text=["world", "of", "on"])
    theorem = store.load_table(
        "plots/lsn.csv", ["d", "margin", "seed", "units", "linear", "slab", "noise", "predicted", "ratio", "error"]
    )
    best = store.load_table("plots/f_star.csv", ["d", "certified", "lower", "upper", "simple"], text=["world"])
    adversarial = store.load_table("plots/adversarial.csv", ["eps", "seed", "standard_accuracy"], text=["norm"])
    path = store.load_table(
        "plots/adversarial_path.csv",
        ["eps", "momentum", "seed", "epochs", "updates", "s_auc_roc", "rest_auc_roc"],
        text=["norm"],
    )
    networks = store.load_table("plots/slabs_networks.csv", [*NETWORK, "epochs", *AREAS], text=["model", "world"])
    noisy = store.load_table(
        "plots/noisy.csv",
        ["batch", "lr", "momentum", "weight_decay", "seed", "epochs", "train", "test", "rest", "s"],
        text=["model", "world"],
    )
    recipes = store.load_table(
        "plots/recipes.csv",
        ["table", "dropout", "weight_decay", "seed", "epochs", *AREAS],
        text=["model", "world", "activation", "optimiser"],
    )
    figures = {
        "plots/slabs_fig1": plot.fig1(samples, boundary),
        "plots/slabs_fig2": plot.fig2(samples),
        "plots/slabs_fig3": plot.fig3(logits, features[features["simple"] == 1], boundary),
        "plots/slabs_fig4": plot.fig4(*(t[t["seed"] == t["seed"].iloc[0]] for t in (vectors, curves, uap, transfer))),
        "plots/lsn": plot_theory.lsn(theorem),
        "plots/f_star": plot_theory.f_star(best, adversarial),
        "plots/adversarial": plot_theory.adversarial(path),
    }
    tables = {
        "plots/slabs_table2.md": slab_tables.table2_networks(networks),
        "plots/noisy_table2.md": slab_tables.table2_noisy(noisy),
        "plots/recipes_table4.md": slab_tables.table4(recipes),
        "plots/recipes_table5.md": slab_tables.table5(recipes),
    }
    save(figures, params.figures.dpi)
    for path, text in tables.items():
        store.save_bytes(path, text.encode("utf-8"))


if __name__ == "__main__":
    run(main, FigureParams)
