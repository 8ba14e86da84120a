"""SB's figures and tables: numbers in the text are those of the data, and every figure draws, whatever is missing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from brittle.core import store
from brittle.core.errors import BadInput
from brittle.drawing import style
from brittle.probes.f_star import smallest
from brittle.slabs import figures as slabs_figures
from brittle.slabs import plot as slabs
from brittle.slabs import plot_theory
from brittle.slabs import tables as slab_tables
from brittle.worlds.slabs import world

MODELS = ["fcn-100-1", "gru-100-10-2"]


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """No warning goes unseen, and no figure stays open."""
    style.use(9.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # of what other tests left open
        yield
    plt.close("all")


def lines(text: str, *cells: str) -> list[list[str]]:
    """The cells of those lines of a table that begin with these."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if row[: len(cells)] == list(cells)]


def networks() -> pd.DataFrame:
    """Two seeds of one architecture with its ensemble, one of another and one that the paper does not have."""
    rows = [
        ("fcn-100-1", "lms-5", 0, 1, 7.0, 0.50, 0.40, 1.0),
        ("fcn-100-1", "lms-5", 1, 1, 9.0, 0.54, 0.44, 1.0),
        ("fcn-100-1", "lms-5", 0, 2, np.nan, 0.51, 0.41, 1.0),
        ("fcn-100-1", "ms-5-7", 0, 1, 8.0, 0.47, 0.48, 1.0),
        ("gru-100-10-1", "lms-5", 0, 1, 4.0, 0.55, 0.56, 1.0),
        ("fcn-30-1", "lms-5", 0, 1, 5.0, 0.52, 0.53, 0.7),
    ]
    table = pd.DataFrame(rows, columns=["model", "world", "seed", "members", "epochs", "s_auc_roc", "s_auc_pr", "n"])
    table["standard_auc_roc"] = table["standard_auc_pr"] = table["rest_auc_roc"] = table["rest_auc_pr"] = table.pop("n")
    return table


def test_table_2_of_the_appendix_has_mean_and_std_beside_the_papers_numbers() -> None:
    text = slab_tables.table2_networks(networks())
    [row] = lines(text, "LMS-5", "(100, 1)-FCN")
    # 0.50 and 0.54: mean 0.52, standard deviation 0.04/√2 = 0.0283.
    assert row[2:] == ["1.000 ± 0.000", "0.50", "0.520 ± 0.028", "0.420 ± 0.028", "1.00"] + 2 * ["1.000 ± 0.000"]
    [row] = lines(text, "LMS-5", "2 × (100, 1)-FCN, averaged")
    assert row[3:6] == ["–", "0.510", "0.410"]
    [row] = lines(text, "LMS-5", "(100, 10, 1)-GRU")
    assert row[3:6] == ["0.51", "0.550", "0.560"]  # the only 0.51 of the paper; one seed, no ±
    [row] = lines(text, "MS-(5, 7)", "(100, 1)-FCN")
    assert row[3:5] == ["0.50", "0.470"]
    [row] = lines(text, "LMS-5", "(30, 1)-FCN")
    assert row[3:5] == ["–", "not learnt in 5 epochs"]
    assert "over 1 to 2 seeds, 4 to 9 epochs" in text.splitlines()[0]


def noisy() -> pd.DataFrame:
    hyper = {"batch": 256, "lr": 0.3, "momentum": 0.9, "weight_decay": 5e-5, "loss": 0.1, "valid": 0.95}
    rows = []
    for model, seed in product(["fcn-100-1", "fcn-300-2", "fcn-40-1"], [0, 1]):
        about = {"model": model, "seed": seed} | hyper
        values = {"train": 0.96, "test": 0.93 + 0.02 * seed, "rest": 0.9, "s": 0.5}
        rows.append({"world": "noisy-lms-7", "epochs": 10} | about | values)
        rows.append({"world": "ms-7", "epochs": 60} | about | {"train": 0.99, "test": 0.75})
    return pd.DataFrame(rows)


def test_table_2_of_the_paper_has_each_networks_numbers_below_the_papers() -> None:
    rows = lines(slab_tables.table2_noisy(noisy()))[2:]
    assert [row[:2] for row in rows[::2]] == [[f"({w}, {k})-FCN", "paper"] for w, k in ((100, 1), (300, 2), (40, 1))]
    assert rows[0][2:7] == ["0.984 ± 0.003", "0.940 ± 0.002", "0.941 ± 0.001", "0.498 ± 0.001", "1.00"]
    assert rows[2][2:7] == ["0.998 ± 0.002", "0.947 ± 0.002", "0.946 ± 0.001", "0.498 ± 0.001", "1.00"]
    assert rows[4][2:] == 6 * ["–"]
    for row in rows[1::2]:  # 0.93 and 0.95: 0.94 ± 0.02/√2
        assert row[1:4] == ["here", "0.960 ± 0.000", "0.940 ± 0.014"]
        assert row[6:] == ["0.750 ± 0.000 (0.990)", "0.3, 256, 0.9, 5e-05"]


