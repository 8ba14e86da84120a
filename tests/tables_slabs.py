"""Small tables on which every rule of SB's claims holds, in all of the paper's cells."""

from __future__ import annotations

import math
from itertools import product

import pandas as pd

from claim_cases import NAN

SEEDS = (0, 1, 2)
ARCHITECTURES = ("fcn-100-1", "fcn-100-2", "cnn-32-7-1", "cnn-32-7-2", "gru-100-10-1", "gru-100-10-2")
FCNS = ("fcn-100-1", "fcn-200-1", "fcn-300-1", "fcn-100-2", "fcn-200-2", "fcn-300-2")
WORLDS = ("lms-5", "ms-5-7")
PICTURES = ("0-1-automobile-truck", "1-4-automobile-truck", "0-1-airplane-ship")
NETS = ("mobilenet_v2", "googlenet", "resnet50", "densenet121")


def seeded(rows: list[dict], **noise: float) -> pd.DataFrame:
    """Each row for three seeds, with a little noise added in some columns."""
    every = []
    for row, seed in product(rows, SEEDS):
        every.append(row | {"seed": seed} | {key: row[key] + size * (seed - 1) for key, size in noise.items()})
    return pd.DataFrame(every)


def randomised(rows: list[dict]) -> pd.DataFrame:
    """Networks that rely on S alone."""
    versions = {"standard": 1.0, "s": 0.5, "rest": 0.999}
    values = {f"{version}_{area}": value for version, value in versions.items() for area in ("auc_roc", "auc_pr")}
    values |= {"standard_accuracy": 1.0, "s_ks": 0.49, "rest_ks": 0.02, "loss": 2e-3, "epochs": 5}
    noise = {"s_auc_roc": 0.005, "s_auc_pr": 0.005, "rest_auc_roc": 0.001, "rest_auc_pr": 0.001}
    return seeded([values | row for row in rows], **noise, s_ks=0.01, rest_ks=0.002)


def named(**cells: tuple) -> list[dict]:
    """The product of some axes, as rows."""
    return [dict(zip(cells, cell, strict=True)) for cell in product(*cells.values())]


def networks() -> pd.DataFrame:
    single = [row | {"members": 1, "boundary_changes": 0.002} for row in named(model=ARCHITECTURES, world=WORLDS)]
    averages = [row | {"members": 3, "boundary_changes": NAN} for row in named(model=ARCHITECTURES[:2], world=WORLDS)]
    t = randomised(single + averages)
    t["boundary_changes"] += 1e-3 * (t["seed"] - 1)
    return t.assign(boundary_mixed=3 * t["boundary_changes"])


def features() -> pd.DataFrame:
    cells = named(model=("fcn-2000-1",), world=("lms-5",), complex=(9, 249), simple=(1, 0))
    t = randomised(cells)
    without = t["simple"] == 0
    t["standard_accuracy"] = t["standard_accuracy"].mask(without, 0.97 + 0.01 * t["seed"])
    measured = [column for column in t if column.startswith(("s_", "rest_"))]
    return t.assign(**{column: t[column].mask(without) for column in measured})


def methods() -> list[dict]:
    """Where S has slabs, the authors' radius is farther than the next slab, and a part of the budget is left over."""
    rows = named(model=("fcn-100-1", "cnn-32-7-1", "gru-100-10-1"), world=WORLDS, method=("ascent", "short", "svd"))
    return [row | {"far": row["world"] == "ms-5-7" and row["method"] == "ascent"} for row in rows]


def uap() -> pd.DataFrame:
    rows = [row | {"share": 0.87 if row["far"] else 0.998, "accuracy": 0.05} for row in methods()]
    return seeded(rows, share=5e-4, accuracy=0.01)


def vectors() -> pd.DataFrame:
    """Along S, but for a little of the second coordinate; to which of the two next slabs is a matter of chance."""
    rows = []
    for row in methods():
        sign = -1.0 if row["world"] == "ms-5-7" and row["model"] == "cnn-32-7-1" else 1.0
        rest = 0.1 if row["model"] == "gru-100-10-1" else 0.0
        if row["far"] and sign < 0:
            rest = 1.0
        rows += [row | {"feature": 0, "component": sign}, row | {"feature": 1, "component": rest}]
    t = seeded(rows)
    return t.assign(component=t["component"] + 0.01 * (t["seed"] - 1) * t["feature"])


def transfer() -> pd.DataFrame:
    models = ("fcn-100-1", "cnn-32-7-1", "gru-100-10-1")
    rows = [row | {"accuracy": 0.06, "cosine": 0.9} for row in named(world=WORLDS, of=models, on=models)]
    return seeded(rows, accuracy=0.01)


def noisy() -> pd.DataFrame:
    with_s = {"epochs": 40, "train": 0.98, "test": 0.945, "rest": 0.944, "s": 0.498}
    without = {"epochs": 20, "train": 1.0, "test": 0.998, "rest": NAN, "s": NAN}
    rows = [row | with_s for row in named(model=FCNS, world=("noisy-lms-7",))]
    rows += [row | without for row in named(model=tuple(dict.fromkeys(FCNS + ARCHITECTURES)), world=("ms-5", "ms-7"))]
    return seeded(rows, train=1e-3, test=1e-3, rest=1e-3, s=2e-3)


