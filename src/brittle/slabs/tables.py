"""SB's tables as markdown, the paper's numbers beside ours: mean ± standard deviation over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import pandas as pd

from brittle.drawing import tables as markdown
from brittle.drawing.tables import NONE
from brittle.slabs.titles import model_title
from brittle.worlds.slabs import title as world_title

LEARNT = 0.99  # the standard area under the ROC curve from which a task counts as learnt

# Table 2 of the appendix (early version, App. C.1): S- and Sᶜ-randomised AUC. For MS-(5, 7) it prints (100, 1)-FCN
# twice; the second is read as (100, 2)-FCN, as for LMS-5.
PAPER_NETWORKS = {
    ("lms-5", "fcn-100-1"): ("0.50", "1.00"),
    ("lms-5", "fcn-100-2"): ("0.49", "1.00"),
    ("lms-5", "cnn-32-7-1"): ("0.50", "1.00"),
    ("lms-5", "cnn-32-7-2"): ("0.50", "1.00"),
    ("lms-5", "gru-100-10-1"): ("0.51", "1.00"),
    ("lms-5", "gru-100-10-2"): ("0.50", "1.00"),
    ("ms-5-7", "fcn-100-1"): ("0.50", "1.00"),
    ("ms-5-7", "fcn-100-2"): ("0.50", "1.00"),
    ("ms-5-7", "cnn-32-7-1"): ("0.50", "1.00"),
    ("ms-5-7", "cnn-32-7-2"): ("0.50", "1.00"),
    ("ms-5-7", "gru-100-10-1"): ("0.50", "1.00"),
    ("ms-5-7", "gru-100-10-2"): ("0.50", "1.00"),
}

# Table 2 of the paper (§5), on noisy LMS-7: accuracy on training and test data, Sᶜ randomised, S randomised.
PAPER_NOISY = {
    "fcn-100-1": ("0.984 ± 0.003", "0.940 ± 0.002", "0.941 ± 0.001", "0.498 ± 0.001"),
    "fcn-200-1": ("0.998 ± 0.000", "0.949 ± 0.003", "0.946 ± 0.001", "0.498 ± 0.000"),
    "fcn-300-1": ("0.995 ± 0.000", "0.948 ± 0.002", "0.946 ± 0.001", "0.497 ± 0.001"),
    "fcn-100-2": ("0.999 ± 0.000", "0.945 ± 0.003", "0.944 ± 0.001", "0.498 ± 0.001"),
    "fcn-200-2": ("0.997 ± 0.002", "0.946 ± 0.003", "0.945 ± 0.001", "0.497 ± 0.000"),
    "fcn-300-2": ("0.998 ± 0.002", "0.947 ± 0.002", "0.946 ± 0.001", "0.498 ± 0.001"),
}
# In words: "100% test accuracy" with S removed, for 7 slabs in §5 and for LMS-5, which leaves 5 slabs, in §4.2.
PAPER_ALONE = {"ms-7": "1.00", "ms-5": "1.00"}

# Table 4 of the appendix (early version, App. C.3): S-randomised AUC of (100, 2)-FCNs.
PAPER_RECIPES = {
    ("lms-7", "relu"): ("0.499 ± 0.001", "0.497 ± 0.003", "0.502 ± 0.004"),
    ("lms-7", "leaky_relu"): ("0.501 ± 0.001", "0.497 ± 0.003", "0.501 ± 0.005"),
    ("lms-7", "prelu"): ("0.500 ± 0.004", "0.500 ± 0.003", "0.501 ± 0.004"),
    ("lms-7", "tanh"): ("0.495 ± 0.001", "0.502 ± 0.004", "0.495 ± 0.004"),
    ("ms-5-7", "relu"): ("0.499 ± 0.003", "0.499 ± 0.004", "0.496 ± 0.004"),
    ("ms-5-7", "leaky_relu"): ("0.499 ± 0.005", "0.498 ± 0.002", "0.498 ± 0.005"),
    ("ms-5-7", "prelu"): ("0.501 ± 0.004", "0.496 ± 0.003", "0.499 ± 0.002"),
    ("ms-5-7", "tanh"): ("0.498 ± 0.004", "0.499 ± 0.004", "0.498 ± 0.002"),
}
OPTIMISERS = {"sgd": "SGD", "adam": "Adam", "rmsprop": "RMSProp"}  # in the order of the columns above
ACTIVATIONS = {"relu": "ReLU", "leaky_relu": "Leaky ReLU", "prelu": "PReLU", "tanh": "Tanh"}
PAPER_MODEL = "fcn-100-2"

# Table 5 of the appendix (early version, App. C.4), on LMS-7: standard, S- and Sᶜ-randomised AUC by model, dropout, λ.
PAPER_REGULARISED = {
    (model, dropout, decay): ("1.00 ± 0.00", "0.50 ± 0.00", "1.00 ± 0.00")
    for model in ("fcn-100-1", "fcn-100-2")
    for dropout in (0.0, 0.05, 0.1)
    for decay in (1e-2, 1e-4)
} | {("fcn-100-1", 0.0, 1e-4): ("1.00 ± 0.00", "0.50 ± 0.01", "1.00 ± 0.00")}


def table2_networks(networks: pd.DataFrame) -> str:
    """Table 2 of the appendix: S- and Sᶜ-randomised AUC by world and architecture, ensembles in further rows."""
    rows = []
    for (world, model, members), some in networks.groupby(["world", "model", "members"], sort=False):
        s, rest = PAPER_NETWORKS.get((world, model), (NONE, NONE)) if members == 1 else (NONE, NONE)
        name = model_title(model) if members == 1 else f"{members:.0f} × {model_title(model)}, averaged"
        row = [world_title(world), name, _learnt(some, "standard_auc_roc")]
        row += [s, _learnt(some, "s_auc_roc"), _learnt(some, "s_auc_pr")]
        row += [rest, _learnt(some, "rest_auc_roc"), _learnt(some, "rest_auc_pr")]
        rows.append(row)
    run = set(networks[["world", "model"]].itertuples(index=False, name=None))
    for world, model in product(networks["world"].unique(), networks["model"].unique()):
        if (world, model) not in run:
            s, rest = PAPER_NETWORKS.get((world, model), (NONE, NONE))
            rows.append([world_title(world), model_title(model), "not run", s, NONE, NONE, rest, NONE, NONE])
    order = list(networks["world"].unique())
    rows.sort(key=lambda row: [world_title(world) for world in order].index(row[0]))
    header = ["World", "Network", "standard, ROC", "S randomised: paper", "ROC", "PR"]
    header += ["Sᶜ randomised: paper", "ROC", "PR"]
    single = networks[networks["members"] == 1]
    about = (
        "Table 2 of the appendix: area under the curve on test data as they are, with S and with Sᶜ randomised. The "
        "paper defines it under the precision-recall curve (PR), its code computes it under the ROC curve; here are "
        "both. "
        f"{_scale(single, ['world', 'model'])}"
    )
    return markdown.table(about, header, rows)


def table2_noisy(noisy: pd.DataFrame) -> str:
    """Table 2 of the paper: accuracies on noisy LMS data, and on test data of the same networks trained without S."""
    with_s = noisy[noisy["world"].str.startswith("noisy")]
    alone = list(noisy.loc[~noisy["world"].str.startswith("noisy"), "world"].unique())
    rows = []
    for model in noisy["model"].unique():
        printed = PAPER_NOISY.get(model)
        mine = with_s[with_s["model"] == model]
        without = [noisy[(noisy["world"] == world) & (noisy["model"] == model)] for world in alone]
        rows.append(
            [model_title(model), "paper", *(printed or 4 * (NONE,))]
            + [PAPER_ALONE.get(world, NONE) if printed else NONE for world in alone]
            + [NONE]
        )
        rows.append(
            ["", "here", *(_spread(mine[column]) for column in ("train", "test", "rest", "s"))]
            + [f"{_spread(some['test'])} ({_mean(some['train'])})" for some in without]
            + [_hyper(mine)]
        )
    header = ["Network", "", "training data", "test data", "Sᶜ randomised", "S randomised"]
    header += [f"without S ({world_title(world)}): test (training) data" for world in alone]
    header += ["chosen: lr, batch, momentum, decay"]
    worlds = " and ".join(world_title(world) for world in with_s["world"].unique())
    about = (
        f"Table 2 of the paper: accuracy of FCNs trained on {worlds} data, the hyper-parameters chosen by validation "
        f"accuracy. {_scale(with_s, ['model'])}"
    )
    if alone:
        about += f" Without S: {_range(noisy.loc[noisy['world'].isin(alone), 'epochs'])} epochs."
    return markdown.table(about, header, rows)


def table4(recipes: pd.DataFrame) -> str:
    """Table 4 of the appendix: S-randomised AUC by activation, optimiser and world."""
    table = recipes[recipes["table"] == 4]
    worlds = list(table["world"].unique())
    rows = []
    for (model, activation, optimiser), some in table.groupby(["model", "activation", "optimiser"], sort=False):
        row = [ACTIVATIONS.get(activation, activation), OPTIMISERS.get(optimiser, optimiser)]
        for world in worlds:
            printed = dict(zip(OPTIMISERS, PAPER_RECIPES.get((world, activation), ()), strict=False))
            mine = some[some["world"] == world]
            row += [printed.get(optimiser, NONE) if model == PAPER_MODEL else NONE]
            row += [_learnt(mine, column) for column in ("s_auc_roc", "s_auc_pr", "rest_auc_roc")]
        rows.append(row)
    header = ["Activation", "Optimiser"]
    for world in worlds:
        header += [f"{world_title(world)}, S randomised: paper", "ROC", "PR", "Sᶜ randomised: ROC"]
    names = " and ".join(model_title(model) for model in table["model"].unique())
    about = (
        f"Table 4 of the appendix: area under the curve of {names}s on test data with S randomised (and, not in the "
        f"paper, with Sᶜ). {_scale(table, ['world', 'model', 'activation', 'optimiser'])} {_rule(table)}"
    )
    return markdown.table(about, header, rows)


def table5(recipes: pd.DataFrame) -> str:
    """Table 5 of the appendix: standard, S- and Sᶜ-randomised AUC by model, dropout and weight decay λ."""
    table = recipes[recipes["table"] == 5]
    rows = []
    by = ["world", "model", "dropout", "weight_decay"]
    for (world, model, dropout, decay), some in table.groupby(by, sort=False):
        printed = 3 * (NONE,)
        if world == "lms-7":
            printed = PAPER_REGULARISED.get((model, round(dropout, 6), round(decay, 9)), printed)
        row = [model_title(model), f"{dropout:.2f}", f"{decay:g}"]
        row += [printed[0], _spread(some["standard_auc_roc"])]
        for number, name in ((printed[1], "s"), (printed[2], "rest")):
            row += [number, _learnt(some, f"{name}_auc_roc")]
        rows.append(row)
    header = ["Network", "Dropout", "λ", "standard: paper", "here", "S randomised: paper", "here"]
    header += ["Sᶜ randomised: paper", "here"]
    worlds = " and ".join(world_title(world) for world in table["world"].unique())
    about = (
        f"Table 5 of the appendix: area under the ROC curve of FCNs trained on {worlds} with dropout and weight "
        f"decay λ. {_scale(table, by)} {_rule(table)}"
    )
    return markdown.table(about, header, rows)


def _spread(values: pd.Series) -> str:
    """Mean ± standard deviation (n - 1); for a single value, the value."""
    values = values.dropna()
    if len(values) == 0:
        return NONE
    return f"{values.mean():.3f}" + (f" ± {values.std():.3f}" if len(values) > 1 else "")


def _mean(values: pd.Series) -> str:
    return f"{values.mean():.3f}" if len(values) else NONE


def _learnt(some: pd.DataFrame, column: str) -> str:
    """Mean ± std over the networks that have learnt their task; the others are counted, with their epochs."""
    if len(some) == 0:
        return "not run"
    learnt = some["standard_auc_roc"] >= LEARNT
    if learnt.all():
        return _spread(some[column])
    epochs = some.loc[~learnt, "epochs"].dropna()
    failed = "not learnt" + (f" in {_range(epochs)} epochs" if len(epochs) else "")
    if not learnt.any():
        return failed
    return f"{_spread(some.loc[learnt, column])} ({(~learnt).sum()} of {len(some)} {failed})"


def _rule(table: pd.DataFrame) -> str:
    failed = (table["standard_auc_roc"] < LEARNT).sum()
    return f"Not learnt is a standard area below {LEARNT:g}: {failed} of {len(table)} networks."


def _scale(table: pd.DataFrame, by: Sequence[str]) -> str:
    """How many networks are behind a number, and how long they were trained."""
    seeds = table.groupby(list(by)).size()
    runs = "one network each" if (seeds == 1).all() else f"mean ± std over {_range(seeds)} seeds"
    return f"Here: {runs}, {_range(table['epochs'])} epochs."


def _range(values: Iterable[float]) -> str:
    values = pd.Series(values).dropna()
    if len(values) == 0:
        return "no"
    low, high = values.min(), values.max()
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _hyper(mine: pd.DataFrame) -> str:
    """The chosen hyper-parameters; several sets if the rows differ."""
    columns = ["lr", "batch", "momentum", "weight_decay"]
    found = mine[columns].drop_duplicates().itertuples(index=False)
    return "; ".join(", ".join(f"{value:g}" for value in each) for each in found) or NONE
