"""Small tables on which every rule of FP's claims holds."""

from __future__ import annotations

import pandas as pd

from claim_cases import NAN, table

SEEDS = (0, 1, 2)


def noisy(t: pd.DataFrame, **sizes: float) -> pd.DataFrame:
    """The columns with a little noise of the seed."""
    return t.assign(**{column: t[column] * (1 + size * (t["seed"] - 1)) for column, size in sizes.items()})


def sparse_networks() -> pd.DataFrame:
    rows = []
    for start in ("random", "pure"):
        for seed in SEEDS:
            about = {"start": start, "seed": seed, "d": 512, "k": 8, "margin": 1.0, "words": 512, "tau": 0.3}
            about |= {"attacked": 500, "certified": 100, "drawn": 6000, "neurons": 2000, "predicted": 0.02}
            for name, moved, beta, density in (("lottery", 0.1, 0.001, NAN), ("clean", 0.05, 0.004, 15.0)):
                rows.append(about | {"network": name, "moved": moved, "beta": beta, "fgm_l1_l2": density})
            rows.append(about | {"network": "robust", "moved": 0.05, "beta": -0.0005, "fgm_l1_l2": 4.0})
    t = pd.DataFrame(rows).assign(
        pure=0.95,
        covered=1.0,
        runaway=0.0,
        runaway_energy=0.0,
        alpha=0.9,
        ratio=0.018,
        agreement=0.95,
        mean_cosine=0.99,
        accuracy=1.0,
        correlated=0.02,
        local=0.2,
        turned=0.1,
        winner=0.9,
        winner3=0.98,
        winner_unsigned=0.7,
        winner_pot=0.92,
        pot=10.0,
        pot_least=3.0,
        sure=1.1,
        sure_least=0.0,
        sure_kept=0.85,
        same_word=0.99,
        rest=0.004,
    )
    t = t.assign(pgd_l1_l2=t["fgm_l1_l2"])
    return noisy(t, moved=0.01, correlated=0.01, beta=0.01, agreement=0.005, ratio=0.01, fgm_l1_l2=0.01, pgd_l1_l2=0.01)


def sparse_accuracy() -> pd.DataFrame:
    """Accuracy before and after adversarial training at two radii; at the first nothing has an effect."""
    found = {"dense": (0.03, 1.0), "random": (1.0, 1.0), "fgm": (0.03, 0.97), "pgd": (0.03, 0.96)}
    found |= {"certified": (0.0, 0.97)}
    rows = [
        {"start": start, "seed": seed, "network": name, "attack": attack, "tau": tau}
        | {"accuracy": values[name == "robust"] if tau == 0.3 else 1.0}
        for start in ("random", "pure")
        for seed in SEEDS
        for name in ("clean", "robust")
        for attack, values in found.items()
        for tau in (0.1, 0.3)
    ]
    return pd.DataFrame(rows)


def sparse_grid() -> pd.DataFrame:
    """Another d from random weights, and l∞ with and without the filter at both radii."""
    common = {"k": 8, "words": 256, "steps": 500, "predicted": 0.02, "clean_neurons": 1000, "clean_pure": 0.95}
    common |= {"clean_covered": 1.0, "clean_runaway": 0.0, "clean_agreement": 0.95, "clean_mean_cosine": 0.99}
    common |= {"clean_ratio": 0.018, "clean_beta": 0.004, "robust_beta": 0.0005, "clean_accuracy": 1.0}
    common |= {"robust_accuracy": 1.0, "clean_dense": 0.02, "clean_random": 1.0, "clean_fgm": 0.02, "clean_pgd": 0.02}
    common |= {"robust_fgm": 0.99, "robust_pgd": 0.98, "local": 0.2, "turned": 0.1, "theta_start_clean": 0.1}
    common |= {"theta_start_robust": 0.1, "theta_clean_robust": 0.97, "theta_pairs": 0.08, "tau": 0.3}
    rows = [
        common
        | {"of": "d", "start": "random", "norm": "l2", "d": 256, "margin": 1.0, "seed": seed}
        | {"clean_moved": 0.15 + 0.001 * seed, "clean_correlated": 0.08 + 0.001 * seed}
        for seed in SEEDS
    ]
    for power in (2.0, 1.75):
        for margin in (0.0, 1.0):
            cell = {"of": "linf", "start": "pure", "norm": "linf", "d": 256, "margin": margin, "seed": 0}
            rows.append(common | cell | {"tau": 8.0**-power, "clean_moved": 0.8, "clean_correlated": 0.04})
    return pd.DataFrame(rows)


def low() -> pd.DataFrame:
    rows = [
        {"model": model, "width": 1024, "training": training, "norm": "linf", "tau": 8.0**-power, "d": 256, "k": 8}
        | {"margin": 0.0, "accuracy": 0.9, "dense": 0.3, "random": 0.9, "fgm": 0.4, "pgd": 0.4}
        for model in ("linear", "NTK")
        for training in ("clean", "fgm")
        for power in (2.0, 1.75)
    ]
    t = pd.DataFrame(rows)
    return pd.concat([t, t[t["model"] == "NTK"].assign(model="degree 3", pgd=0.8)])  # not judged


ATTACKERS = ("l2-1", "linf-8")


