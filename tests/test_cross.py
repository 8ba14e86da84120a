"""Across the papers: probes, attacks, worlds and tables, against closed forms, brute force and another library."""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path

import foolbox
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from torch import Tensor, nn

from brittle import plugins
from brittle.attacks import evaluation
from brittle.attacks.nearest_boundary import minimum
from brittle.core.errors import BadInput
from brittle.core.params import load
from brittle.cross import data, measure, plot, worlds
from brittle.cross import networks as cross
from brittle.cross import tables as cross_tables
from brittle.cross.measured import COLUMNS, Tables
from brittle.drawing import style
from brittle.nets import modules
from brittle.nets.modules import Average, Cnn, Relu, SymmetricModule, as_two_layer, first_layer
from brittle.nets.robust_construction import thm31
from brittle.nets.threshold import Thresholded
from brittle.plugins import Plugin
from brittle.probes import battery, one_vector, threshold
from brittle.probes.moments import direction, moments
from brittle.worlds.common import World, checked
from conftest import ROOT
from tiny import TINY, set_params

seeds = st.integers(0, 2**31)
OURS = plugins.built_in("attack")
CPU = torch.device("cpu")


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def labels(seed: int, n: int) -> Tensor:
    return normal(seed, n).sign()


def small(seed: int = 0, n: int = 60, d: int = 5, **parts: object) -> World:
    """Gaussian samples; labels by the first coordinate."""
    x = normal(seed, n, d)
    y = x[:, 0].sign()
    return World(**({"x": x, "y": y, "x_test": x, "y_test": y, "radius": 0.5} | parts))


class Linear(nn.Module):
    """w·x, of which nothing else is known."""

    def __init__(self, w: Tensor) -> None:
        super().__init__()
        self.w = nn.Parameter(w)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.w


def relu(w: Tensor, b: Tensor, v: Tensor) -> Relu:
    """VYS's network with these weights."""
    net = Relu(w.shape[1], len(w), np.random.default_rng(0))
    with torch.no_grad():
        for p, values in ((net.first.weight, w), (net.first.bias, b), (net.last.weight, v[None])):
            p.copy_(values)
    return net


def two_halves(w: Tensor) -> Relu:
    """w·x = σ(w·x) - σ(-w·x): a linear network that has certificates."""
    return relu(torch.stack([w, -w]), torch.zeros(2), torch.tensor([1.0, -1.0]))


# --- Moments: what the data alone tell


@settings(max_examples=25, deadline=None)
@given(seed=seeds, flip=st.booleans())
def test_the_second_moments_direction_is_the_eigenvector_of_largest_absolute_eigenvalue(seed: int, flip: bool) -> None:
    x, y, q = normal(seed, 400, 6).double(), labels(seed + 1, 400).double(), normal(seed + 2, 6).double()
    q = q / q.norm()
    x = torch.where((y > 0)[:, None], x + 2 * (x @ q)[:, None] * q, x)  # three times as wide along q
    y = -y if flip else y  # then the eigenvalue is negative
    values, vectors = np.linalg.eigh(np.einsum("i,ij,ik->jk", y, x, x))
    top = vectors[:, np.abs(values).argmax()]
    found = direction(x, y, 2, np.random.default_rng(seed)).numpy()
    assert np.linalg.norm(found) == pytest.approx(1)
    assert abs(found @ top) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("degree", [3, 4])
def test_no_direction_of_a_dense_search_has_a_larger_moment(degree: int) -> None:
    """On the circle, where all directions can be tried."""
    x, y = normal(degree, 200, 2).double(), labels(degree + 1, 200).double()
    u = direction(x, y, degree, np.random.default_rng(0))
    angles = torch.linspace(0, 2 * math.pi, 5000, dtype=torch.float64)
    tried = (y[:, None] * (x @ torch.stack([angles.cos(), angles.sin()])) ** degree).sum(0).abs()
    assert float((y * (x @ u) ** degree).sum().abs()) >= float(tried.max()) * (1 - 1e-4)


def planted(kind: str, n: int = 6000, d: int = 6) -> tuple[Tensor, Tensor]:
    """The labels show in the mean, the variance or the fourth moment of coordinate 2, or not at all."""
    x, y = normal(7, n, d), labels(8, n)
    if kind == "mean":
        x[:, 2] += y
    elif kind == "variance":
        x[:, 2] *= torch.where(y > 0, 2.0, 1.0)
    elif kind == "fourth":  # ±1 has the mean and variance of a Gaussian, but not its fourth moment
        x[:, 2] = torch.where(y > 0, x[:, 2].sign(), x[:, 2])
    return x, y


@pytest.mark.parametrize(("kind", "degree"), [("mean", 1), ("variance", 2), ("fourth", 4), ("none", None)])
@pytest.mark.parametrize("shift", [0.0, 10.0])
def test_moments_stop_at_the_first_that_tells_the_labels(kind: str, degree: int | None, shift: float) -> None:
    """And go through all where none does; a mean that both labels share is not mistaken for a feature."""
    x, y = planted(kind)
    found = moments(x[:3000] + shift, y[:3000], x[3000:] + shift, y[3000:], np.random.default_rng(0))
    assert [m.degree for m in found] == list(range(1, (degree or 4) + 1))
    assert [m.told for m in found] == [m.degree == degree for m in found]
    if degree and not (degree == 1 and shift):  # z itself is not centred
        assert abs(float(found[-1].direction[2])) > 0.9


def test_z_is_the_sum_of_samples_times_labels_and_is_called_so() -> None:
    world = small(3)
    z = sum(float(y) * x.numpy() for x, y in zip(world.x, world.y, strict=True))
    [found] = one_vector.of_data(world)
    np.testing.assert_allclose(found.direction, z / np.linalg.norm(z), atol=1e-6)
    assert (found.name, found.told, found.signed) == ("z", True, True)


