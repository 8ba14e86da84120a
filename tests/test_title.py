"""Trained networks beside Thm 3.1's on the same data, and test points beside training samples."""

from __future__ import annotations

import math

import pytest
import torch

from brittle.attacks.nearest_boundary import best
from brittle.attacks.universal import z_direction
from brittle.core.rng import rng
from brittle.nets.kkt_point import kkt_point
from brittle.nets.robust_construction import largest_cosine, thm31, without_biases
from brittle.probes.fresh import on_points
from brittle.probes.radius import attacked
from brittle.probes.title import against_thm31
from brittle.worlds import sphere
from test_kkt_point import orthonormal


def data(d: int, m: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = sphere.sample(d, m, rng(seed, "title"))
    return torch.from_numpy(x), torch.from_numpy(y)


def test_thm31s_network_is_certified_to_twice_its_promise_and_is_beaten_by_no_attack_on_itself() -> None:
    x, y = data(40, 12)
    found = against_thm31(thm31(x, y), x, y, 5)  # the constructed network in place of a trained one
    radius = (1 - largest_cosine(x)) / 2 * math.sqrt(40)
    assert found.certified.tolist() == pytest.approx([radius] * 5)
    assert found.bound == pytest.approx(radius / 2)
    assert bool((found.attacked >= found.certified).all())


def test_a_network_without_biases_is_less_robust_than_thm31s_on_the_same_data() -> None:
    x, y = data(100, 60)
    found = against_thm31(without_biases(x, y), x, y, 20)
    assert float(found.attacked.median()) < float(found.certified.median())


def test_the_short_attack_is_nearly_as_good_as_all_attacks_together() -> None:
    x, y = data(30, 20, 1)
    net, z = without_biases(x, y), z_direction(x, y)
    short, long = attacked(net, x, y, z), best(net, x, y, z).size
    assert bool((short >= long * (1 - 1e-9)).all())
    assert float((short / long).median()) <= 1.01


def test_points_off_the_training_data_are_followed_along_the_same_z() -> None:
    """At the exact KKT point c = √(d/m); twice as far out it is about twice that; a wrong point counts as flipped."""
    x, y = orthonormal(40, 3, 0)
    net, z, c = kkt_point(x, y).net, z_direction(x, y), math.sqrt(40 / 6)
    c = c * (1 + 1e-9)
    own = on_points(net, c, z, x, y)
    assert (own.points, own.accuracy, own.flipped) == (6, 1.0, 1.0)
    assert own.c == pytest.approx(c)
    assert own.radius == pytest.approx(c)  # here no single attack is shorter than z
    assert own.radius_over_norm == pytest.approx(own.radius / math.sqrt(40))
    far = on_points(net, c, z, 2 * x, y)
    assert (far.accuracy, far.flipped) == (1.0, 0.0)
    assert c < far.c <= 2.2 * c
    wrong = on_points(net, c, z, x, -y)
    assert (wrong.accuracy, wrong.flipped, wrong.radius) == (0.0, 1.0, 0.0)