def cifar10_accuracy() -> pd.DataFrame:
    """Table 1's trainings: robust and clean accuracy."""
    found = {"init": (0.0, 0.1), "clean": (0.05, 0.9), "control": (0.05, 0.9), "again": (0.15, 0.85)}
    found |= {"robust": (0.5, 0.7), "linf-8.clean": (0.5, 0.7)} | {f"{name}.random": (0.5, 0.7) for name in ATTACKERS}
    rows = [
        {"net": "alexnet", "seed": seed, "network": name, "attacker": attacker, "robust": robust, "accuracy": clean}
        for seed in SEEDS
        for name, (robust, clean) in found.items()
        for attacker in ATTACKERS
    ]
    t = pd.DataFrame(rows).assign(samples=50_000, test=10_000, attacked=5000)
    return t.assign(own=t["robust"])


def cifar10(columns_of: dict[str, dict[str, float]], **more: object) -> pd.DataFrame:
    """One row per network and seed, with some columns."""
    rows = [
        {"net": "alexnet", "seed": seed, "network": name} | more | columns
        for seed in SEEDS
        for name, columns in columns_of.items()
    ]
    t = pd.DataFrame(rows)
    return noisy(t, **dict.fromkeys(next(iter(columns_of.values())), 0.01))


def visualised(layer: int) -> pd.DataFrame:
    of = {"init": 1.2, "clean": 0.9, "robust": 0.5, "control": 0.88}
    return cifar10({name: {"variation": value} for name, value in of.items()}, of="visualised", layer=layer)


def filters() -> pd.DataFrame:
    of = {"init": 0.8, "clean": 0.3, "control": 0.28, "robust": 0.2}
    return cifar10({name: {"high_frequency": value} for name, value in of.items()}, of="filters", layer=1)


def theta() -> pd.DataFrame:
    medians = {"init, clean": 0.15, "init, robust": 0.14, "clean, robust": 0.95, "clean, control": 0.97}
    medians |= {"different neurons": 0.1}
    rows = [
        {"net": "alexnet", "seed": seed, "layer": layer, "of": of, "median": median}
        for seed in SEEDS
        for layer in (1, 3)
        for of, median in medians.items()
    ]
    return noisy(pd.DataFrame(rows), median=0.01)


def lasso_curves() -> pd.DataFrame:
    """Error against sparsity, lower for purer features."""
    sizes = {("random", "pictures"): 0.9, ("clean", "pictures"): 0.4, ("robust", "pictures"): 0.3}
    sizes |= {("control", "pictures"): 0.4, ("robust", "clean_delta"): 0.6, ("robust", "robust_delta"): 0.5}
    rows = [
        {"net": "alexnet", "features": features, "target": target, "sparsity": sparsity, "error": size * (1 - sparsity)}
        for (features, target), size in sizes.items()
        for sparsity in (0.01, 0.05, 0.2)
    ]
    return pd.DataFrame(rows).assign(converged=1.0, pictures=100, error_spread=0.005)


def path() -> pd.DataFrame:
    rows = []
    ends = {"clean": (5, 0.15, 1.0, 0.9), "robust": (20, 0.14, 0.9, 0.6), "again": (20, 0.14, 0.95, 0.8)}
    ends |= {"control": (20, 0.14, 0.97, 0.85)}
    for seed in SEEDS:
        for name, (epoch, init, clean, rough) in ends.items():
            about = {"net": "alexnet", "seed": seed, "network": name}
            rows.append(about | {"epoch": 0, "theta_init": 1.0, "theta_clean": 0.15, "variation": 1.2})
            rows.append(about | {"epoch": epoch, "theta_init": init, "theta_clean": clean, "variation": rough})
    return noisy(pd.DataFrame(rows), theta_init=0.01, theta_clean=0.005, variation=0.01)


CONFIRM: dict[str, pd.DataFrame] = {
    "plots/sparse_networks.csv": sparse_networks(),
    "plots/sparse_accuracy.csv": sparse_accuracy(),
    "plots/sparse_theta.csv": pd.DataFrame(
        {"start": "random", "seed": seed, "of": of, "median": median + 0.001 * seed}
        for seed in SEEDS
        for of, median in (
            ("start, clean", 0.15),
            ("start, robust", 0.14),
            ("clean, robust", 0.97),
            ("different neurons", 0.08),
        )
    ),
    "plots/sparse_transfer.csv": table(
        of=["random 0", "random 0", "pure 0", "pure 0"],
        on=["random 0", "pure 0", "random 0", "pure 0"],
        accuracy=[0.05, 0.06, 0.06, 0.04],
    ),
    "plots/sparse_grid.csv": sparse_grid(),
    "plots/sparse_low.csv": low(),
    "plots/cifar10_accuracy.csv": cifar10_accuracy(),
    "plots/cifar10_features.csv": pd.concat([filters(), visualised(1), visualised(3)], ignore_index=True),
    "plots/cifar10_theta.csv": theta(),
    "plots/cifar10_layers.csv": cifar10({"clean": {"robust": 0.1}, "robust": {"robust": 0.6}}, layer=3),
    "plots/cifar10_lasso.csv": lasso_curves(),
    "plots/cifar10_activity.csv": table(
        net="alexnet", seed=0, network="clean", epoch=range(31), active=[0.2] + [0.5 - 0.01 * e for e in range(30)]
    ),
    "plots/cifar10_perturbations.csv": cifar10(
        {
            name: {"haar": value}
            for name, value in (("clean", 0.7), ("control", 0.7), ("robust", 0.48), ("pictures", 0.41))
        }
    ).assign(pixels=0.8, dct=0.7, variation=1.0, haar_spread=0.01),
    "plots/cifar10_path.csv": path(),
}
