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
from brittle.attacks import named
from brittle.attacks.minimum import minimum
from brittle.figures import cross as figures
from brittle.figures import cross_tables, style
from brittle.nets import modules
from brittle.nets.modules import Average, Cnn, Relu, Symmetric, as_two_layer, first_layer
from brittle.nets.robust_construction import thm31
from brittle.nets.threshold import Thresholded
from brittle.params.base import BadInput, load
from brittle.plugins import Plugin
from brittle.probes import every, one_vector, threshold
from brittle.probes.moments import direction, moments
from brittle.stages import cross, cross_data
from brittle.worlds.common import World, checked
from conftest import ROOT, TINY, set_params

seeds = st.integers(0, 2**31)
OURS = plugins.ours("attack")
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


def test_ascent_takes_the_smallest_ball_that_halves_the_accuracy() -> None:
    """Along the first coordinate a label changes at 1, along the second, steeper one, at 3: too far to be wanted."""
    x = torch.zeros(10, 2)
    world = World(x=x, y=torch.ones(10), x_test=x, y_test=torch.ones(10), radius=1.0)

    def f(p: Tensor) -> Tensor:
        return 1 + p[:, 0] - 5 * (-p[:, 1] - 2.8).relu()

    assert float(one_vector.by_ascent(f, world).direction[0]) > 0.99


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


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=len(one_vector.SIZES), max_size=len(one_vector.SIZES)))
def test_before_it_halves_the_interpolated_curve_is_above_half(curve: list[float]) -> None:
    world = small(radius=1.5)
    half = one_vector.halves_at(world, curve)
    sizes = np.array(one_vector.SIZES) * 1.5
    before = np.linspace(0, min(half, sizes[-1]), 500)[:-1]
    assert (np.interp(before, sizes, curve) > curve[0] / 2 - 1e-9).all()
    if math.isfinite(half):
        assert np.interp(half, sizes, curve) == pytest.approx(curve[0] / 2)
    else:
        assert curve[-1] > curve[0] / 2


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
    found = every.under_attack(net, world, 40, OURS)
    assert found.kept["all"].tolist() == (room[:40] > 0).tolist()
    if known:
        assert every.proved(net, world, found.kept["all"]) == {"certified": float((room[:40] > 0).double().mean())}
        median = float((world.y_test * (world.x_test @ w) / w.norm()).clamp(min=0)[:30].median())
        expected = {"radius_certified": median, "radius_attacked": median}
        assert every.bracket(net, world, 30) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    else:
        assert every.proved(net, world, found.kept["all"]) == {}  # nothing is known of it


@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_all_keeps_what_every_attack_keeps_and_no_more_is_proved(seed: int) -> None:
    world = small(seed, radius=0.3)
    net = relu(normal(seed + 1, 8, 5), normal(seed + 2, 8), normal(seed + 3, 8))
    found = every.under_attack(net, world, 30, OURS)
    assert list(found.kept) == ["pgd", "nearest", "all"]
    for i in range(30):
        assert bool(found.kept["all"][i]) == all(bool(found.kept[each.name][i]) for each in OURS)
    share = float(found.kept["all"].double().mean())
    assert every.proved(net, world, found.kept["all"])["certified"] <= share
    every_sample = torch.ones(30, dtype=torch.bool)  # also those that were flipped cannot be certified
    assert every.proved(net, world, every_sample) == every.proved(net, world, found.kept["all"])
    both = every.bracket(net, world, 15)
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
        sure = torch.tensor([every.proved(net, world, one)["certified"] > 0 for one in alone])
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
        reads_s, reads_rest, reads_both = (
            every.reliance(Linear(w), there, 2) for w in (q[0], q[3], q[0] + q[3])
        )
        assert reads_s["reliance"] > 0.95
        assert reads_s["auc_rest"] == pytest.approx(reads_s["auc"], abs=1e-4)
        assert reads_s["auc_s"] == pytest.approx(0.5, abs=0.03)
        assert reads_rest["reliance"] == pytest.approx(0, abs=1e-3)
        assert reads_rest["auc_rest"] == pytest.approx(0.5, abs=0.03)
        assert 0.1 < reads_both["reliance"] < 0.6
        assert reads_both["accuracy"] == pytest.approx(float((world.y * world.x[:, [0, 3]].sum(1) > 0).double().mean()))
    found = [every.reliance(Linear(q[0] + q[3]), there, 2) for there, q in shapes.values()]
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    assert found[0] == pytest.approx(found[2], abs=1e-3)