def recipes() -> pd.DataFrame:
    plain = {"table": 4, "model": "fcn-100-2", "dropout": 0.0, "weight_decay": 5e-7}
    activations, optimisers = ("relu", "leaky_relu", "prelu", "tanh"), ("sgd", "adam", "rmsprop")
    cells = named(activation=activations, optimiser=optimisers, world=("lms-7", "ms-5-7"))
    rows = [row | plain for row in cells]
    for row in named(model=("fcn-100-1", "fcn-100-2"), dropout=(0.0, 0.05, 0.1), weight_decay=(1e-2, 1e-4)):
        kept_up = row["weight_decay"] == 1e-2  # by the decay: the loss
        more = {"table": 5, "world": "lms-7", "activation": "relu", "optimiser": "sgd"}
        rows.append(row | more | ({"loss": 0.07, "epochs": 25} if kept_up else {}))
    return randomised(rows)


def adversarial() -> pd.DataFrame:
    radii = (("none", 0.0), ("l2", 0.1), ("linf", 0.01), ("l2", 0.4), ("linf", 0.06))
    resist = {"l2_0.2": 0.9, "l2_0.4": 0.67, "l2_0.4_f_star": 1.0, "l2_0.4_certified": 0.6, "margin_s": 0.1}
    rows = [{"norm": norm, "eps": eps, "momentum": momentum} for (norm, eps), momentum in product(radii, (0.0, 0.9))]
    return randomised([row | resist for row in rows])


def adversarial_path() -> pd.DataFrame:
    """Within the margin nothing happens; beyond it Sᶜ comes in between 1,000 and 2,000 updates, with momentum alone."""
    rows = [
        {"norm": norm, "eps": eps, "momentum": momentum, "updates": updates, "rest_auc_roc": rest, "s_auc_roc": 0.5}
        for norm, eps in (("none", 0.0), ("l2", 0.1), ("l2", 0.4))
        for momentum, updates in product((0.0, 0.9), (1000, 2000, 3000))
        for rest in [0.8 if eps == 0.4 and momentum and updates > 1000 else 1.0]
    ]
    return seeded(rows)


def f_star() -> pd.DataFrame:
    rows = [
        {"world": "lms-5", "d": d, "sample": i, "output": 1.0, "simple": 0.55, "lower": size, "upper": 1.01 * size}
        for d, i in product((10, 40, 160), range(20))
        for size in [math.sqrt(d) * (0.15 + 1e-4 * i)]
    ]
    return pd.DataFrame(rows)


def lsn() -> pd.DataFrame:
    """Few units and the theorem's most, and a linear coordinate with a tenth of the slab's margin."""
    rows = []
    for d, margin in product((20, 80, 320), (1.0, 0.1)):
        for units in (20, math.ceil(d * d / math.log(d))):
            weights = {"linear": 2 / units**0.5, "slab": 2 / (units * d) ** 0.5, "predicted": 2 / units**0.5}
            noise = 1 / (units**0.5 * math.log(d) * d**0.2)
            rows.append({"d": d, "units": units, "margin": margin, "error": 0.0, "noise": noise} | weights)
    t = seeded(rows)
    return t.assign(slab=t["slab"] * t["d"] ** (0.02 * (t["seed"] - 1)))


def confidence() -> pd.DataFrame:
    values = {"members": 1, "rest_confidence": 2e-3, "rest_logit": 0.1, "rest_flips": 0.0, "s_confidence": 1e-3}
    rows = [row | values | {"s_flips": 1.0} for row in named(model=ARCHITECTURES, world=WORLDS)]
    return seeded(rows, rest_confidence=1e-4)


def pictures() -> pd.DataFrame:
    sizes = {
        "members": 1,
        "samples": 10_000,
        "test": 2000,
        "permutations": 4,
        "robust": NAN,
        "attacked": NAN,
        "eps": NAN,
    }
    values = sizes | {"accuracy": 0.999, "auc": 1.0, "s_auc": 0.51, "s_error": 0.01, "rest_auc": 1.0}
    first = {"world": PICTURES[0]}
    rows = [row | {"kind": "standard"} for row in named(model=NETS, world=PICTURES)]
    rows += [row | first | {"kind": "alone", "accuracy": 0.95, "auc": 0.98} for row in named(model=NETS)]
    rows += [row | first | {"kind": "standard", "members": 3} for row in named(model=NETS)]
    hard = {"kind": "adversarial", "robust": 0.9, "attacked": 200, "eps": 0.3}
    rows += [row | first | hard for row in named(model=NETS)]
    return seeded([values | row for row in rows], s_auc=0.01)


def on_pictures() -> pd.DataFrame:
    values = {"eps": 4.0, "passes": 10, "mean_share": 0.9, "uap": 0.1, "mean": 0.8, "random": 0.99, "none": 1.0}
    rows = [row | values | {"share": 0.98} for row in named(model=NETS, world=PICTURES[:1])]
    rows += [row | values | {"share": 0.7} for row in named(model=NETS, world=PICTURES[1:])]  # of which nothing is said
    return seeded(rows, share=2e-3, uap=0.02)


CONFIRM: dict[str, pd.DataFrame] = {
    "plots/lsn.csv": lsn(),
    "plots/slabs_networks.csv": networks(),
    "plots/features.csv": features(),
    "plots/slabs_uap.csv": uap(),
    "plots/slabs_uap_vectors.csv": vectors(),
    "plots/slabs_transfer.csv": transfer(),
    "plots/noisy.csv": noisy(),
    "plots/recipes.csv": recipes(),
    "plots/adversarial.csv": adversarial(),
    "plots/adversarial_path.csv": adversarial_path(),
    "plots/f_star.csv": f_star(),
    "plots/slabs_confidence.csv": confidence(),
    "plots/mnist_cifar_networks.csv": pictures(),
    "plots/mnist_cifar_uap.csv": on_pictures(),
}
