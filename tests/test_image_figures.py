"""The figures and tables of the real-image part, from small tables made here: what is drawn is what they say."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from brittle.core import store
from brittle.core.params import load
from brittle.drawing import style, tiles
from brittle.drawing import tables as markdown
from brittle.drawing.params import FigureParams
from brittle.pictures import cifar10_figures, mnist_cifar_figures
from brittle.pictures import (
    plot_cifar10 as cifar10,
)
from brittle.pictures import (
    plot_cifar10_deep as cifar10_deep,
)
from brittle.pictures import (
    plot_cifar10_pictures as cifar10_pictures,
)
from brittle.pictures import (
    plot_mnist_cifar as mnist_cifar,
)
from conftest import ROOT
from tiny import set_params

A, B, OTHER = "0-1-automobile-truck", "1-4-automobile-truck", "2-3-bird-frog"
NETS = {"alexnet": (11, 5), "resnet-10": (3, 7)}  # the side of a filter, and how many convolutions
NETWORKS = ("init", "clean", "robust", "control", "again", "linf-8.clean", "l2-1.random", "linf-8.random")


@pytest.fixture(autouse=True)
def _look() -> Iterator[None]:
    style.use(9.0)
    yield
    plt.close("all")


# --- MNIST-CIFAR


@pytest.fixture
def digits() -> dict[str, object]:
    """Tables and pictures of mnist_cifar_probe: two models, three worlds, two seeds, every kind of network."""
    random = np.random.default_rng(0)
    kinds = [("mobilenet_v2", "standard", A, 0, 1), ("mobilenet_v2", "standard", A, 1, 1)]
    kinds += [("mobilenet_v2", "standard", B, 0, 1), ("mobilenet_v2", "adversarial", A, 0, 1)]
    kinds += [("mobilenet_v2", "alone", A, 0, 1), ("mobilenet_v2", "standard", A, 0, 2)]
    kinds += [("googlenet", "standard", OTHER, 0, 1)]
    networks = pd.DataFrame(kinds, columns=["model", "kind", "world", "seed", "members"])
    numbers = {"test": 600, "permutations": 4, "samples": 1000, "epochs": [2, 3, 4, 3, 2, 2, 1], "accuracy": 0.99}
    numbers |= {"auc": 0.999, "s_auc": np.linspace(0.45, 0.57, 7), "s_error": 0.013, "rest_auc": 0.997}
    numbers |= {"rest_error": 0.002, "robust": np.where(networks["kind"] == "adversarial", 0.25, np.nan), "eps": 0.3}
    networks = networks.assign(**numbers)
    networks.loc[networks["kind"] == "alone", ["accuracy", "auc"]] = 0.66, 0.72
    edges = np.linspace(-12, 12, 49)
    logits = pd.DataFrame(
        [
            {"model": model, "seed": 0, "version": version, "low": low, "high": low + 0.5, "share": 1 / 48}
            for model, version, low in product(("mobilenet_v2", "googlenet"), mnist_cifar.VERSIONS, edges[:-1])
        ]
    )
    uap = pd.DataFrame(
        [
            {"model": model, "world": world, "seed": 0, "eps": 4.0, "share": 0.93 + 0.03 * i, "mean_share": 0.88}
            | {"none": 1.0, "random": 0.99, "mean": 0.8, "uap": 0.1 + 0.2 * i, "cosine": 0.2}
            for i, (model, world) in enumerate((("mobilenet_v2", A), ("googlenet", OTHER)))
        ]
    )
    shown = {f"examples.{world}": random.integers(0, 256, (8, 64, 32, 3), np.uint8) for world in (A, B, OTHER)}
    cells = zip(uap["model"], uap["world"], strict=True)
    shown |= {f"uap.{model}.{world}": random.standard_normal((3, 64, 32)).astype("f") for model, world in cells}
    return {"networks": networks, "logits": logits, "uap": uap, "shown": shown}


def test_table3_has_our_numbers_beside_the_papers(digits: dict) -> None:
    networks = digits["networks"]
    text = mnist_cifar.table3(networks)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    rows = {(row[0], row[1][:1]): row for row in cells[2:]}
    assert len(rows) == 12 + 1 + 3  # the paper's, another world, and those that the paper has not
    both = networks.iloc[:2]["s_auc"]
    here = f"{both.mean():.3f} ± {both.std() / 2**0.5:.3f} (2 networks)"
    assert rows["MobileNetV2", "A"][6:] == ["0.53 ± 0.01", here, "0.990", "1,000", "2 to 3"]
    assert rows["MobileNetV2", "B"][7] == f"{networks.iloc[2]['s_auc']:.3f} ± 0.013"
    assert rows["MobileNetV2", "B"][4:6] == ["1.00 ± 0.00", "0.997 ± 0.002"]
    assert rows["DenseNet121", "C"][6:8] == ["0.54 ± 0.01", "not run"]
    assert rows["GoogLeNet", "2"][2:4] == ["–", "0.999"]
    hard = "MobileNetV2, adversarial (l∞ 0.3; 25 % right under attack)"
    assert rows[hard, "A"][7] == f"{networks.iloc[3]['s_auc']:.3f} ± 0.013"
    assert rows["2 × MobileNetV2, averaged", "A"][7] == f"{networks.iloc[5]['s_auc']:.3f} ± 0.013"
    assert rows["MobileNetV2, picture alone", "A"][3:8] == ["0.720", "–", "–", "–", "–"]
    assert all(len(row) == 11 for row in cells)


def test_the_overview_draws_every_network(digits: dict) -> None:
    networks = digits["networks"]
    examples = {name.removeprefix("examples."): x for name, x in digits["shown"].items() if "examples" in name}
    figure = mnist_cifar.overview(examples, networks, digits["logits"])
    areas = next(ax for ax in figure.axes if ax.get_xlabel().startswith("area"))
    drawn = {round(float(x), 6) for line in areas.containers for x in line.lines[0].get_xdata()}
    wanted = networks[networks["kind"] != "alone"][["auc", "s_auc", "rest_auc"]].stack()
    assert drawn == {*wanted.round(6), 0.72}
    names = [label.get_text() for label in areas.get_yticklabels()]
    assert names[-1] == "MobileNetV2, A, picture alone"
    assert "2 × MobileNetV2, A, averaged" in names
    told = " ".join(text.get_text() for text in areas.texts)
    assert "66 % right" in told and "premise is not met" in told  # noqa: PT018
    learnt = networks.assign(accuracy=0.95)
    figure = mnist_cifar.overview(examples, learnt, digits["logits"])
    assert any("can be learnt: 95 % right" in text.get_text() for ax in figure.axes for text in ax.texts)


def test_few_networks_are_enough(digits: dict) -> None:
    """No picture alone, one model, one sample of each label, logits all beyond the histogram."""
    networks, logits = digits["networks"].iloc[:1], digits["logits"]
    logits = logits[logits["model"] == "mobilenet_v2"].assign(share=0.0)
    figure = mnist_cifar.overview({A: digits["shown"][f"examples.{A}"][3:5]}, networks, logits)
    figure.draw_without_rendering()
    still = {("mobilenet_v2", A): np.zeros((3, 64, 32), np.float32)}
    mnist_cifar.uap(still, digits["uap"]).draw_without_rendering()


def test_the_universal_perturbations_are_what_the_table_says(digits: dict) -> None:
    table, shown = digits["uap"], digits["shown"]
    deltas = {key: shown[f"uap.{'.'.join(key)}"] for key in zip(table["model"], table["world"], strict=True)}
    figure = mnist_cifar.uap(deltas, table)
    images = [ax.images[0].get_array() for ax in figure.axes if ax.images]
    for image, delta in zip(images, deltas.values(), strict=True):
        assert np.allclose(image, 127.5 + 127.5 * delta.transpose(1, 2, 0) / np.abs(delta).max(), atol=0.51)
    share, right = figure.axes[-2:]
    for ax, columns in ((share, ["share", "mean_share"]), (right, ["none", "random", "mean", "uap"])):
        marks = [line for line in ax.lines if line.get_marker() != "None"]
        assert {round(float(x), 6) for line in marks for x in line.get_xdata()} == {
            *(100 * table[columns]).stack().round(6)
        }
    assert "93 to 96 %" in figure.subfigs[0].get_suptitle()


# --- CIFAR-10


def path_rows() -> Iterator[dict[str, object]]:
    for network, epochs in (("clean", 3), ("robust", 2), ("again", 2), ("control", 2)):
        for epoch in range(epochs + 1):
            level = 0.9 - 0.1 * epoch
            yield {"network": network, "epoch": epoch, "theta_init": level, "theta_clean": 1 - level / 9} | {
                "theta_robust": level,
                "high_frequency": level,
                "variation": 1 + level,
            }


@pytest.fixture
def photos() -> dict[str, object]:
    """Tables and pictures of the stages on CIFAR-10: two networks, two seeds."""
    random = np.random.default_rng(1)
    tables: dict[str, list[dict[str, object]]] = {
        name: [] for name in ("accuracy", "features", "path", "perturbations", "activity", "theta", "layers", "lasso")
    }
    shown = {"examples": random.integers(0, 256, (6, 32, 32, 3), np.uint8)}
    rebuilt = {}
    for (net, (side, deep)), seed in product(NETS.items(), (0, 1)):
        about = {"net": net, "seed": seed}
        for network, attacker in product(NETWORKS, ("l2-1", "linf-8")):
            right = {"accuracy": random.random(), "robust": random.random(), "samples": 5000, "test": 1000}
            tables["accuracy"].append(about | {"network": network, "attacker": attacker, "attacked": 300} | right)
        along = {f"{net}.along.{name}": (4, 8, 3, side, side) for name in ("clean", "robust", "again")}
        shown |= {name: random.standard_normal(shape, "f") for name, shape in along.items()}
        for network in NETWORKS[:4]:
            row = about | {"network": network, "layer": 1, "high_frequency": random.random(), "variation": 1.0}
            tables["features"].append(row | {"of": "filters"})
            for layer in (1, 3) if seed == 0 and network != "control" else ():
                row = {"layer": layer, "of": "visualised", "variation": random.random()}
                tables["features"].append(about | {"network": network} | row)
                shown[f"{net}.visualised.{network}.{layer}"] = random.random((2, 3, 32, 32), "f")
            if network in ("init", "clean", "robust"):
                shown |= {f"{net}.{of}.{network}.3": random.random((2, 3, 32, 32), "f") for of in ("alone", "black")}
            shown[f"{net}.visualised.linf-8.clean.3"] = random.random((2, 3, 32, 32), "f")
            shown[f"{net}.filters.{network}"] = random.standard_normal((20, 3, side, side), "f")
            shown[f"{net}.delta.{network}"] = random.standard_normal((6, 3, 32, 32), "f")
            row = {"pixels": 0.7, "dct": 0.4, "haar": random.random(), "variation": 0.5, "pictures": 9}
            tables["perturbations"] += [about | {"network": network} | row] if network != "init" else []
        tables["path"] += [about | row for row in path_rows()]
        layers = {f"active_{i}": 0.4 for i in range(1, deep + 1)}
        tables["activity"] += [about | {"network": "clean", "epoch": i, "active": 0.5} | layers for i in range(4)]
        for layer in (1, 3):
            tables["theta"] += [
                about | {"layer": layer, "of": of, "low": 0.1, "median": 0.1 + 0.2 * i, "high": 1.0}
                for i, of in enumerate(cifar10.KINDS)
            ]
            tables["layers"] += [
                about | {"layer": layer, "network": network, "robust": 0.1 * i}
                for i, network in enumerate(NETWORKS[:4])
            ]
    for net, target in product(NETS, ("pictures", "clean_delta", "robust_delta")):
        rebuilt[f"{net}.{target}"] = random.random((6, 3, 32, 32), "f") - 0.5
        for i, features in enumerate(("random", "clean", "robust", "control")):
            rebuilt[f"{net}.{target}.{features}"] = random.random((6, 3, 32, 32), "f") - 0.5
            tables["lasso"] += [
                {"net": net, "features": features, "target": target, "lam": lam, "sparsity": 0.01 / lam}
                | {"error": lam - 0.01 * i, "pictures": 6}
                for lam in (0.4, 0.2, 0.1)
            ]
    return {name: pd.DataFrame(rows) for name, rows in tables.items()} | {"shown": shown, "rebuilt": rebuilt}


def test_table1_has_our_numbers_and_the_papers(photos: dict) -> None:
    t = photos["accuracy"]
    text = cifar10.table1(t)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert cells[0][2:] == ["ℓ∞(4/255)", "ℓ∞(8/255)", "ℓ2(0.5, 0.12)", "ℓ2(1, 0.25)", "ℓ2(1)"]
    assert cells[4][2:] == ["61.9 (83.9)", "46.0 (73.7)", "60.0 (79.2)", "42.2 (65.5)", "–"]
    block = [row for row in cells if row[0] == "here, ResNet-10"]
    at = cells.index(block[0])
    means = t[t["net"] == "resnet-10"].groupby(["network", "attacker"])[["robust", "accuracy"]].mean() * 100
    for line, (weak, strong) in enumerate(
        (("clean", "clean"), ("l2-1.random", "linf-8.random"), ("robust", "linf-8.clean"), ("control", "control"))
    ):
        for column, key in ((6, (weak, "l2-1")), (3, (strong, "linf-8"))):
            assert cells[at + line][column] == "{:.1f} ({:.1f})".format(*means.loc[key])
        assert cells[at + line][2] == "–"
    assert "5,000 training pictures" in text and "means over 2 seeds" in text  # noqa: PT018


def test_theta_is_drawn_with_its_range_and_accuracies(photos: dict) -> None:
    figure = cifar10.theta(photos["theta"], photos["layers"], photos["accuracy"])
    for ax in figure.axes:
        medians = [line.get_ydata()[0] for line in ax.lines if len(line.get_xdata()) == 1]
        assert np.allclose(medians, 2 * [0.1, 0.3, 0.5, 0.7, 0.9])
        assert ax.get_xticklabels()[1].get_text() == "layer 3\n10 → 20 %\n(control 30 %)"
    assert "0.50 after adversarial training (control 0.70)" in figure.axes[0].get_title("left")


def test_the_path_goes_on_where_it_ended(photos: dict) -> None:
    figure = cifar10.path(photos["path"], photos["activity"], photos["accuracy"])
    assert len(figure.axes) == 6
    rough = figure.axes[1]
    lines = [list(line.get_xdata()) for line in rough.lines if len(line.get_xdata()) > 2]
    assert lines == [[0, 1, 2, 3], [3, 4, 5], [5, 6, 7], [3, 4, 5]]  # the last is the control
    assert rough.get_title("left") == "their total variation:\n1.600 → 1.700 → 1.700 (control 1.700)"
    assert len(figure.axes[2].lines) == 5 + 1  # AlexNet has 5 layers, whatever others have


def test_filters_are_shown_if_they_are_large(photos: dict) -> None:
    features = photos["features"]
    figure = cifar10_pictures.filters(photos["shown"], features, photos["accuracy"])
    assert len(figure.subfigs) == 1  # AlexNet's alone
    first = figure.axes[0].images[0].get_array()
    w = photos["shown"]["alexnet.filters.init"][0].transpose(1, 2, 0)
    assert np.allclose(first[:11, :11], 127.5 + 127.5 * w / np.abs(w).max(), atol=0.51)
    means = features[(features["net"] == "alexnet") & (features["of"] == "filters")].groupby("network")[
        "high_frequency"
    ]
    heights = [bar.get_width() for bar in figure.axes[3].patches]
    assert np.allclose(heights, means.mean()[["init", "clean", "control", "robust"]])
    small = features[features["net"] == "resnet-10"]
    figure = cifar10_pictures.filters(photos["shown"], small, photos["accuracy"])
    assert "total variation" in figure.subfigs[0].get_suptitle()


def test_filters_along_training_end_with_each_stretch(photos: dict) -> None:
    figure = cifar10_deep.along(photos["shown"], photos["accuracy"])
    first = figure.axes[0]
    titles = [label.get_text() for label in first.get_xticklabels()]
    assert titles == ["0", "\n1", "\n2", "clean\n3", "\n1", "\n2", "robust\n3", "\n1", "\n2", "again\n3"]
    w = photos["shown"]["alexnet.along.again"][-1, -1].transpose(1, 2, 0)
    image = first.images[0].get_array()
    assert np.allclose(image[-11:, -11:], 127.5 + 127.5 * w / np.abs(w).max(), atol=0.51)
    long = {name: np.zeros((41, 1, 3, 5, 5)) for name in ("clean", "robust", "again")}
    titles, filters = cifar10_deep._epochs(long, 10)
    assert titles == ["0", "\n13", "\n27", "clean\n40", "\n13", "\n27", "robust\n40", "\n13", "\n27", "again\n40"]
    assert len(filters) == 10


def test_deep_features_have_a_row_for_each_layer_and_attacker(photos: dict) -> None:
    figure = cifar10_deep.deep(photos["shown"], photos["accuracy"])
    alone, attackers = ([label.get_text() for label in ax.get_yticklabels()] for ax in figure.axes[:2])
    networks = ("random", "clean", "robust")
    assert alone == [f"layer 3{on}, {name}" for on in ("", ", on black") for name in networks]
    assert attackers == ["clean", "ℓ2(1)", "ℓ∞(8/255)"]
    last = photos["shown"]["alexnet.visualised.linf-8.clean.3"][-1].transpose(1, 2, 0)
    image = figure.axes[1].images[0].get_array()
    assert np.allclose(image[-32:, -32:], 255 * last, atol=0.51)
    nothing = {name: x for name, x in photos["shown"].items() if "visualised" not in name}
    cifar10_deep.deep(nothing, photos["accuracy"]).draw_without_rendering()
    cifar10_deep.along({}, photos["accuracy"]).draw_without_rendering()


def test_figures_without_pictures_are_drawn_from_the_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digits: dict, photos: dict
) -> None:
    (tmp_path / "a/evidence").mkdir(parents=True)
    for name in cifar10_figures.LONG:
        long = photos[name].assign(samples=50_000) if name == "accuracy" else photos[name]
        store.save_table(tmp_path / f"a/evidence/cifar10_{name}.csv", long)
        (tmp_path / f"a/evidence/cifar10_{name}.json").write_text("{}")
    made = drawn(tmp_path / "a", monkeypatch, digits, photos)
    assert b"50,000 training pictures" in made["cifar10_theta.svg"]
    assert b"50,000 training pictures" not in made["cifar10_filters.svg"]


def test_perturbations_and_reconstructions_are_what_the_tables_say(photos: dict) -> None:
    table = photos["perturbations"]
    figure = cifar10_pictures.perturbations(photos["shown"], table, photos["accuracy"])
    by = table[table["net"] == "alexnet"].groupby("network")["haar"].mean()
    told = f"{by['clean']:.2f} → {by['robust']:.2f}\n(control {by['control']:.2f})"
    assert figure.axes[1].get_title("left") == f"density in wavelets {told}"
    image = figure.axes[0].images[0].get_array()
    assert np.array_equal(image[:32, :32], photos["shown"]["examples"][0])
    both = cifar10_pictures.perturbations(photos["shown"] | photos["rebuilt"], table, photos["accuracy"])
    delta = photos["rebuilt"]["alexnet.robust_delta"][-1].transpose(1, 2, 0)
    image = both.axes[0].images[0].get_array()
    assert np.allclose(image[-32:, -32:], 127.5 + 127.5 * delta / np.abs(delta).max(), atol=0.51)
    figure = cifar10_pictures.lasso(photos["rebuilt"], photos["lasso"], photos["accuracy"])
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["original", *(f"{f}\n5.0 %,\nerror {e}" for f, e in (
        ("random", "0.20"), ("clean", "0.19"), ("control", "0.17"), ("robust", "0.18")))]  # fmt: skip
    titles = [ax.get_title("left") for ax in figure.axes[1:3]]
    assert titles[0].endswith("error at 5 %: random 0.20, clean 0.19, robust 0.18")
    assert titles[1].endswith("error at 5 %: clean 0.18, robust 0.18")


def test_what_is_missing_is_left_out(photos: dict) -> None:
    """No perturbation found at all, nothing kept of one network, curves without a sparsity in common."""
    nothing = photos["perturbations"].drop(columns=["pixels", "dct", "haar", "variation"]).assign(pictures=0)
    shown = {name: 0 * x if "delta" in name else x for name, x in photos["shown"].items() if "resnet" not in name}
    accuracy = photos["accuracy"]
    dense = cifar10_pictures.perturbations(shown, nothing, accuracy)
    assert "–" in dense.axes[1].get_title("left")
    lasso = photos["lasso"]
    far = lasso.assign(sparsity=lasso["sparsity"].where(lasso["features"] != "random", 0.0))
    figures = [
        dense,
        cifar10_pictures.features(shown, photos["features"], accuracy),
        cifar10_pictures.lasso({}, far, accuracy),
        cifar10.theta(photos["theta"].query("of != 'clean, control'"), photos["layers"].iloc[:0], accuracy),
        cifar10.path(photos["path"].query("network == 'clean' and epoch < 1"), photos["activity"].iloc[:0], accuracy),
    ]
    for figure in figures:
        figure.draw_without_rendering()


# --- The stages


def drawn(folder: Path, monkeypatch: pytest.MonkeyPatch, digits: dict, photos: dict) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    shutil.copy(ROOT / "params.yaml", folder)
    set_params(folder / "params.yaml", {"figures.dpi": 50})
    for part, tables in (("mnist_cifar", digits), ("cifar10", photos)):
        for name, table in tables.items():
            if isinstance(table, pd.DataFrame):
                store.save_table(f"plots/{part}_{name}.csv", table)
        store.save_tensors(f"data/{part}_shown.safetensors", tables["shown"])
    store.save_tensors("data/cifar10_lasso.safetensors", photos["rebuilt"])
    mnist_cifar_figures.main(load(FigureParams))
    cifar10_figures.main(load(FigureParams))
    made = [file for ending in ("svg", "png", "md") for file in (folder / "plots").glob(f"*.{ending}")]
    return {file.name: file.read_bytes() for file in made}


def test_equal_tables_give_equal_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digits: dict, photos: dict
) -> None:
    photos = {k: t.query("net == 'alexnet'") if isinstance(t, pd.DataFrame) else t for k, t in photos.items()}
    first, render = drawn(tmp_path / "a", monkeypatch, digits, photos), style.render
    monkeypatch.setattr(style, "render", lambda *how: b"" if how[1] == "png" else render(*how))  # half the time
    second = drawn(tmp_path / "b", monkeypatch, digits, photos)
    names = ["mnist_cifar", "mnist_cifar_uap"]
    names += [f"cifar10_{name}" for name in ("filters", "theta", "path", "perturbations", "features", "lasso")]
    names += ["cifar10_along", "cifar10_deep"]
    wanted = {f"{name}.{form}" for name in names for form in ("svg", "png")}
    assert set(first) == wanted | {"mnist_cifar_table3.md", "cifar10_table1.md"}
    assert all(second[name] == content for name, content in first.items() if not name.endswith(".png"))
    assert max(map(len, first.values())) < 1.5e6


def test_pictures_side_by_side() -> None:
    white, black = np.ones((4, 4, 3)), np.zeros((4, 4, 3))
    image, across, down = tiles.montage([[black, None], [white]])
    assert image.shape == (9, 9, 3)
    assert image.sum() == 3 * (81 - 16)
    assert list(across) == [1.5, 6.5]
    assert list(down) == [1.5, 6.5]
    assert tiles.signed(np.zeros((3, 2, 2))) is None
    assert markdown.span([]) == markdown.span([np.nan]) == markdown.NONE
    assert markdown.span([0.1, 0.3], ".1f") == "0.1 to 0.3"