def test_where_labels_show_in_the_variance_alone_vectors_have_no_sign() -> None:
    x, y = planted("variance")
    found = one_vector.of_data(World(x=x, y=y, x_test=x, y_test=y, radius=1.0))
    assert [(v.name, v.told, v.signed) for v in found] == [("z", False, False), ("T2", True, False)]
    assert found[1].cosine(-found[1].direction) == pytest.approx(1)
    assert replace(found[1], signed=True).cosine(-found[1].direction) == pytest.approx(-1)


# --- One vector


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_ascent_on_a_linear_network_finds_its_weights(seed: int) -> None:
    w = normal(seed, 5)
    x = normal(seed + 1, 100, 5)
    y = (x @ w).sign()
    found = one_vector.by_ascent(lambda p: p @ w, World(x=x, y=y, x_test=x, y_test=y, radius=0.5))
    np.testing.assert_allclose(found.direction, w / w.norm(), atol=1e-4)


def test_the_accuracy_halves_where_the_curve_says() -> None:
    world = small(radius=2.0)
    n = len(one_vector.SIZES)

    def at(*begin: float, end: float) -> float:
        return one_vector.halves_at(world, [*begin, *[end] * (n - len(begin))])

    assert at(0.8, 0.8, 0.6, end=0.2) == pytest.approx(2 * (0.5 + 0.25 * 0.5))  # 0.4 is halfway from 0.6 to 0.2
    assert at(0.8, 0.4, end=0.4) == pytest.approx(2 * 0.25)  # exactly half is half
    assert at(0.8, 0.1, end=0.8) == pytest.approx(2 * 0.25 * 4 / 7)  # the first time counts
    assert at(0.8, end=0.41) == math.inf
    assert at(0.0, end=0.0) == 0


def test_a_curve_without_a_sign_is_that_of_the_better_sign() -> None:
    """Along -w a linear network only becomes surer; along w it keeps who has y w·x above the size times ‖w‖."""
    w, world = normal(1, 5), small(2)
    scores = world.y_test * (world.x_test @ w)
    falls = [float((scores > size * 0.5 * w.norm()).double().mean()) for size in one_vector.SIZES]
    wrong_way = one_vector.Vector("v", "", -w / w.norm())
    assert replace(wrong_way, direction=w / w.norm()).curve(Linear(w), world) == pytest.approx(falls, abs=0.02)
    assert replace(wrong_way, signed=False).curve(Linear(w), world) == pytest.approx(falls, abs=0.02)
    assert min(wrong_way.curve(Linear(w), world)) == falls[0] > falls[-1]


# --- Every probe


@settings(max_examples=10, deadline=None)
@given(seed=seeds, known=st.booleans())
def test_robust_accuracy_of_a_linear_network_is_the_closed_form(seed: int, known: bool) -> None:
    w, world = normal(seed, 5), small(seed + 1)
    net = two_halves(w) if known else Linear(w)
    room = world.y_test * (world.x_test @ w) - world.radius * w.norm()
    world = replace(world, x_test=world.x_test[room.abs() > 1e-3], y_test=world.y_test[room.abs() > 1e-3])
    room = room[room.abs() > 1e-3]
    found = battery.under_attack(net, world, 40, OURS)
    assert found.kept["all"].tolist() == (room[:40] > 0).tolist()
    if known:
        assert battery.proved(net, world, found.kept["all"]) == {"certified": float((room[:40] > 0).double().mean())}
        median = float((world.y_test * (world.x_test @ w) / w.norm()).clamp(min=0)[:30].median())
        expected = {"radius_certified": median, "radius_attacked": median}
        assert battery.bracket(net, world, 30) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    else:
        assert battery.proved(net, world, found.kept["all"]) == {}  # nothing is known of it


@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_all_keeps_what_every_attack_keeps_and_no_more_is_proved(seed: int) -> None:
    world = small(seed, radius=0.3)
    net = relu(normal(seed + 1, 8, 5), normal(seed + 2, 8), normal(seed + 3, 8))
    found = battery.under_attack(net, world, 30, OURS)
    assert list(found.kept) == ["pgd", "nearest", "all"]
    for i in range(30):
        assert bool(found.kept["all"][i]) == all(bool(found.kept[each.name][i]) for each in OURS)
    share = float(found.kept["all"].double().mean())
    assert battery.proved(net, world, found.kept["all"])["certified"] <= share
    every_sample = torch.ones(30, dtype=torch.bool)  # also those that were flipped cannot be certified
    assert battery.proved(net, world, every_sample) == battery.proved(net, world, found.kept["all"])
    both = battery.bracket(net, world, 15)
    assert both["radius_certified"] <= both["radius_attacked"]


def test_what_is_proved_withstands_foolbox() -> None:
    class Logits(nn.Module):
        def __init__(self, net: nn.Module) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([-self.net(x), self.net(x)], 1)

    certain = flipped = 0
    for seed in range(3):
        net = relu(normal(seed, 12, 4), normal(seed + 50, 12), normal(seed + 100, 12)).eval()
        x = normal(seed + 150, 30, 4)
        y = net(x).detach().sign()
        world = World(x=x, y=y, x_test=x, y_test=y, radius=0.25)
        alone = torch.eye(30, dtype=torch.bool)
        sure = torch.tensor([battery.proved(net, world, one)["certified"] > 0 for one in alone])
        model = foolbox.PyTorchModel(Logits(net).eval(), bounds=(-100, 100), device="cpu")
        pgd = foolbox.attacks.L2ProjectedGradientDescentAttack(steps=50).repeat(3)
        for attack in (foolbox.attacks.DDNAttack(steps=100), pgd):
            _, _, hit = attack(model, x, (y > 0).long(), epsilons=0.25 * (1 - 1e-5))
            assert not bool((hit & sure).any())
            flipped += int(hit.sum())
        certain += int(sure.sum())
    assert certain > 20  # and neither is a straw man
    assert flipped > 20


