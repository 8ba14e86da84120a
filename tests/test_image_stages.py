"""The stages on pictures, at a tiny scale: what they write, that they write it again, what they say of bad input."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from brittle.core import progress, store
from brittle.core.errors import BadInput
from brittle.core.params import load
from brittle.core.rng import rng
from brittle.nets.alexnet import AlexNet
from brittle.nets.weights import digest
from brittle.pictures import (
    cifar10_lasso,
    cifar10_layers,
    cifar10_probe,
    cifar10_train,
    fetch,
    fitting,
    mnist_cifar_probe,
    mnist_cifar_train,
)
from brittle.pictures.cifar10_params import Cifar10Params
from brittle.pictures.mnist_cifar_params import MnistCifarParams
from brittle.pictures.params import ImagesParams
from brittle.train.image_sgd import ImagePlan
from brittle.worlds.mnist_cifar import CLASSES
from conftest import ROOT
from tiny import TINY, set_params

NET, MODEL = "alexnet", "mobilenet_v2"


def few(name: str, root: str) -> dict[str, np.ndarray]:
    """Bright and dark pictures in the shape of the real ones, so that there is something to learn."""
    shape, draws = {"mnist": (28, 28), "cifar10": (32, 32, 3)}[name], np.random.default_rng(0)
    found = {}
    for split in ("train", "test"):
        y = np.arange(100, dtype=np.uint8) % 10
        noise = draws.integers(0, 100, (100, *shape))
        found |= {f"{split}_x": (noise + 15 * y.reshape(-1, *[1] * len(shape))).astype(np.uint8), f"{split}_y": y}
    return found


def run_all(folder: Path) -> None:
    """Every stage on pictures, in this folder."""
    shutil.copy(ROOT / "params.yaml", folder)
    set_params(folder / "params.yaml", TINY | {"cifar10.nets": [NET]})
    for name in ("mnist", "cifar10"):
        fetch.fetch(name, load(ImagesParams).images.root)
    p, q = load(MnistCifarParams), load(Cifar10Params)
    mnist_cifar_train.main(p, MODEL)
    mnist_cifar_probe.main(p)
    cifar10_train.main(q, NET)
    cifar10_layers.main(q, NET)
    cifar10_probe.main(q)
    cifar10_lasso.main(q)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every stage on pictures has run here."""
    folder = tmp_path_factory.mktemp("pictures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch, "obtain", few)
        patch.chdir(folder)
        run_all(folder)
    return folder


def test_no_checkpoint_is_left_behind(folder: Path) -> None:
    assert not list((folder / progress.FOLDER).glob("*.safetensors"))


def read(folder: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(folder / f"plots/{name}.csv")


def test_every_network_and_ensemble_is_probed(folder: Path) -> None:
    t = read(folder, "mnist_cifar_networks")
    worlds = TINY["mnist_cifar.worlds"]
    single = t[t["members"] == 1]
    assert [(r.kind, r.world, r.seed) for r in single.itertuples()] == [
        ("standard", worlds[0], 0),
        ("standard", worlds[0], 1),
        ("standard", worlds[1], 0),
        ("adversarial", worlds[0], 0),
        ("alone", worlds[0], 0),
    ]
    (ensemble,) = t[t["members"] > 1].itertuples()
    assert (ensemble.kind, ensemble.world, ensemble.members) == ("standard", worlds[0], 2)
    # A network that never sees the digit does not notice another one.
    alone = t[t["kind"] == "alone"].iloc[0]
    assert alone["s_auc"] == alone["auc"]
    assert alone["s_ks"] == 0


def test_the_budget_of_a_perturbation_is_that_of_its_picture(folder: Path) -> None:
    t = read(folder, "mnist_cifar_uap")
    shown = store.load_tensors(folder / "data/mnist_cifar_shown.safetensors", {})
    for row in t.itertuples():
        delta = shown[f"uap.{row.model}.{row.world}"].astype(float)
        assert 0 < np.linalg.norm(delta) <= row.eps * (1 + 1e-5)
        assert (delta[:, :32] ** 2).sum() / (delta**2).sum() == pytest.approx(row.share, rel=1e-3)


def test_frozen_layers_stay_and_the_rest_begins_anew(folder: Path) -> None:
    stage1 = store.load_tensors(folder / f"models/cifar10/{NET}.safetensors", {})
    layers = store.load_tensors(folder / f"models/cifar10_layers/{NET}.safetensors", {})
    for name in ("init", "clean", "robust", "control"):
        for layer in range(5):
            kept = np.array_equal(
                layers[f"0.3.{name}.features.{layer}.weight"], stage1[f"0.l2-1-0.25.random.features.{layer}.weight"]
            )
            assert kept == (layer < 2)


def test_training_ends_when_what_is_seen_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it is resumed from its last epoch."""
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    x, y = torch.zeros(8, 32, 32, 3, dtype=torch.uint8), torch.arange(8)
    plan, epochs = ImagePlan(5, 4, 0.01, 0.9, 0.0), iter(range(100))
    how = {"look": lambda net: {"epoch": np.array(next(epochs))}, "enough": lambda seen: seen["epoch"] >= 2}
    found = []
    with progress.resumable("some_stage") as checkpoints, progress.bar(1, "training") as shown:
        for _ in range(2):
            net = AlexNet()
            net.draw(rng(0, "weights"))
            images = load(ImagesParams).images
            found.append(fitting.fit(checkpoints, images, net, x, y, plan, 0, shown, **how))
    assert [len(each.losses) for each in found] == [2, 2]
    assert found[0].seen["epoch"].tolist() == found[1].seen["epoch"].tolist() == [0, 1, 2]
    assert digest(found[0].net) == digest(found[1].net)


def test_theta_of_the_first_layer_is_that_of_the_stored_filters(folder: Path) -> None:
    arrays = store.load_tensors(folder / f"models/cifar10_layers/{NET}.safetensors", {})
    a, b = (arrays[f"0.1.{name}.features.0.weight"].reshape(64, -1).astype(float) for name in ("clean", "robust"))
    theta = np.abs((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))
    t = read(folder, "cifar10_theta").query("layer == 1 and of == 'clean, robust'")
    assert t["median"].item() == pytest.approx(np.median(theta), rel=1e-4)


def test_filters_along_training_begin_and_end_with_the_networks(folder: Path) -> None:
    arrays = store.load_tensors(folder / f"models/cifar10/{NET}.safetensors", {})
    path = arrays["0.path.robust"]
    assert np.array_equal(path[0], arrays["0.clean.features.0.weight"])
    assert np.array_equal(path[-1], arrays["0.robust.features.0.weight"])
    assert len(path) == TINY["cifar10.robust.epochs"] + 1


@pytest.mark.parametrize(
    ("stage", "cell"), [(mnist_cifar_train, "vgg16"), (cifar10_train, "vgg16"), (cifar10_layers, "x")]
)
def test_an_unknown_network_gives_one_line(
    stage: object, cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    params = load(MnistCifarParams if stage is mnist_cifar_train else Cifar10Params)
    with pytest.raises(BadInput, match=f"^{cell}: is not a (model|network); must be "):
        stage.main(params, cell)


def test_a_data_set_that_cannot_be_had_leaves_its_reason_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(name: str, root: str) -> None:
        raise BadInput(f"{name}: no source has it")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fetch, "FOLDER", tmp_path)
    monkeypatch.setattr(fetch, "obtain", fails)
    with pytest.raises(BadInput):
        fetch.fetch("mnist", "nowhere")
    assert [path.name for path in tmp_path.iterdir()] == ["missing-mnist.txt"]
    monkeypatch.setattr(fetch, "obtain", few)
    fetch.fetch("mnist", "nowhere")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_the_names_of_classes_are_cifar10s() -> None:
    assert len(CLASSES) == 10
    assert CLASSES[1] == "automobile"
    assert CLASSES[9] == "truck"