def test_table_2_of_the_paper_needs_no_network_without_s() -> None:
    table = noisy()
    rows = lines(slab_tables.table2_noisy(table[table["world"] != "ms-7"]))
    assert rows[0] == [*rows[0][:6], "chosen: lr, batch, momentum, decay"]


def recipes() -> pd.DataFrame:
    rows = []
    for world_name, activation, optimiser, seed in product(
        ["lms-7", "ms-5-7"], ["relu", "tanh"], ["sgd", "adam"], [0, 1]
    ):
        hard = world_name == "ms-5-7" and activation == "tanh"
        learnt = not hard or (optimiser == "adam" and seed == 0)
        rows.append(
            {"table": 4, "model": "fcn-100-2", "world": world_name, "activation": activation, "optimiser": optimiser}
            | {"dropout": 0.0, "weight_decay": 5e-7, "seed": seed, "epochs": 3 if learnt else 25}
            | {"standard_auc_roc": 1.0 if learnt else 0.98, "s_auc_roc": 0.49 + 0.02 * seed}
        )
    for dropout, decay in product([0.0, 0.05], [1e-2, 1e-4]):
        rows.append(
            {"table": 5, "model": "fcn-100-1", "world": "lms-7", "activation": "relu", "optimiser": "sgd"}
            | {"dropout": dropout, "weight_decay": decay, "seed": 0, "epochs": 2}
            | {"standard_auc_roc": 1.0, "s_auc_roc": 0.5 + dropout + decay}
        )
    table = pd.DataFrame(rows)
    return table.assign(s_auc_pr=table["s_auc_roc"] - 0.1, rest_auc_roc=1.0, rest_auc_pr=1.0, standard_auc_pr=1.0)


def test_table_4_names_the_networks_that_have_not_learnt_their_task() -> None:
    text = slab_tables.table4(recipes())
    [row] = lines(text, "ReLU", "Adam")
    assert row[2:5] == ["0.497 ± 0.003", "0.500 ± 0.014", "0.400 ± 0.014"]
    assert row[6:8] == ["0.499 ± 0.004", "0.500 ± 0.014"]
    [row] = lines(text, "Tanh", "SGD")
    assert row[2:4] == ["0.495 ± 0.001", "0.500 ± 0.014"]
    assert row[6:] == ["0.498 ± 0.004"] + 3 * ["not learnt in 25 epochs"]
    [row] = lines(text, "Tanh", "Adam")
    assert row[7] == "0.490 (1 of 2 not learnt in 25 epochs)"
    assert "below 0.99: 3 of 16 networks" in text


def test_table_5_puts_the_papers_numbers_beside_ours() -> None:
    text = slab_tables.table5(recipes())
    [row] = lines(text, "(100, 1)-FCN", "0.00", "0.0001")
    assert row[3:] == ["1.00 ± 0.00", "1.000", "0.50 ± 0.01", "0.500", "1.00 ± 0.00", "1.000"]
    [row] = lines(text, "(100, 1)-FCN", "0.05", "0.01")
    assert row[5:7] == ["0.50 ± 0.00", "0.560"]
    assert "one network each, 2 epochs" in text


def test_a_table_is_markdown() -> None:
    for text in (slab_tables.table4(recipes()), slab_tables.table2_noisy(noisy())):
        about, empty, *rows = text.splitlines()
        assert len(about) > 0
        assert empty == ""
        assert len({row.count("|") for row in rows}) == 1
        assert re.fullmatch(r"\|( -+ \|)+", rows[1])


def samples(*names: str) -> pd.DataFrame:
    tables = []
    for name in names:
        x, y = world(name, 2).sample(200, np.random.default_rng(0))
        tables.append(pd.DataFrame({"world": name, "label": y.astype(int), "simple": x[:, 0], "complex": x[:, 1]}))
    return pd.concat(tables)


def boundary(*names: str) -> pd.DataFrame:
    """Networks that use S alone, and have their boundary at 0."""
    ticks = np.linspace(-1, 1, 16)
    simple, complex = (each.ravel() for each in np.meshgrid(ticks, ticks, indexing="ij"))
    about = {"model": MODELS[0], "seed": 0, "members": 1, "simple": simple, "complex": complex}
    return pd.concat([pd.DataFrame(about | {"world": name, "positive": (simple > 0) * 1.0}) for name in names])


def logits(*names: str) -> pd.DataFrame:
    about = {"model": MODELS[0], "seed": 0, "members": 1, "low": [-2.0, 0.0], "high": [0.0, 2.0]}
    shares = {"standard": [0.0, 1.0], "s": [0.5, 0.5], "rest": [0.25, 0.75]}
    return pd.concat([pd.DataFrame(about | shares | {"world": name}) for name in names])


