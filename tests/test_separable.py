"""No perturbation flips a sample that the separable bound calls certain: against enumeration, attacks and sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from brittle.attacks.fgm import Attack
from brittle.attacks.minimum_norm_pgd import minimal
from brittle.attacks.softened_pgd import perturbed, soft
from brittle.core.rng import rng
from brittle.nets.symmetric import Symmetric, pure
from brittle.nets.symmetric_from_below import from_below
from brittle.probes.certify import certified
from brittle.probes.separable import Below, Split, certain
from brittle.sparse.probe import proved
from brittle.sparse.settings import Setting
from brittle.train import purify
from brittle.train.purify import Rules, Stretch, Training, drawn
from brittle.worlds.sparse_coding import SparseCoding, labelling, orthogonal
from test_certify import exact_radii
from test_purification import exact, numbers, random_case, trained_case


def radius(net: Symmetric, x: Tensor, y: Tensor, low: float, high: float, halvings: int = 10) -> Tensor:
    """The largest τ found at which each sample is certain; 0 if it is not at `low`."""
    found = []
    for point, label in zip(x, y, strict=True):
        ends = [low, high]
        for _ in range(halvings):
            middle = sum(ends) / 2
            ends[0 if bool(certain(net, point[None], label[None], [middle])) else 1] = middle
        found.append(ends[0] if ends[0] > low else 0.0)
    return torch.tensor(found, dtype=torch.float64)


def planted(d: int = 24, copies: int = 1, b: float = 0.12) -> tuple[Symmetric, Tensor, Tensor]:
    """A network of words with a little of the dense direction and of noise; and sparse samples."""
    stream = rng(0, "planted")
    w = torch.eye(d, dtype=torch.float64).repeat(copies, 1) / copies
    w = w + 0.005 + 0.01 * torch.from_numpy(stream.standard_normal(w.shape)) / copies
    z = torch.from_numpy(stream.choice([-1.0, 0.0, 1.0], p=[0.08, 0.84, 0.08], size=(60, d)) / math.sqrt(3))
    net, x = Symmetric(w, b / copies, 0.05 * b / copies), z + 0.02 * torch.from_numpy(stream.standard_normal(z.shape))
    clear = z.sum(1).abs() > 0.5
    return net, x[clear], z[clear].sum(1).sign()


# The function below g


@pytest.mark.parametrize(("b", "sigma"), [(0.5, 0.025), (0.5, 0.0), (0.1, 0.1), (0.0, 0.2), (0.3, 0.15)])
def test_the_straight_pieces_are_below_g_and_near(b: float, sigma: float) -> None:
    z = torch.linspace(-2, 2, 4001, dtype=torch.float64)[:, None]
    gap = exact(Symmetric(torch.ones(1, 1, dtype=torch.float64), b, sigma), z) - Below(b, sigma)(z[:, 0])
    assert float(gap.min()) >= -1e-12
    assert float(gap.max()) <= 0.6 * sigma + 1e-12  # 0.4 σ is what ReLU leaves of R


@given(st.floats(-1.5, 1.5), st.floats(-2, 4), st.sampled_from([(0.5, 0.025), (0.5, 0.0), (0.1, 0.1), (0.0, 0.2)]))
@settings(max_examples=100, deadline=None)
def test_the_least_value_is_that_of_a_fine_search(z: float, ln_q: float, setting: tuple[float, float]) -> None:
    below, q = Below(*setting), math.exp(ln_q)
    t = torch.linspace(-10, 10, 400_001, dtype=torch.float64)  # the farthest candidate is at -1/q
    slow = float((below(z + t) + q * t**2).min())
    found = float(below.least(torch.tensor([z], dtype=torch.float64), torch.tensor([q], dtype=torch.float64)))
    assert found <= slow + 1e-12
    assert found >= slow - 1e-4 - q * 1e-3  # half a step of the search


# The bound


@given(seed=st.integers(0, 10**6), m=st.integers(1, 3), d=st.integers(2, 4))
@settings(max_examples=30, deadline=None)
def test_nothing_is_certain_beyond_the_radius_that_enumeration_finds(seed: int, m: int, d: int) -> None:
    """At σ_ρ = 0 the network is a ReLU network of 2m + 1 neurons, whose activation patterns can be enumerated."""
    stream = np.random.default_rng(seed)
    net = Symmetric(torch.from_numpy(stream.standard_normal((m, d))), float(stream.uniform(0, 0.5)), 0.0)
    x = 2 * torch.from_numpy(stream.standard_normal((3, d)))
    y = exact(net, x).sign()
    x, y = x[y != 0], y[y != 0]
    true = exact_radii(from_below(net), y[:, None] * x, torch.ones_like(y))
    taus = torch.linspace(0.05, 3, 30, dtype=torch.float64).tolist()
    sure = certain(net, x, y, taus)
    assert bool((sure <= (torch.tensor(taus) <= true[:, None] * (1 + 1e-8))).all())


@pytest.mark.parametrize("copies", [1, 3])
def test_on_orthogonal_words_alone_the_bound_is_exact_but_for_its_cells(copies: int) -> None:
    """One neuron a word, w_i = M_i, or copies of it: the words' own problems are then independent of each other."""
    d, b = 4, 0.3
    net = Symmetric(torch.eye(d, dtype=torch.float64).repeat(copies, 1), b, 0.0)
    x = torch.tensor([[1.0, 0, 0, 0], [1, 1, 0, 0], [1, 0.8, -0.6, 0]], dtype=torch.float64)
    one = Symmetric(net.w[:d], b, 0.0)
    y = torch.ones(3, dtype=torch.float64)
    true = exact_radii(from_below(one), x, y)
    found = radius(net, x, y, 0.01, 3.0, halvings=12)
    assert bool((found <= true * (1 + 1e-8)).all())
    assert bool((found >= 0.85 * true).all())