def test_reliance_is_left_out_where_it_has_no_meaning() -> None:
    world = two_features()
    assert every.reliance(Linear(torch.eye(5)[0]), world, 1).keys() == {"accuracy"}  # no S
    guess = every.reliance(Linear(torch.eye(5)[4]), replace(world, simple=torch.eye(5)[:1]), 1)
    assert math.isnan(guess["reliance"])


def test_a_kkt_point_has_no_residual_and_a_network_that_does_not_separate_has_no_margin() -> None:
    """A sample a neuron, w̃_j ∝ x̃_j and |v_j| = ‖w̃_j‖, each neuron off at the other sample: λ_j = 1/‖x̃_j‖ (Eq 3)."""
    x, y = torch.tensor([[1.0, 2.0], [-2.0, -1.0]]), torch.tensor([1.0, -1.0])
    x1 = torch.cat([x, torch.ones(2, 1)], 1)
    size = x1.norm(dim=1, keepdim=True) ** -0.5  # the outputs are 1
    w = size * x1 / x1.norm(dim=1, keepdim=True)
    net, world = relu(w[:, :2], w[:, 2], y * size[:, 0]), World(x=x, y=y, x_test=x, y_test=y, radius=1.0)
    assert every.kkt_residual(net, world)["kkt"] == pytest.approx(0, abs=1e-3)
    turned = relu(w[:, :2] + 0.1 * torch.tensor([[1.0, -1.0]]), w[:, 2], y * size[:, 0])
    assert every.kkt_residual(turned, world)["kkt"] > 0.05
    assert every.kkt_residual(net, replace(world, y=torch.tensor([1.0, 1.0]))) == {}
    assert every.kkt_residual(Average([net, net]), world) == {}


def test_purity_of_neurons_and_perturbations_with_known_densities() -> None:
    basis = torch.linalg.qr(normal(0, 6, 6)).Q
    world, none = small(d=6, basis=basis), torch.zeros(3, 6)
    single, mixed = (relu(w, torch.zeros(6), torch.ones(6)) for w in (2 * basis.T, (basis @ torch.ones(6)).expand(6, 6)))
    assert every.purity(single, single, world, none).keys() == {"density"}  # neither a θ nor a perturbation
    scaled = relu(-3 * single.first.weight.detach(), torch.ones(6), torch.zeros(6))
    found = every.purity(scaled, single, world, torch.cat([none, 5 * basis.T[:1]]))
    assert found == pytest.approx({"theta": 1.0, "density": 6**-0.5, "density_delta": 6**-0.5}, rel=1e-4)
    found = every.purity(mixed, single, world, -2 * (basis @ torch.ones(6))[None])
    assert found == pytest.approx({"theta": 6**-0.5, "density": 1.0, "density_delta": 1.0}, rel=1e-4)


def test_the_density_of_a_flat_picture_is_that_of_one_wavelet() -> None:
    delta = torch.zeros(1, 3, 4, 8)
    delta[:, 1] = 0.7
    pictures = small(d=96, shape=(3, 4, 8))
    net = Linear(torch.ones(96))
    assert every.purity(net, net, pictures, delta.flatten(1)) == pytest.approx({"density_delta": 96**-0.5}, rel=1e-4)
    odd = small(d=96, shape=(2, 6, 8))
    assert every.purity(net, net, odd, delta.flatten(1)) == {}  # no such wavelets


# --- The thresholded model


def thresholded(seed: int, d: int, b: float) -> tuple[Thresholded, Tensor, Tensor]:
    """Weights between 0.5 and 1.5, of either sign."""
    q, w = torch.linalg.qr(normal(seed, d, d).double()).Q, normal(seed + 1, d).double()
    return Thresholded(q, w.sign() * (0.5 + w.abs().clamp(max=1)), b), 2 * normal(seed + 2, 20, d).double(), labels(seed + 3, 20).double()


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
    counts = [
        int((threshold.certified(replace(model, b=share / 20 / 2), x, y) > 0.4).sum()) for share in range(1, 20)
    ]
    assert int((threshold.certified(found, x, y) > 0.4).sum()) == max(counts) > min(counts)