def features(complexes: list[int], seeds: list[int]) -> pd.DataFrame:
    rows = [{"model": "fcn-2000-1", "complex": n, "simple": 1, "seed": seed} for n in complexes for seed in seeds]
    return pd.DataFrame(rows).assign(standard_auc_roc=1.0, rest_auc_roc=0.99, s_auc_roc=0.5)


def universal(names: list[str], models: list[str]) -> tuple[pd.DataFrame, ...]:
    vectors, curves, uap, transfer = [], [], [], []
    for name, model in product(names, models):
        about = {"model": model, "world": name, "seed": 0}
        vectors.append(pd.DataFrame(about | {"method": "ascent", "feature": range(3), "component": [0.8, 0.0, -0.6]}))
        uap.append(about | {"method": "ascent", "eps": 1.0, "share": 0.64, "accuracy": 0.25})
        for direction in ("own", "random", "z"):
            curves.append(pd.DataFrame(about | {"direction": direction, "size": [0.0, 1.5], "accuracy": [1.0, 0.1]}))
        transfer += [{"world": name, "seed": 0, "of": model, "on": on, "accuracy": 0.125} for on in models]
    return pd.concat(vectors), pd.concat(curves), pd.DataFrame(uap), pd.DataFrame(transfer)


def theorem(ds: list[int], seeds: list[int]) -> pd.DataFrame:
    rows = [{"d": d, "seed": seed, "linear": 0.3, "slab": 0.3 / d, "ratio": float(d)} for d in ds for seed in seeds]
    return pd.DataFrame(rows).assign(margin=1.0, units=20, noise=0.01, predicted=0.3, error=0.0)


def distances(ds: list[int]) -> pd.DataFrame:
    rows = [{"world": "lms-5", "d": d, "lower": d**0.5, "upper": d**0.5, "certified": 0.1 * d**0.5} for d in ds]
    return pd.DataFrame(rows).assign(simple=0.5)


def hardened(norms: dict[str, list[float]]) -> pd.DataFrame:
    rows = [{"norm": "none", "eps": 0.0}] + [{"norm": norm, "eps": eps} for norm in norms for eps in norms[norm]]
    table = pd.DataFrame(rows).assign(seed=0, standard_accuracy=1.0, l2_median=0.5, linf_median=0.1)
    for norm, radii in norms.items():
        for eps in radii:
            table[f"{norm}_{eps:g}"], table[f"{norm}_{eps:g}_f_star"] = 0.75, 1.0
    return table


