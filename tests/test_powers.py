"""Powers of ReLU on clusters: closed forms, the scan along a line, what is measured, and what training finds."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from brittle.after.powers import Cell, cells, family
from brittle.after.powers_attack import on_unit_centres
from brittle.after.powers_params import PowersParams
from brittle.after.powers_train import trained
from brittle.attacks.line import crossings
from brittle.attacks.minimum_norm_pgd import minimal
from brittle.attacks.nearest_boundary import best
from brittle.attacks.scan import first_flip
from brittle.core.params import load
from brittle.core.progress import Checkpoints
from brittle.core.rng import rng
from brittle.nets.on_centres import (
    class_sums,
    crossing_of_centres,
    crossing_of_sums,
    own_centres,
    radius_of_centres,
    radius_of_sums,
)
from brittle.nets.power_relu import scores
from brittle.nets.two_layer import TwoLayer, initial
from brittle.probes.certify import certified
from brittle.probes.powers import Alignment, alignment, flips, halving
from brittle.worlds.noisy_clusters import labels, orthogonal_centres
from conftest import ROOT

PS = (1.0, 1.5, 2.0, 3.0)
Build = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def clusters(k: int, positive: int, d: int = 12) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(orthogonal_centres(d, k, 1.0)), torch.from_numpy(labels(k, positive))


def network(kind: str, p: float, mu: Tensor, y: Tensor) -> Callable[[Tensor], Tensor]:
    w, v = class_sums(mu, y, p) if kind == "sums" else own_centres(mu, y)
    return lambda x: scores(w, v, x, p)


# --- Closed forms


@given(k=st.integers(2, 10), positive=st.integers(1, 9), p=st.sampled_from(PS), kind=st.sampled_from(["sums", "own"]))
def test_networks_on_centres_give_every_centre_its_label(k: int, positive: int, p: float, kind: str) -> None:
    mu, y = clusters(k, min(positive, k - 1))
    torch.testing.assert_close(network(kind, p, mu, y)(mu), y)


@pytest.mark.parametrize(("kind", "p"), [*(("sums", p) for p in PS), ("own", 2.0), ("own", 3.0)])
@pytest.mark.parametrize(("k", "positive"), [(4, 2), (10, 6), (7, 1)])
def test_no_perturbation_shorter_than_the_closed_radius_flips_a_centre_and_one_of_that_size_does(
    kind: str, p: float, k: int, positive: int
) -> None:
    mu, y = clusters(k, positive)
    f = network(kind, p, mu, y)
    radius = radius_of_sums(k) if kind == "sums" else radius_of_centres()
    # The nearest way of the proof: along z, or half-way to another label's centre.
    other = mu[(y[:, None] != y[None]).to(torch.int8).argmax(1)]
    way = -y[:, None] * (y @ mu) / k if kind == "sums" else (other - mu) / 2
    torch.testing.assert_close(way.norm(dim=1), torch.full_like(y, radius))
    assert bool((y * f(mu + 1.001 * way) < 0).all())
    # Random directions, and PGD from a little off the centre, where gradients do not vanish.
    draws = torch.from_numpy(rng(0, "test").standard_normal((4000, mu.shape[1])))
    draws[:2000, k:] = 0  # within the span of the centres, where it matters
    for centre, label in zip(mu, y, strict=True):
        moved = centre + 0.999 * radius * torch.nn.functional.normalize(draws)
        assert bool((label * f(moved) > 0).all())
    x = mu + 1e-6 * torch.from_numpy(rng(1, "test").standard_normal(mu.shape))
    assert bool((minimal(f, x, y, "l2", 1.5, 40, 12).size >= 0.999 * radius).all())


def test_below_two_several_other_centres_together_are_nearer_than_one() -> None:
    mu, y = clusters(10, 6)
    f, start = network("own", 1.5, mu, y), mu[0]
    way = torch.cat([torch.tensor([-0.6]), torch.zeros(5), torch.full((4,), 0.6 * 0.28), torch.zeros(2)])
    assert float(way.norm()) < radius_of_centres()
    assert float(f((start + way)[None])) < 0


@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize(("k", "positive"), [(4, 2), (10, 6), (20, 12)])
def test_z_flips_centres_where_the_closed_forms_say(p: float, k: int, positive: int) -> None:
    mu, y = clusters(k, positive, d=25)
    z = y @ mu
    by_sums = first_flip(network("sums", p, mu, y), mu, y, z, math.sqrt(k), 400)
    torch.testing.assert_close(by_sums, torch.full_like(y, crossing_of_sums(k)), rtol=1e-5, atol=0)
    own = first_flip(network("own", p, mu, y), mu, y, z, math.sqrt(k), 400)
    expected = [crossing_of_centres(k, k - positive if label > 0 else positive, p) for label in y]
    torch.testing.assert_close(own, own.new_tensor(expected), rtol=1e-5, atol=0)


def test_the_constructed_network_is_half_as_far_from_unit_centres_as_zero_is() -> None:
    mu, y = clusters(6, 4)
    net = on_unit_centres(mu, y)
    assert certified(net, mu, y).radius.tolist() == pytest.approx([0.5] * 6, rel=1e-6)


# --- The scan


def test_a_scan_finds_the_first_crossing_that_exact_lines_find() -> None:
    net = initial(6, 30, 1.0, [rng(0, "test")]).to(torch.float64)
    x, u = (torch.from_numpy(rng(i, "scan").standard_normal(shape)) for i, shape in ((1, (40, 6)), (2, 6)))
    u = u / u.norm()
    y = torch.where(torch.arange(40) < 35, net(x[None])[0].sign(), -net(x[None])[0].sign())
    exact = crossings(net.preactivations(x[None])[0], net.w[0] @ u, net.v[0], y).first()
    found = first_flip(lambda points: net(points[None])[0], x, y, u, 20.0, 4000)
    near = exact <= 20
    assert 5 < int(near.sum()) < 40
    torch.testing.assert_close(found[near], exact[near], rtol=1e-4, atol=1e-4)
    assert bool(found[exact > 20].isinf().all())
    assert found[35:].tolist() == [0.0] * 5  # wrong as they are


# --- What is measured


def test_alignment_is_weighted_by_what_neurons_contribute() -> None:
    mu, y = clusters(4, 2)
    average, _ = class_sums(mu, y, 1.0)
    w = torch.stack([3 * average[0], 5 * mu[3], mu[0]])
    v = torch.tensor([1.0, -2.0, 0.0], dtype=torch.float64)
    shares = torch.tensor([3 * math.sqrt(2), 10.0]).double()
    shares = shares / shares.sum()
    found = alignment(w, v, mu, y)
    root = math.sqrt(0.5)  # the cosine of a class's average with its centres
    expected = (float(shares @ torch.tensor(each).double()) for each in ((1.0, root), (root, 1.0)))
    assert found == Alignment(*map(pytest.approx, expected))
    assert alignment(-w[:1], v[:1], mu, y).average == pytest.approx(-1.0)


HALVINGS = [
    ([3.0, 1.0, 2.0, 4.0], 2.0),
    ([1.0, 2.0, 3.0], 2.0),
    ([0.0, 0.0, 1.0, 2.0], 1.0),
    ([0.0], 0.0),
    ([math.inf, 1.0, 2.0], 2.0),
]


@pytest.mark.parametrize(("sizes", "expected"), HALVINGS)
def test_half_of_those_that_are_right_at_first_are_flipped_at_the_halving_size(
    sizes: list[float], expected: float
) -> None:
    at = torch.tensor(sizes)
    assert halving(at) == expected
    right = int((at > 0).sum())
    assert int((at > expected).sum()) <= right / 2 < int((at >= expected).sum()) + (right == 0)


def test_pgd_on_a_power_of_one_comes_near_the_attacks_that_know_the_network() -> None:
    net = initial(8, 20, 1.0, [rng(3, "test")]).to(torch.float64)
    net = TwoLayer(net.w, torch.zeros_like(net.b), net.v)
    x = torch.from_numpy(rng(4, "test").standard_normal((20, 8)))
    y = net(x[None])[0].sign()
    found = flips(lambda points: scores(net.w[0], net.v[0], points, 1.0), x, y, y @ x, 5.0)
    known = best(net, x, y).size
    near = known < 2.0
    assert int(near.sum()) > 5
    assert bool((found.nearest[near] >= 0.999 * known[near]).all())
    assert float((found.nearest[near] / known[near]).median()) < 1.02


# --- Training


def test_cells_are_all_powers_and_those_that_vary_each_once() -> None:
    p = load(PowersParams, ROOT / "params.yaml").powers
    every = cells(p)
    assert len(set(every)) == len(every)
    assert {cell.p for cell in every if (cell.k, cell.alpha) == (p.k, p.alpha)} == set(p.ps) | set(p.varied.ps)
    assert {(cell.p, cell.k) for cell in every} >= {(power, k) for power in p.varied.ps for k in p.varied.ks}
    assert {(cell.p, cell.alpha) for cell in every} >= {(power, a) for power in p.varied.ps for a in p.varied.alphas}


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_a_small_network_turns_to_class_averages_or_to_single_centres(p: float) -> None:
    of = load(PowersParams, ROOT / "params.yaml").powers
    of = of.model_copy(update={"d": 12, "n": 200, "width": 60, "std": 1e-4, "seeds": [0], "batch": 50, "target": 0.02})
    cell = Cell(p, 4, 0.01)
    state = trained(Checkpoints("test"), of, cell, torch.device("cpu"))
    w, v = (each[0].double() for each in family(of, cell).weights(state.theta))
    found = alignment(w, v, *map(torch.from_numpy, cell.centres(of)))
    assert (found.average if p == 1 else found.centre) > 0.98
    assert (found.centre if p == 1 else found.average) < 0.75
