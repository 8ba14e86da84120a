"""MNIST-CIFAR: its samples, what exchanging the digit exchanges, its networks' jobs, and what params.yaml may say."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ruamel.yaml import YAML
from torch import Tensor

from brittle.core.errors import BadInput
from brittle.core.params import Section, load, read, validated
from brittle.core.rng import rng
from brittle.params import overlaid
from brittle.pictures import mnist_cifar
from brittle.pictures.cifar10_nets import within
from brittle.pictures.cifar10_params import Cifar10Params, deepest_layer
from brittle.pictures.mnist_cifar_data import Source
from brittle.pictures.mnist_cifar_params import MnistCifarParams
from brittle.pictures.mnist_cifar_probe import DIGIT
from brittle.pictures.mnist_cifar_train import how
from brittle.pictures.params import ImagesParams
from brittle.probes.image_uap import Ascent, on_upper_half, universal
from brittle.probes.randomised import randomised
from brittle.worlds.classes import CLASSES
from brittle.worlds.mnist_cifar import LETTERS, Blocks, classes, draw
from conftest import ROOT

WORLD = "1-4-automobile-truck"
DIGITS, PICTURES = 60, 90  # six and nine of each class


def labels(n: int, purpose: str) -> np.ndarray:
    return rng(0, purpose).permutation(np.arange(n) % 10)


DIGIT_LABELS, PICTURE_LABELS = labels(DIGITS, "digits"), labels(PICTURES, "pictures")


def blocks() -> Blocks:
    """A digit is as bright as its number + 1, all over; a picture is noise that ends with its number."""
    digits = (torch.arange(DIGITS) + 1).to(torch.uint8)[:, None, None].expand(-1, 28, 28).contiguous()
    pictures = torch.from_numpy(rng(0, "noise").integers(0, 256, (PICTURES, 32, 32, 3), dtype=np.uint8))
    pictures[:, -1, -1, -1] = torch.arange(PICTURES).to(torch.uint8)
    return Blocks(digits, pictures)


def drawn(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    return draw(WORLD, DIGIT_LABELS, PICTURE_LABELS, n, rng(seed, "draw"))


# The world


def test_a_world_s_name_says_its_classes() -> None:
    assert classes("1-4-automobile-truck") == ((1, 4), (1, 9))
    assert classes("0-1-airplane-ship") == ((0, 1), (0, 8))
    assert sorted(LETTERS.values()) == ["A", "B", "C"]
    assert CLASSES == ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@pytest.mark.parametrize("n", [4, 10, 11, 40, 101])
def test_samples_are_balanced_pairs_of_the_label_s_classes(n: int) -> None:
    pairs, y = drawn(n)
    assert pairs.shape == (n, 2)
    assert y.shape == (n,)
    assert pairs.dtype == y.dtype == torch.float32
    digit, picture = pairs.long().T.numpy()
    assert np.array_equal(digit, pairs[:, 0])
    negative = y.numpy() < 0
    assert set(y.tolist()) == {-1.0, 1.0}
    assert abs(int(y.sum())) == n % 2
    assert set(DIGIT_LABELS[digit[negative]]) == {1}
    assert set(DIGIT_LABELS[digit[~negative]]) == {4}
    assert set(PICTURE_LABELS[picture[negative]]) == {CLASSES.index("automobile")}
    assert set(PICTURE_LABELS[picture[~negative]]) == {CLASSES.index("truck")}


@pytest.mark.parametrize("n", [6, 12, 14, 60, 77])
def test_each_serves_again_only_when_all_others_have(n: int) -> None:
    pairs, y = drawn(n)
    for sign in (-1, 1):
        rows = pairs[y == sign].long()
        for column, of_a_class in ((0, DIGITS // 10), (1, PICTURES // 10)):
            uses = Counter(rows[:, column].tolist())
            assert len(uses) == min(of_a_class, len(rows))
            assert max(uses.values()) - (min(uses.values()) if len(uses) == of_a_class else 0) <= 1
            assert max(uses.values()) == -(-len(rows) // of_a_class)


def test_order_and_pairing_are_random_and_reproducible() -> None:
    pairs, y = drawn(400)
    again, same = drawn(400)
    other, _ = drawn(400, seed=1)
    assert torch.equal(pairs, again)
    assert torch.equal(y, same)
    assert not torch.equal(pairs, other)
    changes = int((y[1:] != y[:-1]).sum())
    assert abs(changes - 200) < 50  # labels in no order
    partners = {(int(a), int(b)) for a, b in pairs}
    assert len(partners) > 80  # of 2 · 6 · 9 possible ones
    assert len(set(pairs[:20, 0].tolist())) > 5


def test_pairs_are_exact_for_all_of_mnist() -> None:
    """Numbers up to 60,000 as float32."""
    digit_labels, picture_labels = np.arange(60_000) % 10, np.arange(50_000) % 10
    pairs, y = draw("0-9-airplane-truck", digit_labels, picture_labels, 12_000, rng(0, "draw"))
    assert pairs[:, 0].max() == 59_999
    assert len(set(pairs[y > 0][:, 0].tolist())) == 6000
    assert torch.equal(pairs, pairs.round())


def test_the_digit_is_above_the_picture_in_a_black_frame_and_grey() -> None:
    parts = blocks()
    x = parts.show(torch.tensor([[3.0, 5.0], [59.0, 89.0]]))
    assert x.shape == (2, 64, 32, 3)
    assert x.dtype == torch.uint8
    for row, (digit, picture) in zip(x, ((3, 5), (59, 89)), strict=True):
        assert torch.equal(row[32:], parts.pictures[picture])
        above = row[:32]
        assert (above[2:30, 2:30] == digit + 1).all()
        frame = torch.ones(32, 32, dtype=torch.bool)
        frame[2:30, 2:30] = False
        assert not above[frame].any()
    uneven = Blocks(torch.from_numpy(rng(0, "x").integers(0, 256, (1, 28, 28), dtype=np.uint8)), parts.pictures)
    shown = uneven.show(torch.zeros(1, 2))[0]
    for colour in range(3):
        assert torch.equal(shown[2:30, 2:30, colour], uneven.digits[0])


# Exchanging


def test_exchanging_s_exchanges_the_digits_and_nothing_else() -> None:
    parts, n = blocks(), 36
    pairs, y = drawn(n)
    given = pairs.clone()
    seen: list[tuple[Tensor, Tensor]] = []

    def f(some: Tensor) -> Tensor:
        x = parts.show(some)
        seen.append((x[:, 16, 16, 0].long() - 1, x[:, -1, -1, -1].long()))  # their numbers, read off the samples
        assert torch.equal(seen[-1][1], some[:, 1].long())
        return torch.arange(len(some)).float()

    found = randomised(f, pairs, y, DIGIT, rng(0, "donors"), 5, ("s", "rest"))
    assert set(found) == {"standard", "s", "rest"}
    assert torch.equal(pairs, given)
    digit, picture = given.long().T
    standard, *others = seen
    assert len(others) == 10
    assert torch.equal(standard[0], digit)
    assert torch.equal(standard[1], picture)
    for digits, pictures in others[:5]:
        assert torch.equal(pictures, picture)
        assert not torch.equal(digits, digit)
        assert Counter(digits.tolist()) == Counter(digit.tolist())  # each serves once
    for digits, pictures in others[5:]:
        assert torch.equal(digits, digit)
        assert not torch.equal(pictures, picture)
        assert Counter(pictures.tolist()) == Counter(picture.tolist())
    assert len({tuple(digits.tolist()) for digits, _ in others[:5]}) == 5


def test_exchanging_tells_who_looks_at_the_digit() -> None:
    """Two that know: one by the digit, one by the picture."""
    pairs, y = drawn(600)
    by_digit = torch.tensor([{1: -1.0, 4: 1.0}.get(int(label), 0.0) for label in DIGIT_LABELS])
    by_picture = torch.tensor([{1: -1.0, 9: 1.0}.get(int(label), 0.0) for label in PICTURE_LABELS])
    for column, values, blind in ((0, by_digit, "rest"), (1, by_picture, "s")):
        found = randomised(lambda p, c=column, v=values: v[p[:, c].long()], pairs, y, DIGIT, rng(0, "donors"), 3)
        assert found["standard"].mean.auc_roc == 1
        assert found[blind].mean.auc_roc == 1
        assert found["s" if blind == "rest" else "rest"].mean.auc_roc == pytest.approx(0.5, abs=0.06)
        assert found[f"{'s' if blind == 'rest' else 'rest'}_swapped"].mean.auc_roc == 0


def test_scores_are_of_what_a_network_sees() -> None:
    parts = blocks()
    pairs, _ = drawn(300)  # more than are evaluated at a time
    seen: list[Tensor] = []

    class Sees(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            seen.append(x)
            return x[:, 2, -1, -1] * 255

    for kind, height in (("standard", 64), ("adversarial", 64), ("alone", 32)):
        seen.clear()
        values = mnist_cifar.scores(Sees(), kind, parts, pairs)
        np.testing.assert_allclose(values, pairs[:, 1], atol=1e-4)
        assert {tuple(x.shape[1:]) for x in seen} == {(3, height, 32)}
        assert all(x.is_contiguous(memory_format=torch.channels_last) for x in seen)
        assert not values.requires_grad


def test_the_share_on_the_digit_is_of_the_upper_half() -> None:
    delta = torch.zeros(3, 64, 32)
    delta[1, 31, 5], delta[2, 32, 5] = 2.0, 1.0
    assert on_upper_half(delta) == pytest.approx(0.8)


def test_a_universal_perturbation_leaves_pixels_in_0_1() -> None:
    x = torch.from_numpy(rng(0, "x").random((40, 3, 4, 2), dtype=np.float32))
    y = torch.where(torch.arange(40) % 2 == 0, 1.0, -1.0)
    seen: list[Tensor] = []

    class Linear(torch.nn.Module):
        def forward(self, some: Tensor) -> Tensor:
            seen.append(some.detach())
            return some[:, 0].sum((1, 2)) - some[:, 1].sum((1, 2))

    row, _ = universal(Linear(), x, y, Ascent(eps=2.0, step=1.0, steps=1, epochs=10, samples=20), seed=0)
    assert len(seen) >= 10 + 4  # the passes, and four accuracies
    assert all(float(some.min()) >= 0 and float(some.max()) <= 1 for some in seen)
    assert (row["passes"], row["eps"]) == (10, 2.0)
    assert row["uap"] < row["none"]


def test_train_and_test_and_worlds_have_their_own_draws() -> None:
    y = torch.from_numpy(DIGIT_LABELS), torch.from_numpy(PICTURE_LABELS)
    sources = {split: Source(split, blocks(), *y) for split in ("train", "test")}
    pairs = {split: source.draw(WORLD, 40)[0] for split, source in sources.items()}
    assert not torch.equal(pairs["train"], pairs["test"])
    assert torch.equal(pairs["train"], sources["train"].draw(WORLD, 40)[0])


# params.yaml

GOOD = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
MISSING = object()


def loaded(tmp_path: Path, schema: type[Section], changes: dict[str, Any]) -> Any:
    content = deepcopy(GOOD)
    for key, value in changes.items():
        *path, last = key.split(".")
        section = content
        for part in path:
            section = section[part]
        if value is MISSING:
            del section[last]
        else:
            assert last in section
            section[last] = value
    content = {key: value for key, value in content.items() if key in schema.model_fields}  # no others: it is slow
    YAML(typ="safe", pure=True).dump(content, tmp_path / "params.yaml")
    return load(schema, tmp_path / "params.yaml")


def refused(tmp_path: Path, schema: type[Section], changes: dict[str, Any], start: str) -> str:
    with pytest.raises(BadInput) as error:
        loaded(tmp_path, schema, changes)
    line = str(error.value)
    assert "\n" not in line
    assert line.startswith(f"params.yaml: {start}"), line
    assert "must" in line or "is not a parameter" in line
    return line


A, B = "0-1-automobile-truck", "1-4-automobile-truck"
BAD = [
    ("worlds", []),
    ("worlds", ["0-0-automobile-truck"]),
    ("worlds", ["0-1-truck-truck"]),
    ("worlds", ["0-1-car-truck"]),
    ("worlds", ["0-10-automobile-truck"]),
    ("worlds", ["0-1-automobile"]),
    ("worlds", ["0-1-automobile-truck-ship"]),
    ("worlds", ["0-1-Automobile-truck"]),
    ("worlds", ["0-1-automobile-truck\n"]),
    ("worlds", [A, A]),
    ("worlds", [A, 5]),
    ("worlds", A),
    ("worlds", None),
    ("models", []),
    ("models", ["vgg16"]),
    ("models", ["resnet50", "resnet50"]),
    ("models", ["resnet50@" + A]),
    ("skip", ["vgg16@" + A]),
    ("skip", ["mobilenet_v2"]),
    ("skip", ["mobilenet_v2@0-0-automobile-truck"]),
    ("skip", ["mobilenet_v2@somewhere"]),
    ("skip", [f"mobilenet_v2@{A}"] * 2),
    ("more_seeds", ["mobilenet_v2@0-1-car-truck"]),
    ("stem", "large"),
    ("stem", "small"),
    ("size", 0),
    ("size", 1.5),
    ("samples", 2),
    ("samples", 1000.0),
    ("test", 0),
    ("seeds", []),
    ("seeds", [0, 0]),
    ("training.batch", 1),
    ("training.batch", 1001),
    ("training.epochs", 0),
    ("training.lr", 0),
    ("training.lr", float("nan")),
    ("training.momentum", 1.0),
    ("training.weight_decay", -1e-3),
    ("training.drops", [0]),
    ("training.drops", [3, 2]),
    ("training.drops", [2, 2]),
    ("training.drops", [1.5]),
    ("training.drops", [True]),
    ("training.factor", 0),
    ("training.target", -1),
    ("adversarial.models", ["vgg16"]),
    ("adversarial.eps", 0),
    ("adversarial.eps", 1.5),
    ("adversarial.steps", 0),
    ("adversarial.warmup", -1),
    ("adversarial.recalibrate", 1),
    ("alone.samples", 10),
    ("alone.lr", "fast"),
    ("permutations", 0),
    ("uap.eps", 0),
    ("uap.samples", 1),
]


@pytest.mark.parametrize(("key", "value"), BAD, ids=lambda value: str(value)[:30])
def test_a_bad_value_of_mnist_cifar_gives_one_clear_line(tmp_path: Path, key: str, value: object) -> None:
    named = "samples" if key == "training.batch" and value == 1001 else key  # or the other of the two that do not fit
    refused(tmp_path, MnistCifarParams, {f"mnist_cifar.{key}": value}, f"mnist_cifar.{named} = ")


def test_a_key_that_is_missing_or_unknown_gives_one_clear_line(tmp_path: Path) -> None:
    refused(tmp_path, MnistCifarParams, {"mnist_cifar.uap.eps": MISSING}, "mnist_cifar.uap.eps: is missing")
    refused(tmp_path, Cifar10Params, {"cifar10.lasso.weights": MISSING}, "cifar10.lasso.weights: is missing")
    refused(tmp_path, Cifar10Params, {"cifar10.clean": 3}, "cifar10.clean = 3: must be a section")
    refused(tmp_path, ImagesParams, {"images.root": ""}, "images.root = ''")


def test_a_model_needs_a_world(tmp_path: Path) -> None:
    worlds = {"mnist_cifar.worlds": [A, B], "mnist_cifar.models": ["resnet50", "googlenet"]}
    skip = [f"resnet50@{A}", f"resnet50@{B}"]
    line = refused(
        tmp_path, MnistCifarParams, worlds | {"mnist_cifar.skip": [*skip, f"googlenet@{A}"]}, "mnist_cifar.skip = "
    )
    assert "resnet50" in line.partition("must")[2]
    p = loaded(tmp_path, MnistCifarParams, worlds | {"mnist_cifar.skip": skip[:1]}).mnist_cifar
    assert {job.world for job in mnist_cifar.jobs(p, "resnet50")} == {B}


def test_every_training_has_a_batch_of_samples(tmp_path: Path) -> None:
    """An incomplete batch is left out, so that there would be none; one alone would be smaller than said."""
    for key in ("samples", "alone.samples", "adversarial.samples"):
        refused(tmp_path, MnistCifarParams, {f"mnist_cifar.{key}": 40}, f"mnist_cifar.{key} = 40: must be")


@pytest.mark.parametrize("samples", [600, 700])
def test_the_universal_perturbation_leaves_samples_to_measure_it_on(tmp_path: Path, samples: int) -> None:
    changes = {"mnist_cifar.test": 600, "mnist_cifar.uap.samples": samples}
    refused(tmp_path, MnistCifarParams, changes, f"mnist_cifar.uap.samples = {samples}: must be")


BAD_CIFAR10 = [
    ("nets", []),
    ("nets", ["vgg"]),
    ("nets", ["resnet-12"]),
    ("nets", ["resnet-34-1"]),
    ("nets", ["resnet-34-11"]),
    ("nets", ["resnet"]),
    ("nets", ["alexnet", "alexnet"]),
    ("samples", 1),
    ("samples", 50_001),
    ("test", 10_001),
    ("seeds", []),
    ("first", 0),
    ("batch", 5001),
    ("batch", 1),
    ("momentum", 1),
    ("alexnet.lr", 0),
    ("factor", 0),
    ("clean.epochs", 0),
    ("clean.rate", 0),
    ("robust.drops", [3, 3]),
    ("attackers", []),
    ("attackers", ["linf-0"]),
    ("attackers", ["linf-8.5"]),
    ("attackers", ["l1-1"]),
    ("attackers", ["l2-0"]),
    ("attackers", ["l2-0.0"]),
    ("attackers", ["l2-1-0"]),
    ("attackers", ["l2-1-0.25-2"]),
    ("attackers", ["l2--1"]),
    ("attackers", ["l2-1", "l2-1"]),
    ("perturb.l2_steps", 0),
    ("perturb.linf_steps", 0),
    ("perturb.copies", 0),
    ("perturb.warmup", 1.0),
    ("layers.numbers", [0]),
    ("layers.numbers", [6]),
    ("layers.numbers", []),
    ("visualise.layers", [6, 7]),
    ("measure.pictures", 1001),
    ("measure.restarts", 0),
    ("lasso.pictures", 1001),
    ("lasso.weights", [1.0]),
    ("lasso.weights", [0.5, 0.5]),
    ("lasso.tolerance", 0),
]


@pytest.mark.parametrize(("key", "value"), BAD_CIFAR10, ids=lambda value: str(value)[:30])
def test_a_bad_value_of_cifar10_gives_one_clear_line(tmp_path: Path, key: str, value: object) -> None:
    changes = {"cifar10.nets": ["alexnet"], "cifar10.samples": 5000, "cifar10.test": 1000}
    refused(tmp_path, Cifar10Params, changes | {f"cifar10.{key}": value}, f"cifar10.{key} = ")


def test_every_network_has_one_of_the_layers(tmp_path: Path) -> None:
    nets = {"cifar10.nets": ["resnet-34", "alexnet"]}
    line = refused(tmp_path, Cifar10Params, nets | {"cifar10.layers.numbers": [6, 31]}, "cifar10.layers.numbers = ")
    assert "5, the convolutions of alexnet" in line
    numbers = {"cifar10.layers.numbers": [1, 31], "cifar10.visualise.layers": [31, 2]}
    assert loaded(tmp_path, Cifar10Params, nets | numbers).cifar10.layers.numbers == [1, 31]
    assert [within(net, [31, 2, 32]) for net in ("resnet-34", "alexnet")] == [[31, 2], [2]]
    assert [deepest_layer(net) for net in ("alexnet", "resnet-34", "resnet-16", "resnet-28-10")] == [5, 31, 13, 25]


@pytest.mark.parametrize("preset", [{}, read(ROOT / "presets/paper.yaml")], ids=["params.yaml", "paper.yaml"])
def test_our_own_files_name_models_and_worlds_that_are_trained(preset: dict[str, Any]) -> None:
    p = validated(MnistCifarParams, overlaid(GOOD, preset), "params.yaml").mnist_cifar
    pairs = {f"{model}@{world}" for model in p.models for world in p.worlds}
    assert set(p.skip) | set(p.more_seeds) <= pairs
    assert set(p.adversarial.models) | set(p.alone.models) <= set(p.models)


# Jobs


def test_jobs_are_what_params_say(tmp_path: Path) -> None:
    changes = {
        "mnist_cifar.worlds": [A, B],
        "mnist_cifar.models": ["mobilenet_v2", "googlenet"],
        "mnist_cifar.skip": [f"googlenet@{A}"],
        "mnist_cifar.seeds": [3, 5],
        "mnist_cifar.more_seeds": [f"mobilenet_v2@{B}"],
        "mnist_cifar.adversarial.models": ["mobilenet_v2"],
        "mnist_cifar.alone.models": ["googlenet"],
    }
    p = loaded(tmp_path, MnistCifarParams, changes).mnist_cifar
    names = [job.name for job in mnist_cifar.jobs(p, "mobilenet_v2")]
    assert names == [f"standard.{A}.3", f"standard.{B}.3", f"standard.{B}.5", f"adversarial.{A}.3"]
    assert [job.name for job in mnist_cifar.jobs(p, "googlenet")] == [f"standard.{B}.3", f"alone.{B}.3"]
    plans = {job.kind: how(p, job) for model in p.models for job in mnist_cifar.jobs(p, model)}
    plan, n, attack = plans["adversarial"]
    assert (n, plan.epochs, attack.norm, attack.eps) == (p.adversarial.samples, p.adversarial.epochs, "linf", 0.3)
    plan, n, attack = plans["alone"]
    assert (n, plan.epochs, plan.lr, attack) == (p.alone.samples, p.alone.epochs, p.alone.lr, None)
    assert plans["standard"][1:] == (p.samples, None)