def hardening(norms: dict[str, list[float]], momenta: list[float]) -> pd.DataFrame:
    kinds = [("none", 0.0), *((norm, eps) for norm in norms for eps in norms[norm])]
    rows = [
        {"norm": norm, "eps": eps, "momentum": momentum, "seed": seed, "epochs": epochs, "updates": 10.0 * epochs}
        for norm, eps in kinds for momentum in momenta for seed in (0, 1) for epochs in (1, 2, 4)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(s_auc_roc=0.5, rest_auc_roc=1.0)


DRAWN: dict[str, Callable[[], Figure]] = {
    "fig1": lambda: slabs.fig1(samples("lms-5", "lms-7"), boundary("lms-5", "ms-5-7")),
    "fig1, another world": lambda: slabs.fig1(samples("ms-5-7"), boundary("ms-5-7")),
    "fig2": lambda: slabs.fig2(samples("lms-5", "noisy-lms-7", "ms-5-7")),
    "fig2, one world": lambda: slabs.fig2(samples("lms-5")),
    "fig2, a world of its own": lambda: slabs.fig2(samples("ms-3")),
    "fig3": lambda: slabs.fig3(logits("lms-5", "ms-5-7"), features([9, 249], [0, 1]), boundary("lms-5", "ms-5-7")),
    "fig4": lambda: slabs.fig4(*universal(["lms-5", "ms-5-7"], MODELS)),
    "lsn": lambda: plot_theory.lsn(theorem([20, 40, 80], [0, 1])),
    "adversarial": lambda: plot_theory.adversarial(hardening({"l2": [0.2, 0.4], "linf": [0.02]}, [0.0, 0.9])),
    "adversarial, one momentum": lambda: plot_theory.adversarial(hardening({"l2": [0.2]}, [0.9])),
    "f_star": lambda: plot_theory.f_star(distances([10, 100]), hardened({"l2": [0.2, 0.4], "linf": [0.02]})),
}


@cache
def drawn(name: str) -> Figure:
    return DRAWN[name]()


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_draws_without_a_warning_and_says_what_its_axes_are(name: str) -> None:
    figure = drawn(name)
    assert style.render(figure, "png", 50).startswith(b"\x89PNG")
    rows = _rows(figure)
    assert all(ax.get_xlabel() for row in rows for ax in row)
    assert all(ax.get_title(loc="left") for row in rows for ax in row)
    assert all(row[0].get_ylabel() for row in rows)


def _rows(figure: Figure) -> list[list[plt.Axes]]:
    """Axes by row, each from the left."""
    found: dict[tuple[int, int], list[plt.Axes]] = {}
    for ax in figure.axes:
        spec = ax.get_subplotspec()
        found.setdefault((id(spec.get_gridspec()), spec.rowspan.start), []).append(ax)
    return list(found.values())


def words(figure: Figure) -> str:
    return "\n".join(ax.get_title(loc="left") for ax in figure.axes)


def test_numbers_in_titles_are_those_of_the_data() -> None:
    text = words(drawn("fig2"))
    assert "linear: 1 piece\n" in text
    assert "5-slab: 4 pieces" in text
    assert "7-slab: 6 pieces" in text
    assert "KS distance 0.250 for $S^c$, 0.500 for $S$" in words(drawn("fig3"))
    assert "100 % of the labels" in words(drawn("fig3"))
    text = words(drawn("fig4"))
    assert "LMS-5: 64.00 %" in text
    assert "leaves 25 % accuracy" in text
    assert "another network's leaves 12 %" in text.lower()
    assert "$d^{\\,1.00}$" in words(drawn("lsn"))
    assert "within 0 %" in words(drawn("lsn"))
    assert "$d^{\\,0.50}$" in words(drawn("f_star"))
    assert "networks 75 %" in words(drawn("f_star"))


def test_figure_1_measures_margins_in_the_plane() -> None:
    """The network's, whose boundary is S = 0, directly; that of f* by the search for its smallest perturbations."""
    here = world("lms-5", 2)
    x, y = here.sample(2000, np.random.default_rng(1))
    many = pd.DataFrame({"world": "lms-5", "label": y, "simple": x[:, 0], "complex": x[:, 1]})
    found = [float(number) for number in re.findall(r"margin (\S+)", words(slabs.fig1(many, boundary("lms-5"))))]
    exact = [np.abs(x[:, 0]).min(), smallest(here, x.astype(float), y).lower.min()]
    assert found == pytest.approx(exact, abs=0.002)


def test_equal_data_give_equal_bytes() -> None:
    for form in ("svg", "png"):
        first, second = (style.render(DRAWN["fig1, another world"](), form, 50) for _ in range(2))
        assert first == second


def test_a_table_without_a_column_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store.save_table("plots/slabs_samples.csv", samples("lms-5").drop(columns="complex"))
    with pytest.raises(BadInput, match=r"slabs_samples\.csv: has no column complex"):
        slabs_figures.main(_params())


def test_the_stage_draws_and_writes_everything_from_one_world_one_network_and_one_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    vectors, curves, uap, transfer = universal(["lms-5"], MODELS[:1])
    areas = features([9], [0]).assign(standard_auc_pr=1.0, rest_auc_pr=1.0, s_auc_pr=0.5)
    tables = {"slabs_samples": samples("lms-5"), "slabs_boundary": boundary("lms-5"), "slabs_logits": logits("lms-5")}
    tables |= {"features": areas, "slabs_uap_vectors": vectors, "slabs_uap_curves": curves, "slabs_uap": uap}
    tables |= {"slabs_transfer": transfer, "lsn": theorem([20], [0]), "f_star": distances([10])}
    tables |= {"adversarial_path": hardening({"l2": [0.5], "linf": [0.1]}, [0.9])}
    tables |= {"adversarial": hardened({"l2": [0.5], "linf": [0.1]}), "slabs_networks": networks()}
    tables |= {"noisy": noisy(), "recipes": recipes()}
    for name, table in tables.items():
        store.save_table(f"plots/{name}.csv", table)
    # Once is enough: what draws as png draws as svg.
    monkeypatch.setattr(style, "render", lambda *given, draw=style.render: draw(*given) if "png" in given else b"svg")
    slabs_figures.main(_params())
    figures = {
        f"{name}.{form}"
        for name in (*(f"slabs_fig{i}" for i in range(1, 5)), "lsn", "f_star", "adversarial")
        for form in ("svg", "png")
    }
    written = {path.name for path in Path("plots").iterdir()} - {f"{name}.csv" for name in tables}
    assert written == figures | {"slabs_table2.md", "noisy_table2.md", "recipes_table4.md", "recipes_table5.md"}
    assert Path("plots/recipes_table4.md").read_text(encoding="utf-8") == slab_tables.table4(recipes())


class _Figures:
    dpi, font_size = 50, 9.0


class _Params:
    figures = _Figures()


def _params() -> _Params:
    """All that the stage asks of its parameters."""
    return _Params()