@pytest.mark.parametrize("case", [random_case, trained_case, planted], ids=["random", "trained", "planted"])
def test_neither_attack_nor_sampling_flips_what_is_certain(case: object) -> None:
    net, x, y = case()
    taus = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5]
    sure = certain(net, x, y, taus)
    wrong = y * exact(net, x) <= 0
    assert not sure[wrong].any()
    assert sure.any()
    assert not bool((sure[:, 1:] > sure[:, :-1]).any())  # what holds at a radius holds at smaller ones
    dense = net.w.double().sum(0) / net.w.double().sum(0).norm()
    noise = numbers("directions", 300, x.shape[1])
    for tau, some in zip(taus, sure.T, strict=True):
        if not some.any():
            continue
        attacks = perturbed(net, x[some], y[some], dense, "l2", tau, soft(net))
        random = [tau * direction.expand_as(x[some]) / direction.norm() for direction in noise]
        for delta in (*attacks.values(), *random):
            delta = delta / (1 + 1e-6)  # some are in float32
            assert float(delta.norm(dim=1).max()) <= tau
            assert bool((y[some] * exact(net, x[some] + delta) > 0).all())
    size = minimal(net, x[~wrong], y[~wrong], "l2", high=8.0, steps=30, halvings=10).size
    assert bool((sure[~wrong] <= (torch.tensor(taus) <= size[:, None])).all())


def purified(copies: int) -> tuple[Symmetric, Tensor]:
    """A network after Algorithms 1 and 2 at d = 64, and samples of label 1 to certify."""
    world = SparseCoding(orthogonal(64, 64, rng(0, "M")), labelling(64, 0.0, rng(0, "w*")), 5, sigma_x=0.3, margin=1.0)
    start = pure(world.dictionary, world.w_star, 64 * copies, 0.5, 0.003, rng(0, "w"))
    state, rules = Training.begin(start, 0.125), Rules(momentum=0.9, decay=0.1 / 64, rho=0.05)
    for steps, attack in ((275, None), (63, Attack("l2", 0.316))):
        purify.run(state, world, Stretch(steps, 256, 0.1, attack=attack), rules, 0, f"{attack}")
        net, state = state.net(rules), state.then()
    x, y = drawn(world, 16, rng(0, "test"))
    return net, (y[:, None] * x).double()


@pytest.mark.parametrize("copies", [1, 3])
def test_on_purified_networks_it_is_nowhere_worse_than_the_quadratic_bound_and_mostly_better(copies: int) -> None:
    net, x = purified(copies)
    ones = torch.ones_like(x[:, 0])
    before = certified(from_below(net), x, ones).radius
    ratio = radius(net, x, ones, 0.05, 1.0, halvings=8) / before
    assert bool((before > 0.1).all())
    assert float(ratio.min()) > 0.99  # the search for the radius ends within a hundredth
    assert float(ratio.median()) > 1.1


@pytest.mark.parametrize("copies", [1, 3])
def test_the_share_that_the_stage_reports_is_never_below_what_either_bound_proves(copies: int) -> None:
    """With more than two neurons a dimension it is the separable bound's alone."""
    net, x = purified(copies)
    ones, taus = torch.ones_like(x[:, 0]), [0.2, 0.24, 0.28, 0.32]
    parabolas = certified(from_below(net), x, ones).radius[:, None] > torch.tensor(taus)
    alone = certain(net, x, ones, taus)
    nothing = torch.zeros(0)
    rows = list(proved(net, Setting(None, nothing, nothing, nothing, x, ones), taus))
    both = alone | parabolas if copies == 1 else alone
    assert [row["accuracy"] for row in rows] == both.double().mean(0).tolist()
    assert [row["tau"] for row in rows] == taus


def test_the_shares_of_a_perturbation_fit_into_its_ball() -> None:
    """Σ_i c_i ⟨u_i, δ⟩² ≤ ‖δ‖² - ⟨v, δ⟩² for any δ, and some δ comes near."""
    w = numbers("w", 30, 8)
    split = Split.of(w)
    rest_of = numbers("δ", 5000, 8)
    v = torch.linalg.svd(w)[2][0]
    assert torch.allclose((w @ v).abs(), split.along.abs())
    used = ((rest_of @ w.T - (rest_of @ v)[:, None] * (w @ v)).square() * split.c).sum(1)
    left = rest_of.square().sum(1) - (rest_of @ v).square()
    assert bool((used <= left).all())
    assert float((used / left).max()) > 0.8


def test_a_network_without_neurons_to_speak_of_and_wrong_samples_are_not_certain() -> None:
    net = Symmetric(torch.eye(3, dtype=torch.float64), 0.2, 0.01)
    x = torch.tensor([[1.0, 0, 0], [0, 0, 0]], dtype=torch.float64)
    assert certain(net, x, torch.tensor([1.0, 1.0], dtype=torch.float64), [0.3]).tolist() == [[True], [False]]
    assert certain(net, x, torch.tensor([-1.0, 1.0], dtype=torch.float64), [0.3]).tolist() == [[False], [False]]


def test_radii_may_be_given_in_any_order() -> None:
    net, x, y = planted()
    taus = [0.3, 0.05, 0.2]
    together = certain(net, x, y, taus)
    assert torch.equal(together, torch.cat([certain(net, x, y, [tau]) for tau in taus], dim=1))
