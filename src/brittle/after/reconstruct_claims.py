"""H1 and H2: the training data from the weights, as Haim and others (2022) do it, and by differences of neurons."""

from __future__ import annotations

import pandas as pd

from brittle.verdicts import LATER, Finding, Tables, not_run, seeds, span

TABLE = "plots/reconstruct.csv"
ENOUGH, CHANCE = 0.5, 0.05
LEVEL = -30  # the loss to which VYS train, and about that of Haim and others


@LATER.question(
    "H1",
    source="Haim, Vardi, Yehudai, Shamir, Irani 2022",
    says="can the training samples be read from the weights alone?",
    paper='"in some cases a significant fraction of the training data can in fact be reconstructed" (abstract; '
    "pictures, networks of 1000 neurons a layer); here random points, of which the search knows nothing beforehand",
    rule="at loss 1e-30: the share of the margin samples that a candidate meets with a cosine ≥ 0.9. ≥ 50 % would say "
    "yes, if untrained networks, and samples that the network has never seen, give ≤ 5 %",
    reads=TABLE,
)
def h1(tables: Tables) -> Finding:
    t = tables[TABLE]
    trained, untrained = t[t["log10_loss"] == LEVEL], t[t["log10_loss"] == 0]
    missing = [name for name, some in (("loss 1e-30", trained), ("an untrained network", untrained)) if some.empty]
    if missing:
        return not_run(*missing)
    parts = []
    for m, cell in trained.groupby("m"):
        words = (f"{name} {100 * cell[f'{key}_margin'].mean():.3g} %" for key, name in METHODS.items())
        parts.append(f"m = {m}: {', '.join(words)}")
    chance = max(trained[f"{key}_foreign"].max() for key in METHODS)
    chance = max(chance, *(untrained[f"{key}_all"].max() for key in METHODS))
    first = trained[trained["m"] == trained["m"].min()]
    share = first["search_margin"].mean()
    yes = share >= ENOUGH and chance <= CHANCE
    measured = f"{'yes' if yes else 'no'} for the fewest samples: {'; '.join(parts)}; "
    measured += f"controls {100 * chance:.2g} % at most"
    return Finding(share, measured, scale(t))


METHODS = {"search": "by the search for a KKT point", "pairs": "by differences of two neurons"}


@LATER.question(
    "H2",
    source="Haim and others 2022; arXiv 2509.21296",
    says="does longer training give the samples away, or hide them?",
    paper="2022: reconstruction rests on the KKT point, which training approaches. 2509.21296: networks trained "
    '"more extensively, and therefore satisfying implicit bias conditions more strongly – are, in fact, less '
    'susceptible"',
    rule="the share of all training samples matched at every level of the loss, beside the KKT residual; where it is "
    "largest, and by how much less it is at the lowest loss",
    reads=TABLE,
)
def h2(tables: Tables) -> Finding:
    t = tables[TABLE]
    t = t[(t["log10_loss"] < 0) & (t["m"] == t["m"].min())]
    if t["log10_loss"].nunique() < 3:
        return not_run("three levels of the loss")
    mean = t.groupby("log10_loss")[["search_all", "pairs_all", "kkt"]].mean().sort_index(ascending=False)
    parts = []
    for key, name in METHODS.items():
        column = mean[f"{key}_all"]
        parts.append(
            f"{name} {column.iloc[0]:.2f} at loss 1e{mean.index[0]:g}, most at 1e{column.idxmax():g} "
            f"({column.max():.2f}), {column.iloc[-1]:.2f} at 1e{mean.index[-1]:g}"
        )
    fall = float(mean["search_all"].iloc[-1] - mean["search_all"].max())
    measured = f"{'; '.join(parts)}; KKT residual {mean['kkt'].iloc[0]:.2f} to {mean['kkt'].iloc[-1]:.3f}"
    return Finding(fall, measured, scale(t))


def scale(t: pd.DataFrame) -> str:
    words = (f"{name} {span(t[key])}" for name, key in (("d", "d"), ("m", "m"), ("width", "width")))
    return f"{', '.join(words)}, {span(t['candidates'])} candidates, {seeds(t)}"
