"""The few computations that live in the stages of the slab worlds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from brittle.attacks.pgd import pgd
from brittle.core.params import load
from brittle.nets.parse import family
from brittle.probes.randomised import Drawn, Scores
from brittle.slabs import groups
from brittle.slabs.adversarial import adversary
from brittle.slabs.adversarial_probe import along_s
from brittle.slabs.attack import same_seed
from brittle.slabs.draws import Sample
from brittle.slabs.features import without_s
from brittle.slabs.noisy_probe import picked
from brittle.slabs.params import SlabsParams
from brittle.slabs.probe import histogram
from brittle.train.sgd import Member, SgdPlan
from conftest import ROOT


def test_the_grid_search_picks_the_best_mean_validation_accuracy_of_each_network() -> None:
    rows = [
        ("a", 0.1, 0, 0.9),
        ("a", 0.1, 1, 0.9),
        ("a", 0.3, 0, 0.99),  # the best single network, but not the best on average
        ("a", 0.3, 1, 0.8),
        ("b", 0.1, 0, 0.7),
        ("b", 0.1, 1, 0.7),
        ("b", 0.3, 0, 0.7),
        ("b", 0.3, 1, 0.7),
    ]
    table = pd.DataFrame(rows, columns=["model", "lr", "seed", "valid"]).assign(
        world="w", batch=256, momentum=0.9, weight_decay=0.0
    )
    found = picked(table)
    assert found[["model", "lr", "seed"]].values.tolist() == [
        ["a", 0.1, 0],
        ["a", 0.1, 1],
        ["b", 0.1, 0],
        ["b", 0.1, 1],
    ]


def test_each_network_is_attacked_within_its_own_radius_also_when_others_have_stopped() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 5, 3, generator=g), torch.tensor([[1.0, -1, 1, -1, 1]]).expand(2, 5)
    w = torch.randn(2, 3, 1, generator=g)
    attack = adversary("l2", torch.tensor([0.1, 0.2, 0.4]), steps=8, step=0.5)
    moved = attack(torch.tensor([0, 2]))(lambda z: torch.bmm(z, w).squeeze(2), x, y) - x
    torch.testing.assert_close(moved.norm(dim=2), torch.tensor([[0.1], [0.4]]).expand(2, 5), rtol=1e-4, atol=0)
    for i, eps in enumerate((0.1, 0.4)):
        alone = pgd(lambda z, i=i: (z @ w[i]).squeeze(1), x[i], y[i], "l2", eps, 8, 0.5)
        torch.testing.assert_close(moved[i], alone, rtol=1e-4, atol=1e-6)


def test_the_distance_along_s_is_that_of_the_nearest_change_of_label() -> None:
    q_s = torch.tensor([[0.6, 0.8]])
    u = torch.tensor([0.5, -0.3, 0.05, 3.0])
    x = u[:, None] * q_s + torch.tensor([[-0.8, 0.6]])  # what is not along S does not matter
    y = torch.where(u > 0, 1.0, -1.0)
    found = along_s(lambda z: (z @ q_s.T).squeeze(1), x, y, q_s, far=2.0)
    np.testing.assert_allclose(found, [0.5, 0.3, 0.05, 2.0], atol=2.0 / 399)


def test_histograms_share_their_bins_and_count_positives_alone() -> None:
    y = torch.tensor([1.0, 1.0, 1.0, 1.0, -1.0])
    none = Scores(0.0, 0.0, 0.0)

    def drawn(*values: float) -> Drawn:
        return Drawn(torch.tensor(values), none, none)

    found = histogram({"standard": drawn(0, 1, 1, 2, 99), "s": drawn(-1, -1, 2, 2, 99)}, y)
    assert (found["low"][0], found["high"][-1]) == (-1, 2)
    np.testing.assert_array_equal(found["low"][1:], found["high"][:-1])
    assert [found[name].sum() for name in ("standard", "s")] == [1, 1]
    assert found["s"][0] == found["s"][-1] == 0.5
    assert found["standard"][-1] == 0.25


def test_without_s_the_same_samples_have_their_complex_features_alone() -> None:
    draws = np.random.default_rng(0)
    q = torch.from_numpy(np.linalg.qr(draws.standard_normal((4, 4)))[0]).float()
    u, y = torch.from_numpy(draws.standard_normal((6, 4))).float(), torch.ones(6)
    whole = Sample(x=u @ q, y=y, x_valid=u[:2] @ q, y_valid=y[:2], x_test=u[2:] @ q, y_test=y[2:], q=q)
    rest = without_s(whole)
    torch.testing.assert_close(rest.x, u[:, 1:])
    torch.testing.assert_close(rest.x_valid, u[:2, 1:])
    torch.testing.assert_close(rest.x_test, u[2:, 1:])
    assert torch.equal(rest.y, y)
    assert torch.equal(rest.q, torch.eye(3))


def test_weights_along_training_are_those_of_shorter_trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draws = np.random.default_rng(0)
    x = torch.from_numpy(draws.standard_normal((60, 3))).float()
    y = torch.where(x[:, 0] > 0, 1.0, -1.0)
    sample = Sample(x=x, y=y, x_valid=x, y_valid=y, x_test=x, y_test=y, q=torch.eye(3))
    net, members = family("fcn-4-1", 3), [Member(0, momentum=0.9), Member(1)]

    def trained(name: str, epochs: int, along: tuple[int, ...]) -> tuple[groups.Group, groups.TrainedGroup]:
        plan = SgdPlan(epochs=epochs, batch=10)
        group = groups.Group(name, net, members, [sample], plan, rows=({}, {}), along=along)
        groups.train_all("some_stage", f"{name}.safetensors", [group])
        return group, groups.load_groups(f"{name}.safetensors", [name], s=2)[name]

    found = groups.load_along("long.safetensors", *trained("long", 5, (2, 4, 9)))  # it never comes to 9
    assert [then.row(0)["epochs"] for then in found] == [2, 4]
    for then, epochs in zip(found, (2, 4), strict=True):
        _, short = trained(f"short{epochs}", epochs, ())
        np.testing.assert_array_equal(then.theta, short.theta)
        np.testing.assert_array_equal(then.losses, short.losses)


def test_perturbations_are_compared_among_networks_of_one_seed() -> None:
    p = load(SlabsParams, ROOT / "params.yaml").slabs
    assert same_seed(p, "lms-5") == {0: p.models, 1: p.models[:2], 2: p.models[:2]}
    assert same_seed(p, "ms-5-7") == {seed: ["fcn-100-1", "fcn-100-2"] for seed in (0, 1, 2)}