# --- Networks


@settings(max_examples=10, deadline=None)
@given(seed=seeds, d=st.integers(1, 8))
def test_the_networks_are_the_same_function_as_their_two_layers(seed: int, d: int) -> None:
    draws = np.random.default_rng(seed)
    x = 2 * normal(seed, 20, d)
    plain = [kind(d, 30, draws) for kind in (Relu, Symmetric) for _ in range(3)]
    plain.append(Symmetric(d, 30, draws, norm=3.0, bias=0.5))
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
    net, x = Symmetric(4, 10, np.random.default_rng(0), norm=2.0, bias=0.3), normal(0, 15, 4)
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


@pytest.mark.parametrize("build", [modules.two_layer, modules.symmetric, modules.cnn])
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
    kept = every.under_attack(net, World(x=x, y=y, x_test=x, y_test=y, radius=radius), 2, OURS).kept
    assert {name: list(map(bool, each)) for name, each in kept.items()} == {
        "pgd": [True, True],
        "nearest": [False, True],
        "all": [False, True],
    }
    moved = named.nearest(net, x, y, radius)
    assert float(moved[0, 0]) == pytest.approx(0.725 * named.BEYOND, rel=0.02)
    assert torch.equal(moved[1], x[1])
    assert torch.equal(named.nearest(Linear(normal(0, 30)), x, y, radius), x)  # nothing is known of its boundary


@settings(max_examples=10, deadline=None)
@given(seed=seeds, radius=st.floats(0.01, 10))
def test_our_attacks_stay_within_the_radius_and_only_ever_lower_scores(seed: int, radius: float) -> None:
    net, world = relu(normal(seed, 8, 5), normal(seed + 1, 8), normal(seed + 2, 8)), small(seed + 3)
    with torch.no_grad():
        before = world.y * net(world.x)
        for each in OURS:
            with torch.enable_grad():
                moved = named.attacked(each, net, world.x, world.y, radius)
            assert float((moved - world.x).norm(dim=1).max()) <= radius + 1e-6
            assert bool((world.y * net(moved) <= before.maximum(torch.tensor(1e-4)) + 1e-4).all())


def yours(body: str, kind: str = "attack", arguments: str = "net, x, y, radius") -> Plugin:
    text = f"import torch\nfrom brittle.plugins import {kind}\n\n@{kind}\ndef mine({arguments}):\n    {body}\n"
    [found] = plugins.load({"plugins/x.py": text})
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
        every.under_attack(Linear(torch.ones(5)), small(), 60, [*OURS, yours(body)])
    assert str(error.value) == f"plugins/x.py: attack mine() {words}"


@pytest.mark.xfail(strict=True, raises=RuntimeError, reason="attacked() does not check the dtype; the network fails")
def test_an_attack_that_returns_float64_is_no_traceback() -> None:
    try:
        every.under_attack(Linear(torch.ones(5)), small(), 60, [yours("return x.double()")])
    except BadInput as error:
        assert str(error).startswith("plugins/x.py: attack mine() ")  # or it is accepted


@pytest.mark.xfail(strict=True, reason="attacked() compares the result with the x that the attack itself has changed")
def test_an_attack_that_works_in_place_neither_goes_too_far_nor_changes_the_world() -> None:
    world = small()
    world = replace(world, x_test=world.x_test.clone())
    with pytest.raises(BadInput, match="moved a sample by"):
        every.under_attack(Linear(torch.ones(5)), world, 60, [yours("return x.sub_(100 * y[:, None])")])
    assert torch.equal(world.x_test, world.x)


@pytest.mark.xfail(strict=True, raises=BadInput, reason="the slack of attacked() is less than float32 rounds x + δ by")
def test_our_own_attack_is_not_called_too_far_for_how_float32_rounds() -> None:
    world = small(n=200)
    named.attacked(OURS[0], Linear(torch.ones(5)), 1000 + world.x, world.y, 0.1)
