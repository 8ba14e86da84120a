"""The few computations that live in the stages of the slab worlds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from brittle.attacks.pgd import pgd
from brittle.probes.randomised import Drawn, Scores
from brittle.slabs.adversarial import adversary
from brittle.slabs.adversarial_probe import along_s
from brittle.slabs.noisy_probe import picked
from brittle.slabs.probe import histogram


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