def two_features(n: int = 3000) -> World:
    """The label shows in coordinate 0 and, independently of that, in coordinate 3."""
    x, y = normal(0, n, 5), labels(1, n)
    x[:, [0, 3]] += 2 * y[:, None]
    return World(x=x, y=y, x_test=x, y_test=y, radius=1.0)


def test_who_reads_s_alone_relies_on_it_and_who_reads_the_rest_does_not() -> None:
    world, eye = two_features(), torch.eye(5)
    mask = torch.tensor([True, True, False, False, False])
    turn = torch.linalg.qr(normal(5, 5, 5)).Q
    shapes = {
        "mask": (replace(world, simple=mask), eye),
        "rows": (replace(world, simple=eye[:2]), eye),
        "turned": (replace(world, x_test=world.x_test @ turn, simple=turn[:2]), turn),
    }
    for there, q in shapes.values():
        reads_s, reads_rest, reads_both = (battery.reliance(Linear(w), there, 2) for w in (q[0], q[3], q[0] + q[3]))
        assert reads_s["reliance"] > 0.95
        assert reads_s["auc_rest"] == pytest.approx(reads_s["auc"], abs=1e-4)
        assert reads_s["auc_s"] == pytest.approx(0.5, abs=0.03)
        assert reads_rest["reliance"] == pytest.approx(0, abs=1e-3)
        assert reads_rest["auc_rest"] == pytest.approx(0.5, abs=0.03)
        assert 0.1 < reads_both["reliance"] < 0.6
        assert reads_both["accuracy"] == pytest.approx(float((world.y * world.x[:, [0, 3]].sum(1) > 0).double().mean()))
    found = [battery.reliance(Linear(q[0] + q[3]), there, 2) for there, q in shapes.values()]
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    assert found[0] == pytest.approx(found[2], abs=1e-3)


def test_reliance_is_left_out_where_it_has_no_meaning() -> None:
    world = two_features()
    assert battery.reliance(Linear(torch.eye(5)[0]), world, 1).keys() == {"accuracy"}  # no S
    guess = battery.reliance(Linear(torch.eye(5)[4]), replace(world, simple=torch.eye(5)[:1]), 1)
    assert math.isnan(guess["reliance"])


def test_a_kkt_point_has_no_residual_and_a_network_that_does_not_separate_has_no_margin() -> None:
    """A sample a neuron, w̃_j ∝ x̃_j and |v_j| = ‖w̃_j‖, each neuron off at the other sample: λ_j = 1/‖x̃_j‖ (Eq 3)."""
    x, y = torch.tensor([[1.0, 2.0], [-2.0, -1.0]]), torch.tensor([1.0, -1.0])
    x1 = torch.cat([x, torch.ones(2, 1)], 1)
    size = x1.norm(dim=1, keepdim=True) ** -0.5  # the outputs are 1
    w = size * x1 / x1.norm(dim=1, keepdim=True)
    net, world = relu(w[:, :2], w[:, 2], y * size[:, 0]), World(x=x, y=y, x_test=x, y_test=y, radius=1.0)
    assert battery.kkt_residual(net, world)["kkt"] == pytest.approx(0, abs=1e-3)
    turned = relu(w[:, :2] + 0.1 * torch.tensor([[1.0, -1.0]]), w[:, 2], y * size[:, 0])
    assert battery.kkt_residual(turned, world)["kkt"] > 0.05
    assert battery.kkt_residual(net, replace(world, y=torch.tensor([1.0, 1.0]))) == {}
    assert battery.kkt_residual(Average([net, net]), world) == {}


def test_purity_of_neurons_and_perturbations_with_known_densities() -> None:
    basis = torch.linalg.qr(normal(0, 6, 6)).Q
    world, none = small(d=6, basis=basis), torch.zeros(3, 6)
    single, mixed = (
        relu(w, torch.zeros(6), torch.ones(6)) for w in (2 * basis.T, (basis @ torch.ones(6)).expand(6, 6))
    )
    assert battery.purity(single, single, world, none).keys() == {"density"}  # neither a θ nor a perturbation
    scaled = relu(-3 * single.first.weight.detach(), torch.ones(6), torch.zeros(6))
    found = battery.purity(scaled, single, world, torch.cat([none, 5 * basis.T[:1]]))
    assert found == pytest.approx({"theta": 1.0, "density": 6**-0.5, "density_delta": 6**-0.5}, rel=1e-4)
    found = battery.purity(mixed, single, world, -2 * (basis @ torch.ones(6))[None])
    assert found == pytest.approx({"theta": 6**-0.5, "density": 1.0, "density_delta": 1.0}, rel=1e-4)


def test_the_density_of_a_flat_picture_is_that_of_one_wavelet() -> None:
    delta = torch.zeros(1, 3, 4, 8)
    delta[:, 1] = 0.7
    pictures = small(d=96, shape=(3, 4, 8))
    net = Linear(torch.ones(96))
    assert battery.purity(net, net, pictures, delta.flatten(1)) == pytest.approx({"density_delta": 96**-0.5}, rel=1e-4)
    odd = small(d=96, shape=(2, 6, 8))
    assert battery.purity(net, net, odd, delta.flatten(1)) == {}  # no such wavelets


# --- The thresholded model


def thresholded(seed: int, d: int, b: float) -> tuple[Thresholded, Tensor, Tensor]:
    """Weights between 0.5 and 1.5, of either sign."""
    q, w = torch.linalg.qr(normal(seed, d, d).double()).Q, normal(seed + 1, d).double()
    return (
        Thresholded(q, w.sign() * (0.5 + w.abs().clamp(max=1)), b),
        2 * normal(seed + 2, 20, d).double(),
        labels(seed + 3, 20).double(),
    )


@settings(max_examples=25, deadline=None)
@given(seed=seeds, d=st.integers(1, 4), b=st.floats(0.0, 1.0))
def test_nothing_flips_the_thresholded_model_within_its_certificate(seed: int, d: int, b: float) -> None:
    """Random points, and projected descent on the score; the certificate is not far below what Lipschitz gives."""
    model, x, y = thresholded(seed, d, b)
    t = np.array([[float(xi @ model.dictionary[:, j]) for j in range(d)] for xi in x])
    slow = (np.sign(t) * np.maximum(np.abs(t) - b, 0)) @ model.w_star.numpy()
    np.testing.assert_allclose(model(x), slow, atol=1e-12)
    r = threshold.certified(model, x, y)
    right = y * model(x) > 1e-9
    assert not bool(r[y * model(x) <= 0].any())
    directions = normal(seed + 4, 400, 1, d).double()
    delta = directions / directions.norm(dim=2, keepdim=True) * r[:, None] * (1 - 1e-9)
    for _ in range(15):
        moved = delta.detach().requires_grad_()
        scores = (y * model((x + moved).flatten(0, 1)).view(400, -1))[:, right]
        assert bool((scores >= -1e-9).all())
        (g,) = torch.autograd.grad(scores.sum(), moved)
        delta = moved.detach() - 0.3 * r[:, None] * g / g.norm(dim=2, keepdim=True).clamp(min=1e-300)
        delta = delta * (r[:, None] * (1 - 1e-9) / delta.norm(dim=2, keepdim=True).clamp(min=1e-300)).clamp(max=1)
    easy = y * model(x) > 0.1 * model.w_star.norm()
    assert bool((r >= 0.98 * y * model(x) / model.w_star.norm())[easy].all())


@settings(max_examples=25, deadline=None)
@given(seed=seeds, b=st.floats(0.2, 1.0))
def test_the_certificate_of_a_single_word_is_its_distance_from_the_threshold(seed: int, b: float) -> None:
    t = b * torch.linspace(1.05, 3, 9, dtype=torch.float64)[:, None]
    for sign in (1.0, -1.0):
        model = Thresholded(torch.tensor([[1.0]]).double(), torch.tensor([sign]).double(), b)
        found = threshold.certified(model, torch.cat([sign * t, -sign * t]), torch.ones(18).double())
        np.testing.assert_allclose(found, torch.cat([t[:, 0] - b, torch.zeros(9)]), atol=1e-9)


def test_the_fitted_threshold_certifies_as_many_as_any_on_the_grid() -> None:
    model, x, _ = thresholded(3, 4, 0.0)
    x = x / 3
    y = ((x @ model.dictionary) @ model.w_star).sign()
    found = threshold.fitted(model.dictionary, model.w_star, x, y, 0.4, 4)
    counts = [int((threshold.certified(replace(model, b=share / 20 / 2), x, y) > 0.4).sum()) for share in range(1, 20)]
    assert int((threshold.certified(found, x, y) > 0.4).sum()) == max(counts) > min(counts)


# --- Networks


@settings(max_examples=10, deadline=None)
@given(seed=seeds, d=st.integers(1, 8))
def test_the_networks_are_the_same_function_as_their_two_layers(seed: int, d: int) -> None:
    draws = np.random.default_rng(seed)
    x = 2 * normal(seed, 20, d)
    plain = [kind(d, 30, draws) for kind in (Relu, SymmetricModule) for _ in range(3)]
    plain.append(SymmetricModule(d, 30, draws, norm=3.0, bias=0.5))
    for net in (*plain, Average(plain[:3]), Average(plain[3:]), Average([Average(plain[:2]), plain[3]])):
        known = as_two_layer(net)
        assert known.w.dtype == torch.float64
        np.testing.assert_allclose(known(x.double()[None])[0], net.double()(x.double()).detach(), rtol=0, atol=1e-5)
        net.float()
    assert as_two_layer(Linear(torch.ones(d))) is as_two_layer(Average([plain[0], Linear(torch.ones(d))])) is None
    assert first_layer(Average([Average(plain[:2]), plain[3]])) is not None
    np.testing.assert_array_equal(first_layer(Average(plain[3:])), plain[3].first.weight.detach())
    assert first_layer(Linear(torch.ones(d))) is None


def test_the_symmetric_network_is_fps() -> None:
    """Σ_j σ(w_j·x - b) - σ(-w_j·x - b), a sum in plain Python."""
    net, x = SymmetricModule(4, 10, np.random.default_rng(0), norm=2.0, bias=0.3), normal(0, 15, 4)
    for xi, score in zip(x, net(x).tolist(), strict=True):
        a = [float(xi @ w) for w in net.first.weight.detach()]
        assert score == pytest.approx(sum(max(v - 0.3, 0) - max(-v - 0.3, 0) for v in a), abs=1e-5)


@pytest.mark.parametrize("shape", [(3, 64, 32), (1, 28, 28), (2, 9, 1), (1, 1, 1)])
def test_the_convolutions_give_one_score_a_picture(shape: tuple[int, ...]) -> None:
    x = normal(0, 4, math.prod(shape))
    net = Cnn(shape, 4, np.random.default_rng(0))
    assert net(x).shape == (4,)
    torch.testing.assert_close(net(x)[2:], net(x[2:]))  # each of its own picture
    assert as_two_layer(net) is None
    assert first_layer(net).shape == (4, shape[0] * 25)


@pytest.mark.parametrize("build", [modules.two_layer, modules.power_relu, modules.symmetric, modules.cnn])
def test_the_same_seed_gives_the_same_weights_and_another_others(build: Callable[..., nn.Module]) -> None:
    shape = (1, 4, 4)
    first, again, other = (nn.utils.parameters_to_vector(build(shape, seed).parameters()) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert float((first == other).double().mean()) < 0.01


# --- Attacks


def vanishing(d: int = 30) -> Relu:
    """1 - 8 σ(x_1 - 0.6), the 1 as a difference of two neurons: no gradient at 0, a boundary at x_1 = 0.725."""
    e = torch.eye(d)[:1]
    return relu(torch.cat([0.1 * e, 0.1 * e, e]), torch.tensor([9.0, 8.0, -0.6]), torch.tensor([1.0, -1.0, -8.0]))


def test_the_nearest_boundary_is_found_without_a_gradient_and_others_are_left_alone() -> None:
    net = vanishing()
    x = torch.stack([torch.zeros(30), -torch.eye(30)[0]])  # the second is 1.725 from the boundary
    y, radius = torch.ones(2), 1.0
    kept = battery.under_attack(net, World(x=x, y=y, x_test=x, y_test=y, radius=radius), 2, OURS).kept
    assert {name: list(map(bool, each)) for name, each in kept.items()} == {
        "pgd": [True, True],
        "nearest": [False, True],
        "all": [False, True],
    }
    moved = evaluation.nearest(net, x, y, radius)
    assert float(moved[0, 0]) == pytest.approx(0.725 * evaluation.BEYOND, rel=0.02)
    assert torch.equal(moved[1], x[1])
    assert torch.equal(evaluation.nearest(Linear(normal(0, 30)), x, y, radius), x)  # nothing is known of its boundary


@settings(max_examples=10, deadline=None)
@given(seed=seeds, radius=st.floats(0.01, 10))
def test_our_attacks_stay_within_the_radius_and_only_ever_lower_scores(seed: int, radius: float) -> None:
    net, world = relu(normal(seed, 8, 5), normal(seed + 1, 8), normal(seed + 2, 8)), small(seed + 3)
    with torch.no_grad():
        before = world.y * net(world.x)
        for each in OURS:
            with torch.enable_grad():
                moved = evaluation.attacked(each, net, world.x, world.y, radius)
            assert float((moved - world.x).norm(dim=1).max()) <= radius * (1 + 1e-5)
            assert bool((world.y * net(moved) <= before.maximum(torch.tensor(1e-4)) + 1e-4).all())


def yours(body: str, kind: str = "attack", arguments: str = "net, x, y, radius") -> Plugin:
    text = f"import torch\nfrom brittle.plugins import {kind}\n\n@{kind}\ndef mine({arguments}):\n    {body}\n"
    [found] = plugins.load_files({"plugins/x.py": text})
    plugins.forget()
    return found


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return x[:2]", "must return inputs of the shape (60, 5), not (2, 5)"),
        ("return 3", "must return inputs of the shape (60, 5), not int"),
        ("return x + 1", "moved a sample by 2.236; at most 0.5 is allowed"),
        ("return x * torch.nan", "moved a sample by nan; at most 0.5 is allowed"),
        ("return x + 1 / 0", "raised ZeroDivisionError: division by zero (line 6)"),
    ],
)
def test_a_wrong_attack_is_said_in_one_line_that_names_file_and_function(body: str, words: str) -> None:
    with pytest.raises(BadInput) as error:
        battery.under_attack(Linear(torch.ones(5)), small(), 60, [*OURS, yours(body)])
    assert str(error.value) == f"plugins/x.py: attack mine() {words}"


def test_an_attack_may_compute_in_float64() -> None:
    found = battery.under_attack(Linear(torch.ones(5)), small(), 60, [OURS[0], yours("return x.double()")])
    assert found.kept["mine"].tolist() == (small().y * small().x.sum(1) > 0).tolist()


def test_an_attack_that_works_in_place_neither_goes_too_far_nor_changes_the_world() -> None:
    world = small()
    world = replace(world, x_test=world.x_test.clone())
    with pytest.raises(BadInput, match="moved a sample by"):
        battery.under_attack(Linear(torch.ones(5)), world, 60, [yours("return x.sub_(100 * y[:, None])")])
    assert torch.equal(world.x_test, world.x)


def test_our_own_attack_is_not_called_too_far_for_how_float32_rounds() -> None:
    world = small(n=200)
    evaluation.attacked(OURS[0], Linear(torch.ones(5)), 1000 + world.x, world.y, 0.1)


# --- Worlds


SOURCE = Plugin("world", "mine", lambda seed: None, "plugins/x.py")
NAN = torch.full((60, 5), torch.nan)
BASIS = "a basis that is not a finite tensor of float32 of the shape (5, features)"
SIMPLE = "must be orthonormal rows (s, 5) or a mask (5,)"
BROKEN: dict[str, tuple[dict[str, object], str]] = {
    "a list": ({"x": [[1.0]]}, "x that is not a tensor of float32"),
    "float64": ({"x_test": normal(0, 60, 5).double()}, "x_test that is not a tensor of float32"),
    "one sample": ({"x": normal(0, 5)}, "x of the shape (5,); must be (samples, d)"),
    "no samples": ({"x_test": normal(0, 0, 5)}, "x_test of the shape (0, 5); must be (samples, 5)"),
    "another dimension": ({"x_test": normal(0, 60, 4)}, "x_test of the shape (60, 4); must be (samples, 5)"),
    "columns of labels": ({"y": torch.ones(60, 1)}, "y of the shape (60, 1); must be (60,)"),
    "too few labels": ({"y_test": torch.ones(59)}, "y_test of the shape (59,); must be (60,)"),
    "nan": ({"x": NAN}, "x with numbers that are not finite"),
    "labels 0 and 1": ({"y": labels(0, 60).relu()}, "labels y other than -1 and 1, or only one of them"),
    "one label": ({"y_test": torch.ones(60)}, "labels y_test other than -1 and 1, or only one of them"),
    "no radius": ({"radius": 0.0}, "the radius 0.0; must be a number > 0"),
    "a radius of nan": ({"radius": math.nan}, "the radius nan; must be a number > 0"),
    "another shape": ({"shape": (1, 2, 3)}, "the shape (1, 2, 3), but samples of 5 numbers"),
    "a radius of text": ({"radius": "0.5"}, "the radius '0.5'; must be a number > 0"),
    "a shape that is a number": ({"shape": 5}, "the shape 5, but samples of 5 numbers"),
    "a flat basis": ({"basis": torch.ones(5)}, BASIS),
    "a basis of rows": ({"basis": torch.ones(4, 5)}, BASIS),
    "a basis of float64": ({"basis": torch.eye(5).double()}, BASIS),
    "a basis of nan": ({"basis": NAN[:5]}, BASIS),
    "a basis that is a list": ({"basis": [1.0]}, BASIS),
    "S in another space": ({"simple": torch.eye(4)[:1]}, f"`simple` of the shape (1, 4); {SIMPLE}"),
    "S that is long": ({"simple": 2 * torch.eye(5)[:1]}, f"`simple` of the shape (1, 5); {SIMPLE}"),
    "S of float64": ({"simple": torch.eye(5)[:1].double()}, f"`simple` of the shape (1, 5); {SIMPLE}"),
    "S of nan": ({"simple": NAN[:1]}, f"`simple` of the shape (1, 5); {SIMPLE}"),
    "S that is empty": ({"simple": torch.eye(5)[:0]}, f"`simple` of the shape (0, 5); {SIMPLE}"),
    "S that is a list": ({"simple": [1.0]}, f"`simple` of the shape list; {SIMPLE}"),
    "a short mask": ({"simple": torch.ones(4).bool()}, f"`simple` of the shape (4,); {SIMPLE}"),
    "a mask of floats": ({"simple": torch.eye(5)[0]}, f"`simple` of the shape (5,); {SIMPLE}"),
    "a mask of integers": ({"simple": torch.arange(5)}, f"`simple` of the shape (5,); {SIMPLE}"),
    "an empty mask": ({"simple": torch.zeros(5).bool()}, f"`simple` of the shape (5,); {SIMPLE}"),
    "a mask as a row": ({"simple": torch.eye(5)[:1].bool()}, f"`simple` of the shape (1, 5); {SIMPLE}"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_world_that_does_not_fit_is_said_in_one_line(what: str) -> None:
    parts, words = BROKEN[what]
    with pytest.raises(BadInput) as error:
        checked(small(**parts), SOURCE)
    assert str(error.value) == f"plugins/x.py: world mine() has {words}"


def test_a_world_that_fits_is_what_it_was() -> None:
    for simple in (None, torch.eye(5)[[3]], torch.tensor([True, False, True, True, False])):
        world = small(simple=simple, basis=normal(0, 5, 7), shape=(5, 1, 1), best_robust=0.5)
        assert checked(world, SOURCE) is world
    with pytest.raises(BadInput, match=r"^plugins/x.py: world mine\(\) must return .*World, not dict$"):
        checked({}, SOURCE)


# --- Stages, at a tiny scale


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, World]:
    folder = tmp_path_factory.mktemp("drawn")
    shutil.copy(ROOT / "params.yaml", folder)
    set_params(folder / "params.yaml", TINY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        params = load(data.Params)
        first, again = ({name: data.draw(params, name) for name in ("sphere", "lms-5", "sparse")} for _ in "ab")
    for name, world in first.items():
        assert all(torch.equal(getattr(world, part), getattr(again[name], part)) for part in ("x", "y", "x_test"))
    return first


def test_every_drawn_world_is_a_world_and_its_s_tells_the_label(drawn: dict[str, World]) -> None:
    for name, world in drawn.items():
        assert checked(world, SOURCE) is world
        along = world.y * (world.x @ world.simple[0])
        assert float(along.mean()) > 0
        if name == "lms-5":  # y U[γ, 1]
            assert float(along.min()) >= 0.1 - 1e-5
            assert float(along.max()) <= 1 + 1e-5
        if world.basis is not None:
            torch.testing.assert_close(world.basis.T @ world.basis, torch.eye(world.basis.shape[1]), atol=1e-5, rtol=0)
    sphere = drawn["sphere"]
    np.testing.assert_allclose(sphere.x.norm(dim=1), 10**0.5, rtol=1e-5)
    assert torch.equal(sphere.x, sphere.x_test)
    assert [world.net for world in drawn.values()] == ["two_layer", "two_layer", "symmetric"]


def test_the_best_known_classifier_is_no_better_than_attacks_leave_it(drawn: dict[str, World]) -> None:
    sphere = drawn["sphere"]
    x, y = sphere.x.double(), sphere.y.double()
    assert sphere.best_robust <= float((minimum(thm31(x, y), x, y).size > sphere.radius).double().mean())
    slabs = drawn["lms-5"]  # it reads all coordinates; S alone is as far as the linear one says
    assert slabs.best_robust >= float((slabs.y_test * (slabs.x_test @ slabs.simple[0]) > slabs.radius).double().mean())
    assert drawn["sparse"].best_robust > 0


def same(a: World, b: World) -> None:
    for f in fields(World):
        one, other = getattr(a, f.name), getattr(b, f.name)
        if isinstance(one, Tensor):
            assert one.dtype == other.dtype
            assert torch.equal(one, other)
        else:
            assert one == other or (math.isnan(one) and math.isnan(other))


def test_worlds_and_networks_come_back_from_disk_as_they_were(
    drawn: dict[str, World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    set_params(tmp_path / "params.yaml", TINY | {"cross.training.updates": 3, "cross.seeds": [0, 10]})
    monkeypatch.chdir(tmp_path)
    p = load(data.Params).cross
    mask = small(d=16, shape=(1, 4, 4), simple=torch.arange(16) < 8, net="cnn")  # neither a basis nor a best
    for name, world in (drawn | {"mask": mask}).items():
        worlds.save_world(name, world)
        there = worlds.load_world(name, CPU)
        same(world, there)
        net = plugins.named("net", world.net)
        made = [cross.train(p, name, world, net, plugins.named("remedy", r), s) for s in p.seeds for r in p.remedies]
        cross.save_networks(name, [*made, replace(made[0], seed=7)])  # no longer asked for
        again = cross.load_networks(p, name, there)
        assert [each.about | {"spent": each.spent} for each in again] == [e.about | {"spent": e.spent} for e in made]
        for before, after in zip(made, again, strict=True):
            assert torch.equal(before.net(world.x_test), after.net(there.x_test))
            pairs = zip(before.net.state_dict().items(), after.net.state_dict().items(), strict=True)
            assert all(a[0] == b[0] and torch.equal(a[1], b[1]) for a, b in pairs)
            assert isinstance(after.net, Average) == (before.remedy == "ensemble")


def test_measured_rows_have_their_columns_and_agree_with_one_another(drawn: dict[str, World]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        p = load(data.Params).cross
    p = p.model_copy(update={"training": p.training.model_copy(update={"updates": 30, "batch": 64})})
    p = p.model_copy(update={"strength": p.strength.model_copy(update={"adversarial": 10})})
    p = p.model_copy(update={"measure": p.measure.model_copy(update={"attacked": 10, "bracketed": 3})})
    tables, world = Tables([], [], [], []), drawn["lms-5"]
    net = plugins.named("net", "two_layer")
    made = [
        cross.train(p, "w", world, net, plugins.named("remedy", r), s)
        for r in ("nothing", "adversarial")
        for s in (0, 1)
    ]
    assert len(list(measure.measure(p, world, made, tables))) == len(tables.networks) == 4
    for part, columns in COLUMNS.items():
        assert set(pd.DataFrame(getattr(tables, part)).columns) <= set(columns)
    attacks = pd.DataFrame(tables.attacks).set_index(["remedy", "seed", "attack"])["kept"].sort_index()
    for row in tables.networks:
        one = attacks[row["remedy"], row["seed"]]
        assert row["certified"] <= one["all"] <= one.min()
        assert ("theta" in row) == (row["remedy"] == "adversarial")
    vectors = pd.DataFrame(tables.vectors).set_index(["seed", "vector"])
    assert set(vectors.index) == {(s, v) for s in (0, 1) for v in ("ascent", "z", "random", "other")}
    np.testing.assert_allclose(vectors.xs("ascent", level="vector")["cosine"], 1, rtol=1e-5)
    assert vectors.loc[(0, "other"), "cosine"] == pytest.approx(vectors.loc[(1, "other"), "cosine"])
    assert len(tables.curves) == len(tables.vectors) * len(one_vector.SIZES)


def test_the_cost_of_training_is_that_of_training_alone(drawn: dict[str, World]) -> None:
    p = load(data.Params, ROOT / "params.yaml").cross
    p = p.model_copy(update={"training": p.training.model_copy(update={"updates": 3, "batch": 10, "target": 0.0})})
    nets, remedies = (plugins.named(*name) for name in (("net", "two_layer"), ("remedy", "nothing")))
    assert cross.train(p, "sphere", drawn["sphere"], nets, remedies, 0).spent == 30


# --- Tables and figures


def measured(rows: list[tuple[str, str, str, int, float, float]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Networks and attacks, from world, network, remedy, seed, robust accuracy and cost."""
    table = pd.DataFrame(rows, columns=["world", "net", "remedy", "seed", "kept", "spent"])
    attacks = table.drop(columns="spent").assign(attack="all", yours=0)
    other = attacks.assign(attack="pgd", kept=attacks["kept"] + 0.1)
    numbers = {
        "accuracy": 0.9,
        "certified": np.nan,
        "radius": 0.5,
        "reliance": 0.5,
        "best_robust": 0.95,
        "off_span": 2.0,
    }
    own = (table["net"] == "two_layer").astype(int)
    return table.drop(columns="kept").assign(own=own, yours=1 - own, **numbers), pd.concat([attacks, other])


def board() -> tuple[pd.DataFrame, pd.DataFrame]:
    two = "two_layer"
    rows = [("b", two, "nothing", 0, 0.2, 100), ("b", two, "nothing", 1, 0.4, 300), ("b", two, "sam", 0, 0.5, 400)]
    rows += [("b", two, "sam", 1, 0.5, 400), ("a", two, "nothing", 0, 0.1, 10), ("a", two, "nothing", 1, 0.1, 10)]
    rows += [("a", two, "sam", 0, 0.0, 80), ("a", two, "sam", 1, 0.2, 80), ("a", two, "only here", 0, 0.8, 10)]
    return measured([*rows, ("a", "mine", "nothing", 0, 0.7, 1000)])  # the last, more robust than the world's own


def test_the_leaderboard_has_the_numbers_that_a_hand_computes() -> None:
    networks, attacks = board()
    stronger = attacks[(attacks["attack"] == "all") & (attacks["remedy"] == "sam")].assign(
        kept=lambda t: t["kept"] - 0.1
    )
    stronger = stronger[stronger["world"] == "b"]  # measured again, with an attack of yours
    table = cross_tables.remedies(networks, pd.concat([attacks, stronger]))
    assert [tuple(row) for row in table[["world", "net", "remedy"]].to_numpy()] == [
        ("all worlds", "each world's own", "sam"),
        ("all worlds", "each world's own", "nothing"),
        ("b", "two_layer", "sam"),  # worlds in the order that they came in, the most robust first
        ("b", "two_layer", "nothing"),
        ("a", "two_layer", "only here"),
        ("a", "mine", "nothing"),
        ("a", "two_layer", "nothing"),
        ("a", "two_layer", "sam"),
    ]
    np.testing.assert_allclose(table["robust"], [0.25, 0.2, 0.4, 0.3, 0.8, 0.7, 0.1, 0.1])
    np.testing.assert_allclose(table["spread"], [0.1, 0.1, 0, 0.2, 0, 0, 0, 0.2], atol=1e-12)
    np.testing.assert_allclose(table["gap"], 0.95 - table["robust"])
    np.testing.assert_allclose(table["cost"], [4, 1, 2, 1, 1, 1, 1, 8])  # the mean of 2 and 8 is the geometric one
    assert table["seeds"].tolist() == [2, 2, 2, 2, 1, 1, 2, 2]
    assert table["yours"].tolist() == [0, 0, 0, 0, 0, 1, 0, 0]
    assert table["certified"].isna().all()


def test_a_network_that_a_remedy_brings_is_compared_with_the_worlds_own() -> None:
    rows = [("a", "two_layer", "nothing", 0, 0.1, 10), ("a", "power_relu", "power_relu", 0, 0.6, 30)]
    networks, attacks = measured([*rows, ("a", "mine", "nothing", 0, 0.7, 1000)])
    networks["own"] = [1, 1, 0]
    table = cross_tables.remedies(networks, attacks).set_index(["world", "remedy", "net"])
    assert table.loc[("a", "power_relu", "power_relu"), "cost"] == 3
    assert table.loc[("a", "nothing", "mine"), "cost"] == 1
    assert table.loc[("all worlds", "power_relu", "each world's own"), "robust"] == pytest.approx(0.6)
    assert table.loc[("a", "power_relu", "power_relu"), "off_span"] == 2


def test_the_table_of_attacks_has_each_alone_and_no_network_twice() -> None:
    _, attacks = board()
    table = cross_tables.attacks(pd.concat([attacks, attacks.assign(kept=0.0)]))  # the first measurement counts
    assert set(table["attack"]) == {"pgd"}
    one = table[(table["world"] == "b") & (table["remedy"] == "nothing")]
    assert one["kept"].tolist() == pytest.approx([0.4])
    assert len(table) == 6


def lines(worlds: int, told: str = "T2", half: float = 0.8) -> tuple[pd.DataFrame, pd.DataFrame]:
    """X1's rows: two seeds in each world, T_2 in every other."""
    vectors, curves = [], []
    for i in range(worlds):
        names = ["ascent", "z", *[told] * (i % 2), "random", "other"]
        for seed, name in ((seed, name) for seed in (0, 1) for name in names):
            about = {"world": f"w{i}", "net": "two_layer", "remedy": "nothing", "seed": seed, "vector": name}
            ends = {"half": half + seed, "uap_half": half, "random_half": math.inf}
            vectors.append(about | {"needs": "", "told": int(name == told), "cosine": 0.5 + 0.2 * seed} | ends)
            curves += [about | {"size": s, "accuracy": 1 / (1 + s)} for s in (0.0, 1.0, 4.0)]
    return pd.DataFrame(curves), pd.DataFrame(vectors)


def test_the_table_of_vectors_has_means_over_seeds_and_no_ascent() -> None:
    table = cross_tables.vectors(lines(2)[1])
    assert table["vector"].tolist() == ["z", "random", "other", "z", "T2", "random", "other"]
    np.testing.assert_allclose(table["cosine"], 0.6)
    np.testing.assert_allclose(table["half"], 1.3)
    assert np.isinf(table["random_half"]).all()


@pytest.fixture
def _strict() -> Iterator[None]:
    """No warning goes unseen, and no figure stays open."""
    style.use(9.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # of what other tests left open
        yield
    plt.close("all")


def shown(figure: Figure) -> list[plt.Axes]:
    assert style.render(figure, "svg", 50).startswith(b"<?xml")
    return [ax for ax in figure.axes if ax.get_visible()]


@pytest.mark.usefixtures("_strict")
@pytest.mark.parametrize("worlds", [1, 2, 6])
@pytest.mark.parametrize("half", [0.8, math.inf])
def test_one_vector_is_drawn_in_every_world(worlds: int, half: float) -> None:
    curves, vectors = lines(worlds, half=half)
    axes = shown(plot.one_vector(curves, cross_tables.vectors(vectors)))
    assert [ax.get_title("left") for ax in axes] == [f"w{i}" for i in range(worlds)]
    assert [len(ax.lines) for ax in axes] == [4 + i % 2 for i in range(worlds)]
    assert axes[0].get_title("right") == "cosine of $z$ 0.60"
    assert axes[0].get_xlim() == (0, min(2.5 * half, 4.0))
    if worlds > 1:
        assert axes[1].get_title("right") == "cosine of $z$ 0.60, $T_2$ 0.60"


@pytest.mark.usefixtures("_strict")
@pytest.mark.parametrize("worlds", [1, 2, 6])
@pytest.mark.parametrize("certified", [0.1, math.nan])
def test_remedies_are_drawn_in_every_world_on_its_own_network(worlds: int, certified: float) -> None:
    rows = [(f"w{i}", "two_layer", r, s, 0.2 + 0.1 * s, 10) for i in range(worlds) for r in "xy" for s in (0, 1)]
    rows += [("w0", "mine", "x", 0, 0.9, 10), ("w0", "two_layer", "z_z", 0, 0.1, 10)]
    networks, attacks = measured([(w, n, {"x": "nothing"}.get(r, r), *rest) for w, n, r, *rest in rows])
    table = cross_tables.remedies(networks.assign(certified=certified), attacks)
    table.loc[table["world"] == f"w{worlds - 1}", "best"] = math.nan
    axes = shown(plot.remedies(table))
    assert [ax.get_title("left") for ax in axes] == [f"w{i}, radius 0.5" for i in range(worlds)]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["nothing", "y", "z z"]
    [robust] = [each for each in axes[0].containers if each.get_label() == "under attack"]
    np.testing.assert_allclose(robust.lines[0].get_xdata(orig=False), [0.25, 0.25, 0.1])  # 0.9 is another network's
