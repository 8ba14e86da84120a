"""Feature purification (FP) from probes to stages: the bound from below, mixtures, θ, density, attacks, the grid."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from torch import Tensor

from brittle.attacks import softened_pgd
from brittle.attacks.fgm import Attack, fgm
from brittle.attacks.minimum_norm_pgd import minimal
from brittle.attacks.pgd import pgd
from brittle.core import progress
from brittle.core.errors import BadInput
from brittle.core.params import load
from brittle.core.rng import rng
from brittle.nets.symmetric import Symmetric, pure
from brittle.nets.symmetric_from_below import from_below
from brittle.params import overlaid
from brittle.probes.certify import certified
from brittle.probes.density import density
from brittle.probes.lottery import tickets
from brittle.probes.mixture import PURE, decompose, mixture
from brittle.probes.theta import correlated, local, moved, theta, theta_pairs, turned
from brittle.sparse import data, grid, schedules, train
from brittle.sparse import settings as sparse_settings
from brittle.sparse.grid import Varied
from brittle.sparse.params import SparseParams
from brittle.sparse.schedules import Phase
from brittle.sparse.settings import Setting
from brittle.sparse.world import draw_world
from brittle.train import purify
from brittle.train.purify import BLOCK, Rules, Stretch, Training, drawn
from brittle.worlds.sparse_coding import SparseCoding, incoherent, labelling, orthogonal
from conftest import ROOT
from tiny import TINY

BALLS = {"l2": 2.0, "linf": math.inf}
NORMS = pytest.mark.parametrize("norm", BALLS)
CONTENT = YAML(typ="safe", pure=True).load(ROOT / "params.yaml")
# What numbers below refer to, whatever params.yaml and conftest.py say.
FIXED = {"d": 16, "words": 16, "dictionary": "orthogonal", "k": 3, "c1": 0.5, "c2": 0.5, "sigma_x": 0.3, "spikes": 1.0}
FIXED |= {"spike_size": 0.5, "spread": 0.0, "margin": 1.0, "tau": 0.3, "taus": [0.2, 0.3], "test": 40, "decay": 0.1}
FIXED |= {"pgd": 5, "random__neurons": 150, "random__lottery__bias": 0.5, "pure__bias": 0.065, "pure__copies": 1}
FIXED |= {"grid__variants": ["spikes", "incoherent", "spread", "linf"]}


def numbers(purpose: str, *shape: int) -> Tensor:
    return torch.from_numpy(rng(0, purpose).standard_normal(shape))


def dotted(key: str) -> str:
    return f"sparse.{key.replace('__', '.')}"


def content(**changes: Any) -> dict[str, Any]:
    """params.yaml at a tiny scale, of the section `sparse` some values (dots are written __) changed."""
    found = {key: value for key, value in copy.deepcopy(CONTENT).items() if key in SparseParams.model_fields}
    tiny = {key: value for key, value in TINY.items() if key.startswith("sparse.")}
    for key, value in (tiny | {dotted(key): value for key, value in (FIXED | changes).items()}).items():
        *path, last = key.split(".")
        section = found
        for part in path:
            section = section[part]
        assert last in section, key
        section[last] = value
    return found


def params(**changes: Any) -> SparseParams:
    return SparseParams.model_validate(content(**changes))


# The bound from below


def exact(net: Symmetric, x: Tensor) -> Tensor:
    """f(x_i) by its definition, nothing cut off."""

    def r(u: Tensor) -> Tensor:
        if net.sigma == 0:
            return u.clamp(min=0)
        t = u / net.sigma
        return u * torch.special.ndtr(t) + net.sigma * (-t * t / 2).exp() / math.sqrt(2 * math.pi)

    return sum(r(x @ row - net.b) - r(-(x @ row) - net.b) for row in net.w.double())


def below(net: Symmetric, x: Tensor, shift: float) -> Tensor:
    return from_below(net, shift)(x[None])[0]


@given(
    b=st.floats(0, 2),
    sigma=st.sampled_from([0.0, 1e-3, 0.05, 0.4, 2.0]),
    shift=st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 6.0]),
    scale=st.sampled_from([0.03, 0.5, 1.0, 4.0]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=150)
def test_the_network_from_below_is_below_everywhere_and_not_far(
    b: float, sigma: float, shift: float, scale: float, seed: int
) -> None:
    m, d = 7, 4
    stream = np.random.default_rng(seed)
    net = Symmetric(torch.from_numpy(stream.standard_normal((m, d))), b, sigma)
    x = scale * torch.from_numpy(stream.standard_normal((200, d)))
    gap = exact(net, x) - below(net, x, shift)
    rounding = 1e-13 * m * (1 + b + scale * float(net.w.norm()))
    assert gap.min() >= -rounding
    tail = sigma * float(shift * (torch.special.ndtr(torch.tensor(-shift)) - 1))  # of R(-s), without its Gaussian
    tail += sigma * math.exp(-(shift**2) / 2) / math.sqrt(2 * math.pi)  # s + R(-s) - s
    assert gap.max() <= m * (0.4 * sigma + shift * sigma + max(tail + shift * sigma, 0)) + rounding
    if sigma == 0:
        assert gap.abs().max() <= rounding


@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0, 4.0])
def test_the_network_from_below_touches_where_the_shift_says(shift: float) -> None:
    """One neuron at ⟨w, x⟩ = shift σ - b: R(-⟨w, x⟩ - b) = R(-shift σ), whose bound is an equality there."""
    net = Symmetric(torch.ones(1, 1, dtype=torch.float64), b=2.0, sigma=0.1)
    x = torch.linspace(-4, 4, 801, dtype=torch.float64)[:, None] + (shift * 0.1 - 2.0)
    gap = exact(net, x) - below(net, x, shift)
    assert gap[400] == pytest.approx(0, abs=1e-12)
    assert gap[390] > 1e-7  # one σ to either side
    assert gap[410] > 1e-7


def test_the_network_from_below_is_below_what_the_network_itself_computes() -> None:
    """Neurons that are off are left out by `Symmetric`; the default bound allows for that."""
    w = numbers("w", 30, 8).float()
    x = numbers("x", 2000, 8)
    for sigma in (0.0, 0.02, 0.1, 0.5):
        net = Symmetric(w, 0.8, sigma)
        assert (from_below(net)(x[None])[0] <= net.to(torch.float64)(x) + 1e-12).all()


def random_case() -> tuple[Symmetric, Tensor, Tensor]:
    """Whatever the network says is right."""
    net = Symmetric(0.5 * numbers("w", 12, 8), 0.3, 0.015)
    x = 1.5 * numbers("x", 40, 8)
    y = net(x).sign()
    y[:4] *= -1  # and four samples that are wrong
    return net, x, y


def trained_case() -> tuple[Symmetric, Tensor, Tensor]:
    """Algorithms 1 and 2, briefly."""
    world = SparseCoding(
        orthogonal(10, 10, rng(0, "M")), labelling(10, 0.0, rng(0, "w*")), k=2, sigma_x=0.1, margin=0.5
    )
    state = Training.begin(pure(world.dictionary, world.w_star, 20, 0.5, 0.05, rng(0, "w")), 0.15)
    rules = Rules(momentum=0.9, decay=1e-3, rho=0.05)
    for attack in (None, Attack("l2", 0.2)):
        purify.run(state, world, Stretch(96, 64, 0.1, attack=attack), rules, 0, f"{attack}")
        state = state.then()
    x, y = drawn(world, 40, rng(0, "test"))
    return state.net(rules).to(torch.float64), x.double(), y.double()


@pytest.mark.parametrize("case", [random_case, trained_case], ids=["random", "trained"])
def test_no_attack_beats_the_certificate(case: Any) -> None:
    net, x, y = case()
    radius = certified(from_below(net), y[:, None] * x, torch.ones_like(y)).radius
    right = y * exact(net, x) > 0
    assert right.sum() >= 20
    assert (radius[~right] == 0).all()
    assert (radius[right] > 0).double().mean() > 0.8
    assert radius.isfinite().all()
    some, r = radius > 0, radius
    noise = numbers("noise", *x.shape)
    for start in (None, noise, -noise):
        delta = pgd(net, x[some], y[some], "l2", r[some], 40, start=None if start is None else start[some])
        assert (delta.norm(dim=1) <= r[some] * (1 + 1e-9)).all()
        assert (y[some] * exact(net, x[some] + delta) > 0).all()
        further = pgd(net, x[some], y[some], "l2", 4 * r[some], 40)
        assert (y[some] * exact(net, x[some] + further) <= 0).double().mean() > 0.5  # it is no weak attack
    found = minimal(net, x[right], y[right], "l2", high=8.0, steps=30, halvings=10)
    assert (y[right] * exact(net, x[right] + found.delta) <= 1e-9).double().mean() > 0.8
    assert (found.size >= radius[right]).all()
    assert (radius[right] / found.size).median() > 0.25  # nor is the radius a trivial one


# Lottery tickets


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.5])
def test_tickets_are_those_of_definition_b_1_neuron_by_neuron(gap: float) -> None:
    dictionary, w_star = basis()
    w, c1, sigma0 = 0.1 * numbers("tickets", 200, 8), 1.6, 0.1
    unit = sigma0**2 * math.log(8)
    found = tickets(w, dictionary, w_star, math.sqrt(c1 * unit), gap)
    c2 = gap * c1
    for i, row in enumerate(w.tolist()):
        products = [sum(a * b for a, b in zip(row, word, strict=True)) for word in dictionary.T.tolist()]
        for j, (product, sign) in enumerate(zip(products, w_star.tolist(), strict=True)):
            others = products[:j] + products[j + 1 :]
            assert bool(found.pot[i, j]) == (product**2 >= (c1 - c2) * unit)
            sure = product**2 >= (c1 + c2) * unit and all(other**2 < (c1 - c2) * unit for other in others)
            assert bool(found.sure[i, j]) == (sure and product * sign > 0)
    assert 0 < int(found.sure.sum()) < int(found.pot.sum()) < found.pot.numel()


# Mixtures


def basis(d: int = 8) -> tuple[Tensor, Tensor]:
    """An orthogonal dictionary and a labelling of random signs and uneven sizes."""
    w_star = torch.from_numpy(labelling(d, 0.5, rng(0, "w*"))).double()
    assert 0 < (w_star > 0).sum() < d
    return torch.from_numpy(orthogonal(d, d, rng(0, "M"))).double(), w_star


def planted(coefficients: Tensor, dictionary: Tensor, w_star: Tensor) -> Tensor:
    """Σ_j c_ij sign(w*_j) M_j."""
    return (coefficients * w_star.sign()) @ dictionary.T


def close(found: Tensor | float, expected: Any, atol: float = 1e-6) -> None:
    """Up to the dictionary's float32."""
    torch.testing.assert_close(
        *(torch.as_tensor(each, dtype=torch.float64) for each in (found, expected)), rtol=0, atol=atol
    )


def test_planted_mixtures_are_found() -> None:
    d, (dictionary, w_star) = 8, basis()
    c = torch.zeros(6, d, dtype=torch.float64)
    c[0], c[0, 3] = 0.1, 2.0  # words with a mixture along w* …
    c[1], c[1, 5] = 0.3, 3.0
    c[2, :4], c[2, 4:], c[2, 3] = 0.1, -0.1, 4.0  # … and with one that agrees with it in three of seven
    c[3, 6] = -5.0  # against its word: not a feature
    c[4] = 2 * w_star.abs()  # M w* itself
    c[5, :2] = 1.0  # two words: neither
    w = planted(c, dictionary, w_star)
    neurons = decompose(w, dictionary, w_star)
    close(neurons.coefficients, c)
    close(neurons.norms, c.norm(dim=1))
    assert neurons.word[:3].tolist() == [3, 5, 3]
    assert neurons.word[4] == w_star.abs().argmax()
    close(neurons.alpha[:3], [2.0, 3.0, 4.0])
    close(neurons.alpha[3], 0.0)
    close(neurons.beta[:3], [0.1, 0.3, -0.1 / 7])
    close(neurons.dense_cosine, (c @ w_star.abs()) / (c.norm(dim=1) * w_star.norm()))
    close(neurons.dense_cosine[4], 1.0)
    assert neurons.pure.tolist() == [True, True, True, False, False, True]  # 1/√2 > 0.7 of the last
    assert neurons.runaway.tolist() == [False, False, False, False, True, False]

    c[5, 2] = 1.0  # three words: 1/√3
    w = planted(c, dictionary, w_star)
    found = mixture(decompose(w, dictionary, w_star), w, dictionary, w_star)
    close(found["neurons"], 6.0)
    close(found["pure"], 3 / 6)
    close(found["covered"], 2 / d)
    close(found["runaway"], 1 / 6)
    close(found["runaway_energy"], 4 * w_star.square().sum() / c.square().sum())
    close(found["alpha"], 3.0)
    close(found["beta"], (0.1 + 0.3 - 0.1 / 7) / 3)
    close(found["ratio"], 0.1 / 2)  # the median of 0.05, 0.1, -0.0036
    close(found["agreement"], (7 + 7 + 3) / 21)
    shared = c[:3].clone()
    shared[torch.arange(3), [3, 5, 3]] = 0
    mean = shared.mean(0)
    close(found["mean_cosine"], mean @ w_star.abs() / (mean.norm() * w_star.norm()))


def test_a_mixture_along_the_labelling_has_cosine_one_and_full_agreement() -> None:
    d, (dictionary, w_star) = 8, basis()
    c = 0.05 * w_star.abs().repeat(d, 1)
    c[torch.arange(d), torch.arange(d)] = 1.0
    w = planted(c, dictionary, w_star)
    found = mixture(decompose(w, dictionary, w_star), w, dictionary, w_star)
    # Every word is missing once in the sum of d: still parallel to w*.
    close(
        [found[key] for key in ("pure", "covered", "agreement", "mean_cosine", "alpha", "runaway")], [1, 1, 1, 1, 1, 0]
    )
    other = mixture(decompose(-w, dictionary, w_star), -w, dictionary, w_star)
    assert other["pure"] == other["covered"] == 0
    assert all(math.isnan(other[key]) for key in ("alpha", "beta", "ratio", "agreement", "mean_cosine"))


def test_from_the_threshold_on_a_neuron_is_pure_or_runaway() -> None:
    dictionary, w_star = torch.eye(4, dtype=torch.float64), torch.tensor([1.0, -1.0, 1.0, -1.0]).double()
    single = 2 * planted(torch.eye(4).double(), dictionary, w_star)
    assert mixture(decompose(single, dictionary, w_star), single, dictionary, w_star)["agreement"] == 0  # 0 is no sign
    for cosine, expected in ((PURE - 0.01, False), (PURE + 0.01, True)):
        sine = math.sqrt(1 - cosine**2)
        word = planted(torch.tensor([[cosine, sine / 2**0.5, -sine / 2**0.5, 0]]).double(), dictionary, w_star)
        assert bool(decompose(word, dictionary, w_star).pure) is expected
        dense = planted(torch.tensor([[1.0, 1, 1, 1]]).double() * cosine / 2, dictionary, w_star)
        dense += planted(torch.tensor([[1.0, -1, 0, 0]]).double() * sine / 2**0.5, dictionary, w_star)
        assert bool(decompose(dense, dictionary, w_star).runaway) is expected


def test_the_decomposition_is_that_of_slow_loops_and_zero_neurons_are_nothing() -> None:
    dictionary = torch.from_numpy(incoherent(7, 11, rng(0, "M"))).double()
    w_star = torch.from_numpy(labelling(11, 0.3, rng(0, "w*"))).double()
    w = numbers("w", 9, 7)
    w[4] = 0
    neurons = decompose(w, dictionary, w_star)
    assert neurons.rest.shape == (9, 10)
    for i in range(9):
        c = [math.copysign(1, w_star[j]) * sum(w[i, a] * dictionary[a, j] for a in range(7)) for j in range(11)]
        word = max(range(11), key=lambda j, c=c: c[j])
        others = [c[j] for j in range(11) if j != word]
        assert i == 4 or neurons.word[i] == word
        close(neurons.alpha[i], max(c), 1e-12)
        close(neurons.rest[i], others, 1e-12)
        close(neurons.beta[i], sum(others) / 10, 1e-12)
        assert bool(neurons.pure[i]) == (max(c) > PURE * w[i].norm())
    assert not neurons.pure[4]
    assert neurons.dense_cosine[4] == 0


# How alike neurons are


def dot(a: Any, b: Any) -> float:
    return sum(float(p) * float(q) for p, q in zip(a, b, strict=True))


def slow_theta(a: Tensor, b: Tensor) -> float:
    return abs(dot(a, b)) / math.sqrt(dot(a, a) * dot(b, b))


def pair(m: int = 9, d: int = 5) -> tuple[Tensor, Tensor]:
    sizes = torch.logspace(-1, 1, m, dtype=torch.float64)[:, None]
    w = sizes * numbers("w", m, d)
    return w, w + 0.7 * sizes * numbers("after", m, d)


def test_alikeness_is_that_of_slow_loops() -> None:
    w, v = pair()
    m = range(len(w))
    close(theta(w, v), [slow_theta(w[i], v[i]) for i in m], 1e-12)
    close(theta_pairs(w), [slow_theta(w[i], w[j]) for i in m for j in m if i < j], 1e-12)
    close(theta_pairs(w, most=4), [slow_theta(w[i], w[j]) for i in range(4) for j in range(i + 1, 4)], 1e-12)
    sizes = sum(dot(w[i], w[i]) for i in m)
    expected = sum(dot(w[i], v[i]) ** 2 for i in m) / sum(dot(w[i], w[i]) * dot(v[i], v[i]) for i in m)
    close(moved(w, v), expected, 1e-12)
    close(correlated(w), sum(dot(w[i], w[j]) ** 2 for i in m for j in m) / sizes**2, 1e-12)
    close(local(w, v), sum(dot(w[i] - v[i], w[i] - v[i]) for i in m) / sizes, 1e-12)
    close(turned(w, v), sum(dot(w[i], w[i]) * (1 - slow_theta(w[i], v[i]) ** 2) for i in m) / sizes, 1e-12)


def test_turned_is_what_is_left_of_local_by_the_best_rescaling() -> None:
    """min_c ‖w - c w'‖² = ‖w‖² sin²(w, w'), so that turned ≤ local, and no factors do better than the best ones."""
    w, v = pair()
    best = (w * v).sum(1, keepdim=True) / v.square().sum(1, keepdim=True)
    close(turned(w, v), local(w, best * v), 1e-12)
    assert turned(w, v) < local(w, v)
    for factor in (0.5, 0.99, 1.01, 3.0):
        assert turned(w, v) < local(w, factor * best * v)


@given(
    seed=st.integers(0, 10**6), m=st.integers(1, 12), d=st.integers(1, 6), step=st.sampled_from([0.0, 0.1, 1.0, 9.0])
)
@settings(max_examples=60)
def test_alikeness_has_its_ranges(seed: int, m: int, d: int, step: float) -> None:
    stream = np.random.default_rng(seed)
    w, v = (torch.from_numpy(stream.standard_normal((m, d))) for _ in range(2))
    v = w + step * v
    for values in (theta(w, v), theta_pairs(w)):
        assert ((values >= 0) & (values <= 1 + 1e-12)).all()
    assert len(theta_pairs(w)) == m * (m - 1) // 2
    assert 0 <= moved(w, v) <= 1 + 1e-12
    assert 1 / min(m, d) - 1e-12 <= correlated(w) <= 1 + 1e-12  # Σλ² ≥ (Σλ)²/rank
    assert -1e-12 <= turned(w, v) <= min(1, local(w, v)) + 1e-12


def test_alikeness_at_its_extremes() -> None:
    w, _ = pair()
    assert local(w, w) == 0
    close(turned(w, w), 0, 1e-12)
    close(theta(w, w), torch.ones(len(w)), 1e-12)
    close(theta(w, -w), torch.ones(len(w)), 1e-12)
    close(moved(w, w), 1, 1e-12)
    close(local(w, -w), 4, 1e-12)
    close(local(w, 0 * w), 1, 1e-12)
    close(turned(w, 0 * w), 1, 1e-12)
    close(correlated(w[:1].repeat(7, 1) * torch.arange(-3.5, 3.5)[:, None]), 1, 1e-12)
    words = torch.eye(5, dtype=torch.float64)
    close(correlated(words), 1 / 5, 1e-12)
    close(theta_pairs(words), torch.zeros(10), 1e-12)
    turned_away = words.roll(1, 0)
    close([moved(words, turned_away), turned(words, turned_away), local(words, turned_away)], [0, 1, 2], 1e-12)


def test_alikeness_under_rescaling_and_rotation() -> None:
    w, v = pair()
    factors = torch.tensor([0.1, -1, 2, 3, -4, 5, 0.6, 7, 100]).double()[:, None]
    close(theta(factors * w, v), theta(w, v), 1e-12)
    close(theta(w, factors * v), theta(w, v), 1e-12)
    close(theta_pairs(factors * w), theta_pairs(w), 1e-12)
    close(turned(w, factors * v), turned(w, v), 1e-12)
    close(turned(-3 * w, v), turned(w, v), 1e-12)  # only in common: turned weighs neurons by their energy
    assert abs(turned(factors * w, v) - turned(w, v)) > 1e-3
    assert abs(local(w, factors * v) - local(w, v)) > 1e-3
    for measure in (moved, local):
        close(measure(3 * w, 3 * v), measure(w, v), 1e-12)
    close(correlated(3 * w), correlated(w), 1e-12)
    q = torch.from_numpy(orthogonal(5, 5, rng(0, "q"))).double()
    q = torch.linalg.qr(q).Q  # in float64
    for measure in (theta, moved, local, turned):
        close(measure(w @ q, v @ q), measure(w, v), 1e-12)
        assert not torch.allclose(torch.as_tensor(measure(w @ q, v)), torch.as_tensor(measure(w, v)))
    for measure in (theta_pairs, correlated):
        close(measure(w @ q), measure(w), 1e-12)


# Density


@pytest.mark.parametrize("d", [8, 12, 33])
def test_density_of_one_word_of_all_and_of_some(d: int) -> None:
    dictionary = torch.from_numpy(orthogonal(d, d, rng(0, "M"))).double()
    signs = numbers("signs", 5, d).sign()
    cases = {1: torch.eye(d, dtype=torch.float64)[:5], 3: torch.zeros(5, d, dtype=torch.float64), d: signs}
    cases[3][:, 1:4] = signs[:, 1:4]
    for words, coefficients in cases.items():
        sizes = torch.logspace(-3, 2, 5, dtype=torch.float64)[:, None]  # which do not matter
        found = density(sizes * coefficients @ dictionary.T, dictionary)
        close(found["l1_l2"], math.sqrt(words))
        assert found["words"] == math.ceil(0.9 * words)
    rotation = torch.linalg.qr(numbers("rotation", d, d)).Q
    delta = numbers("delta", 5, d) ** 3
    both = density(delta, dictionary), density(delta @ rotation.T, rotation @ dictionary)
    assert both[0] == pytest.approx(both[1])
    assert density(dictionary.T[:5], torch.eye(d).double())["words"] > 1  # sparse in its own basis only


def test_density_is_the_median_over_samples_of_slow_loops() -> None:
    dictionary, delta = torch.from_numpy(incoherent(6, 9, rng(0, "M"))).double(), numbers("delta", 7, 6)
    spreads, counts = [], []
    for row in delta:
        c = [dot(row, dictionary[:, j]) for j in range(9)]
        total = sum(value**2 for value in c)
        spreads.append(sum(map(abs, c)) / math.sqrt(total))
        carried, words = 0.0, 0
        for value in sorted(map(abs, c), reverse=True):
            carried, words = carried + value**2, words + 1
            if carried >= 0.9 * total:
                break
        counts.append(words)
    assert len(set(counts)) > 1
    found = density(delta, dictionary)
    assert found == {"l1_l2": pytest.approx(sorted(spreads)[3]), "words": sorted(counts)[3]}


# Attacks


@NORMS
@pytest.mark.parametrize("steps", [1, 6], ids=["fgm", "pgd"])
def test_a_share_of_an_attack_is_an_attack_with_a_share_of_the_radius(norm: str, steps: int) -> None:
    net, x = Symmetric(0.4 * numbers("w", 12, 6), 0.5, 0.02), 1.5 * numbers("x", 20, 6)
    y = numbers("y", 20).sign()
    whole = Attack(norm, 0.4, steps)
    for share in (0.25, 0.5, 1.0):
        delta = whole(net, x, y, share)
        assert torch.equal(delta, Attack(norm, share * 0.4, steps)(net, x, y))
        sizes = torch.linalg.vector_norm(delta, BALLS[norm], 1)
        assert sizes.max() == pytest.approx(share * 0.4)
        if steps == 1:
            torch.testing.assert_close(delta, share * whole(net, x, y))
    assert not whole(net, x, y, 0.0).any()
    assert torch.equal(whole(net, x, y), whole(net, x, y, 1.0))


def setting(n: int = 60, d: int = 16) -> Setting:
    world = SparseCoding(orthogonal(d, d, rng(0, "M")), labelling(d, 0.3, rng(0, "w*")), k=3, sigma_x=0.2)
    return Setting.of(world, *drawn(world, n, rng(0, "test")))


def wavy(x: Tensor) -> Tensor:
    """Scores on which no attack is always the best."""
    direction = torch.linspace(-1, 1, x.shape[1])
    return (25 * x @ direction).sin() + (20 * x[:, :5].sum(1)).cos() + x[:, 2]


@NORMS
@pytest.mark.parametrize("kind", ["network", "wavy"])
def test_perturbations_are_in_their_balls_and_pgd_is_the_worst(norm: str, kind: str) -> None:
    here, tau = setting(), 0.25
    d = here.x.shape[1]
    f = wavy if kind == "wavy" else Symmetric(numbers("w", 30, d).float(), 0.8, 0.04)
    deltas = here.perturbed(f, norm, tau)
    assert list(deltas) == ["dense", "random", "fgm", "pgd"]
    for name, delta in deltas.items():
        sizes = torch.linalg.vector_norm(delta, BALLS[norm], 1)
        assert delta.shape == here.x.shape
        assert sizes.max() <= tau * (1 + 1e-5)
        if name != "pgd":  # to the end of the ball, unless there is nowhere to go
            somewhere = softened_pgd.gradient(f, here.x).any(1) if name == "fgm" else sizes >= 0
            assert somewhere.double().mean() > 0.5
            assert sizes[somewhere].min() >= tau * (1 - 1e-5)
            assert not delta[~somewhere].any()
    scores = {name: here.y * f(here.x + delta) for name, delta in deltas.items()}
    assert (scores["pgd"] <= here.y * f(here.x)).all()
    assert (scores["pgd"] <= scores["fgm"]).all()
    assert scores["pgd"].mean() < min(scores[name].mean() for name in ("dense", "random", "fgm"))
    runs = [pgd(f, here.x, here.y, norm, tau, softened_pgd.PGD_STEPS)]
    runs += [pgd(f, here.x, here.y, norm, tau, softened_pgd.PGD_STEPS, 2 / softened_pgd.PGD_STEPS, deltas["random"])]
    candidates = torch.stack([scores["fgm"], *(here.y * f(here.x + delta) for delta in runs)])
    torch.testing.assert_close(scores["pgd"], candidates.amin(0))
    if kind == "wavy":
        assert set(candidates.argmin(0).tolist()) == {0, 1, 2}  # each of the three is the worst somewhere


@NORMS
def test_the_dense_perturbation_needs_no_network_and_fgm_follows_the_gradient(norm: str) -> None:
    here, tau = setting(), 0.25
    g = numbers("g", here.x.shape[1]).float()
    deltas = here.perturbed(lambda x: x @ g, norm, tau)
    for name, direction in (("dense", here.dictionary @ here.w_star), ("fgm", g)):
        step = direction.sign() if norm == "linf" else direction / direction.norm()
        torch.testing.assert_close(deltas[name], -tau * here.y[:, None] * step)
    torch.testing.assert_close(
        here.y * (deltas["pgd"] @ g), (here.y * (deltas["fgm"] @ g)), rtol=1e-3, atol=0
    )  # of a linear function it is the worst
    assert (deltas["random"] @ g > 0).any()
    assert (deltas["random"] @ g < 0).any()
    torch.testing.assert_close(
        deltas["fgm"], fgm(softened_pgd.gradient(lambda x: x @ g, here.x), here.y, norm, tau), rtol=0, atol=0
    )


def test_accuracy_is_the_share_of_samples_on_the_right_side() -> None:
    here = setting(8)
    here = replace(here, y=torch.ones(8))
    scores = torch.tensor([1.0, 2, 3, -1, 0, 1, 1, -2])
    assert here.accuracy(lambda x: scores) == 5 / 8  # 0 is no answer
    assert replace(here, x=0 * here.x).accuracy(lambda x: x[:, 0], torch.eye(8, 16)) == 1 / 8
    assert [len(part) for part in (here.first(3).x, here.first(3).y)] == [3, 3]


# Jobs


ATTACK = Attack("l2", 0.3)
JOBS = {  # name: source
    ("random", ()): {"lottery": None, "clean": "lottery", "robust": "clean"},
    ("random", ("pgd", "direct")): {
        "lottery": None,
        "clean": "lottery",
        "robust": "clean",
        "pgd": "clean",
        "direct_lottery": None,
        "direct": "direct_lottery",
    },
    ("pure", ()): {"clean": None, "robust": "clean"},
    ("pure", ("pgd", "direct")): {"clean": None, "robust": "clean", "pgd": "clean", "direct": None},
    ("pure", ("direct",)): {"clean": None, "robust": "clean", "direct": None},
}


@pytest.mark.parametrize(("start", "also"), JOBS)
def test_jobs_are_what_the_parameters_ask_for_each_after_its_source(start: str, also: tuple[str, ...]) -> None:
    p = params(**{f"{start}__also": list(also), f"{start}__clean__lr": 0.2, f"{start}__adversarial__batch": 32}).sparse
    every = schedules.jobs(p, start, ATTACK)
    assert list({job.name: job.source for job in every}.items()) == list(JOBS[start, also].items())
    names = [job.name for job in every]
    assert all(job.source is None or names.index(job.source) < names.index(job.name) for job in every)
    of = {job.name: job.stretch for job in every}
    how = getattr(p, start)
    assert of["clean"] == Stretch(how.clean.steps, how.clean.batch, 0.2)
    assert of["robust"] == Stretch(how.adversarial.steps, 32, how.adversarial.lr, attack=ATTACK)
    if "pgd" in also:
        assert of["pgd"] == replace(of["robust"], attack=replace(ATTACK, steps=p.pgd))
        assert p.pgd > 1
    if "direct" in also:
        assert of["direct"] == of["robust"]
    if start == "random":
        assert (of["lottery"].attack, of["lottery"].slow, of["lottery"].warm) == (None, 0.0, 0.0)
        assert of["lottery"].prune > 0
    if "direct_lottery" in of:
        assert of["direct_lottery"] == replace(of["lottery"], attack=ATTACK, warm=1.0)


def test_what_is_trained_also_is_trained_with_the_first_seed() -> None:
    p = params(pure__also=["pgd", "direct"], pure__seeds=[3, 5]).sparse
    names = [[job.name for job in schedules.jobs(p, "pure", ATTACK, seed)] for seed in (3, 5)]
    assert names == [["clean", "robust", "pgd", "direct"], ["clean", "robust"]]


@pytest.mark.parametrize(
    ("until", "growth", "lr"), [(2, 0.0015, 0.03), (3.5, 0.004, 0.03), (12, 0.02, 0.05), (1.01, 0.08, 0.03)]
)
def test_the_lottery_ends_with_its_final_bias_and_not_a_step_later(until: float, growth: float, lr: float) -> None:
    changes = {"until": until, "growth": growth, "lr": lr, "batch": 4, "bias": 0.7}
    p = params(**{f"random__lottery__{key}": value for key, value in changes.items()}, random__neurons=30).sparse
    first = schedules.first_bias(p)
    assert first == pytest.approx(0.7 * p.random.scale * math.sqrt(math.log(16)), rel=1e-12)
    world = draw_world(p)
    state = schedules.begin(p, world, "random", 0, torch.device("cpu"))
    assert state.b == first
    job = schedules.jobs(p, "random", ATTACK)[0]
    biases = [(state.step, state.b)]
    steps = job.stretch.steps
    x, y = drawn(world, 4, rng(0, "x"))
    for _ in range(steps):
        purify.step(state, x, y, job.stretch, schedules.rules(p, p.d))
        biases.append((state.step, state.b))
    assert biases[-1] == (steps, until * first)
    assert biases[-2][1] < until * first
    run = schedules.begin(p, world, "random", 0, torch.device("cpu"))
    purify.run(run, world, job.stretch, schedules.rules(p, p.d), 0, "lottery")
    assert (run.step, run.b) == (steps, until * first)


def test_training_begins_with_the_weights_of_the_parameters_and_of_the_seed() -> None:
    p = params(pure__copies=3, pure__noise=0.0, pure__bias=0.04, words=12, spread=0.4).sparse
    world, cpu = draw_world(p), torch.device("cpu")
    assert (world.ambient, world.words, world.k, world.margin) == (16, 12, 3, p.margin)
    state = schedules.begin(p, world, "pure", 0, cpu)
    assert (state.w.shape, state.b, state.step) == ((36, 16), 0.04, 0)
    neurons = decompose(state.w, torch.from_numpy(world.dictionary), torch.from_numpy(world.w_star))
    assert neurons.word.tolist() == list(range(12)) * 3
    close(neurons.alpha, [p.pure.size] * 36)
    states = [schedules.begin(p, world, "random", seed, cpu) for seed in (0, 0, 1)]
    assert states[0].w.shape == (p.random.neurons, 16)
    assert float(states[0].w.std()) == pytest.approx(p.random.scale, rel=0.1)
    assert torch.equal(states[0].w, states[1].w)
    assert not torch.equal(states[0].w, states[2].w)


def test_words_on_counts_the_words_of_a_sample() -> None:
    p = params(margin=0.0, c1=0.7, c2=0.6).sparse
    assert draw_world(p).words_on() == pytest.approx(0.7 + 0.6 * 3, rel=0.03)
    few, many = (draw_world(params(margin=margin).sparse).words_on() for margin in (0.0, 1.0))
    assert many > 1.05 * few  # the filter leaves out samples of few words


# The grid


def test_varied_parameters_are_the_others_except_where_they_differ() -> None:
    p = params().sparse
    varied = Varied(p, d=99, pure=Varied(p.pure, bias=1.0))
    assert (varied.d, varied.k, varied.words) == (99, p.k, p.words)
    assert (varied.pure.bias, varied.pure.size) == (1.0, p.pure.size)
    assert (p.d, p.pure.bias) == (16, 0.065)
    assert Varied(varied, k=1).d == 99
    with pytest.raises(AttributeError, match="kk"):
        _ = varied.kk


@pytest.mark.parametrize(("d", "k"), [(16, 3), (64, 12), (8, 3), (24, 1)])
def test_at_another_size_times_grow_like_d_and_radii_shrink_like_one_by_root_k(d: int, k: int) -> None:
    p = params(words=12, pure__clean__steps=20, random__also=["pgd"]).sparse
    q, longer = grid.sized(p, d, k), d / 16
    assert (q.d, q.k, q.words) == (d, k, 0.75 * d)
    assert q.tau * math.sqrt(k) == pytest.approx(p.tau * math.sqrt(3))
    assert q.pure.bias * math.sqrt(d) == pytest.approx(p.pure.bias * 4)
    assert q.random.neurons == math.ceil(150 * longer)
    # While the bias grows, a step is the same share of σ0; it ends in proportion to 1/√d, as from pure features.
    before, after = p.random.lottery, q.random.lottery
    assert (after.lr / longer, after.bias, after.growth, after.batch) == pytest.approx(
        (before.lr, before.bias, before.growth, before.batch)
    )
    last = after.until * schedules.first_bias(q) * math.sqrt(d)
    assert after.until == 1 or last == pytest.approx(before.until * schedules.first_bias(p) * 4)
    for start in ("pure", "random"):
        before, after = getattr(p, start), getattr(q, start)
        assert after.also == []
        for part in ("clean", "adversarial"):
            old, new = getattr(before, part), getattr(after, part)
            assert new.steps == math.ceil(old.steps * longer)
            assert (new.batch, new.lr) == (old.batch, old.lr)
        assert after.seeds == before.seeds
    assert (q.margin, q.spread, q.c1, q.sigma_x) == (p.margin, p.spread, p.c1, p.sigma_x)
    assert schedules.first_bias(q) == pytest.approx(0.5 * p.random.scale * math.sqrt(math.log(d)))
    changed = grid.sized(p, d, k, words=5, margin=0.0, spread=0.25)
    assert (changed.words, changed.margin, changed.spread, changed.d) == (5, 0.0, 0.25, d)


def test_as_many_neurons_win_at_every_d_if_a_step_of_the_bias_is_the_same_share_of_the_initial_weights() -> None:
    """With one learning rate at every d half as many again survive at twice the d, and each of them stays smaller."""
    base = SparseParams.model_validate({"device": "cpu", "sparse": CONTENT["sparse"]}).sparse
    alive = {}
    for d in (64, 128):
        formula = grid.sized(base, d, grid.k_at(base, d))
        same = Varied(formula, random=Varied(formula.random, lottery=base.random.lottery))
        for name, p in (("formula", formula), ("same", same)):
            world, rules = draw_world(p), schedules.rules(p, d)
            state = schedules.begin(p, world, "random", 0, torch.device("cpu"))
            purify.run(state, world, schedules.jobs(p, "random", ATTACK)[0].stretch, rules, 0, "lottery")
            alive[name, d] = len(state.w) / p.random.neurons
    assert alive["same", 128] / alive["same", 64] > 1.3
    assert 0.8 < alive["formula", 128] / alive["formula", 64] < 1.2


def test_the_evidence_is_what_the_grid_makes_of_the_quick_scale_at_its_d() -> None:
    quick = CONTENT["sparse"]
    wanted = overlaid(CONTENT, YAML(typ="safe", pure=True).load(ROOT / "presets/evidence.yaml"))["sparse"]
    base, found = (SparseParams.model_validate({"device": "cpu", "sparse": part}).sparse for part in (quick, wanted))
    q = grid.sized(base, found.d, grid.k_at(base, found.d))
    pairs = [(q.k, found.k), (q.words, found.words), (q.tau, found.tau), (q.pure.bias, found.pure.bias)]
    pairs += [
        (getattr(q.random.lottery, name), getattr(found.random.lottery, name)) for name in ("lr", "until", "bias")
    ]
    pairs += [(q.random.neurons, found.random.neurons)]
    for start in ("random", "pure"):
        for part in ("clean", "adversarial"):
            pairs.append(tuple(getattr(getattr(each, start), part).steps for each in (q, found)))
    for formula, preset in pairs:
        assert preset == pytest.approx(formula, rel=3e-3)


def listed(**changes: Any) -> list[tuple[Any, ...]]:
    sizes = {"grid__ds": [16, 64], "grid__ks": [2, 5], "grid__random_ds": [12], "grid__kappa": 0.5}
    p = params(**(sizes | changes)).sparse
    return [(c.of, c.start, c.p.d, c.p.k, c.p.margin, c.norm) for c in grid.cells(p)]


def test_the_grid_has_the_cells_that_the_parameters_ask_for() -> None:
    assert listed(margin=1.0) == [
        ("d", "pure", 16, 3, 1.0, "l2"),
        ("d", "pure", 16, 3, 0.0, "l2"),
        ("d", "pure", 64, 6, 1.0, "l2"),  # k grows like √d
        ("d", "pure", 64, 6, 0.0, "l2"),
        ("k", "pure", 16, 2, 1.0, "l2"),
        ("k", "pure", 16, 5, 1.0, "l2"),
        ("spikes", "pure", 16, 3, 1.0, "l2"),
        ("incoherent", "pure", 16, 3, 1.0, "l2"),
        ("spread", "pure", 16, 3, 1.0, "l2"),
        ("linf", "pure", 16, 3, 1.0, "linf"),  # at both radii
        ("linf", "pure", 16, 3, 1.0, "linf"),
        ("linf", "pure", 16, 3, 0.0, "linf"),
        ("linf", "pure", 16, 3, 0.0, "linf"),
        ("d", "random", 12, 3, 1.0, "l2"),
    ]
    assert listed(margin=0.0, grid__variants=["linf"]) == [
        ("d", "pure", 16, 3, 0.0, "l2"),  # the filter is off already: each once
        ("d", "pure", 64, 6, 0.0, "l2"),
        ("k", "pure", 16, 2, 0.0, "l2"),
        ("k", "pure", 16, 5, 0.0, "l2"),
        ("linf", "pure", 16, 3, 0.0, "linf"),
        ("linf", "pure", 16, 3, 0.0, "linf"),
        ("d", "random", 12, 3, 0.0, "l2"),
    ]
    some = list(grid.cells(params(grid__seeds=[4, 7], grid__ds=[16], grid__random_ds=[12], linf=[2.0, 1.75]).sparse))
    seeds = [(c.of, c.start, c.p.margin, c.seed) for c in some if c.of in ("d", "k")]
    assert seeds == [
        *(("d", "pure", margin, seed) for margin in (1.0, 0.0) for seed in (4, 7)),
        ("k", "pure", 1.0, 4),
        ("d", "random", 1.0, 4),
        ("d", "random", 1.0, 7),
    ]
    radii = [(c.p.tau, c.seed) for c in some if c.norm == "linf"]
    assert radii == 2 * [(pytest.approx(3**-2.0), 4), (pytest.approx(3**-1.75), 4)]


def test_a_version_of_the_world_differs_in_what_it_is_named_after() -> None:
    p = params(spikes=0.0, grid__spikes=2.5, grid__words=1.5, grid__spread=0.25).sparse
    named = {cell.of: cell.p for cell in grid.cells(p) if cell.of not in ("d", "k") and cell.p.margin == p.margin}
    keys = ("spikes", "dictionary", "words", "spread", "margin", "k", "d", "tau")
    usual = (0.0, "orthogonal", 16, 0.0, p.margin, 3, 16, p.tau)
    different = {
        name: {key: getattr(q, key) for key, value in zip(keys, usual, strict=True) if getattr(q, key) != value}
        for name, q in named.items()
    }
    assert different == {
        "spikes": {"spikes": 2.5},
        "incoherent": {"dictionary": "incoherent", "words": 24},
        "spread": {"spread": 0.25},
        "linf": {"dictionary": "identity", "tau": 3**-1.75},
    }
    for q in named.values():
        assert draw_world(q).dictionary.shape == (16, q.words)


# Interruption


LONGER = {
    "random__lottery__bias": 1.4,
    "random__lottery__until": 3,
    "random__lottery__growth": 0.0033,  # 76 steps
    "random__lottery__batch": 64,
    "random__clean__steps": 40,
    "random__adversarial__steps": 20,
    "random__clean__batch": 32,
    "random__adversarial__batch": 32,
    "pure__clean__steps": 40,
    "pure__clean__batch": 32,
    "pure__adversarial__steps": 20,
    "pure__adversarial__batch": 32,
    "pure__also": ["direct"],
    "pure__seeds": [0, 1],
}


class Counted:
    """The true step; the user presses Ctrl-C after so many of them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.true, self.left, self.taken = purify.step, math.inf, 0
        patch.setattr(purify, "step", self)

    def __call__(self, *arguments: Any) -> None:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left, self.taken = self.left - 1, self.taken + 1
        self.true(*arguments)


def at(folder: Path, patch: pytest.MonkeyPatch, p: SparseParams) -> Path:
    """A folder with the data of these parameters, to train in."""
    folder.mkdir(exist_ok=True)
    patch.chdir(folder)
    data.main(p)
    return folder


def written(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("start", ["random", "pure"])
def test_a_stopped_training_goes_on_to_the_same_bytes(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    p, steps = params(**LONGER), Counted(monkeypatch)
    whole = at(tmp_path / "whole", monkeypatch, p)
    train.main(p, start)
    seeds = getattr(p.sparse, start).seeds
    needed = sum(job.stretch.steps for seed in seeds for job in schedules.jobs(p.sparse, start, ATTACK, seed))
    assert steps.taken == needed
    assert "going on" not in capsys.readouterr().err

    stopped, steps.taken = at(tmp_path / "stopped", monkeypatch, p), 0
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    stops = 0
    while not (stopped / "models").exists():
        steps.left = 2 * BLOCK + 5
        try:
            train.main(p, start)
        except KeyboardInterrupt:
            stops += 1
            assert stops < 50
            assert not (stopped / "models").exists()
            assert not (stopped / "plots").exists()
            assert list((stopped / ".checkpoints").iterdir())
    assert stops >= 4
    assert needed < steps.taken <= needed + BLOCK * stops  # what a stop costs
    assert "resuming from .checkpoints/sparse_train-" in capsys.readouterr().err
    assert written(stopped) == written(whole)  # and so no checkpoint is left
    outputs = {f"models/sparse/{start}.safetensors", f"plots/sparse/{start}.csv", f"plots/sparse_growth/{start}.csv"}
    assert written(stopped).keys() == outputs | {sparse_settings.DATA}


def test_a_network_that_is_ready_is_kept_however_short_its_training_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, steps = params(**LONGER | {"pure__seeds": [0], "pure__also": []}), Counted(monkeypatch)
    monkeypatch.setattr(progress, "SECONDS", math.inf)
    at(tmp_path, monkeypatch, p)
    steps.left = 40 + 18  # clean training, and a part of adversarial training
    with pytest.raises(KeyboardInterrupt):
        train.main(p, "pure")
    assert len(list((tmp_path / ".checkpoints").iterdir())) == 1
    steps.left, steps.taken = math.inf, 0
    train.main(p, "pure")
    assert steps.taken == 20
    assert list((tmp_path / ".checkpoints").iterdir()) == []


def test_what_training_leaves_is_what_the_networks_are_loaded_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = params(**LONGER)
    at(tmp_path, monkeypatch, p)
    train.main(p, "random")
    cpu = torch.device("cpu")
    here, found = sparse_settings.load_setting(p.sparse, cpu), schedules.load_nets(p.sparse, "random", 0, cpu)
    rules, ends = schedules.rules(p.sparse, p.sparse.d), {}
    for job in schedules.jobs(p.sparse, "random", Attack("l2", p.sparse.tau)):  # the same once more, by hand
        state = ends[job.source].then() if job.source else schedules.begin(p.sparse, here.world, "random", 0, cpu)
        purify.run(state, here.world, job.stretch, rules, 0, f"sparse {job.name}")
        ends[job.name] = state
    assert list(found.nets) == list(ends)
    for name, net in found.nets.items():
        assert torch.equal(net.w, ends[name].w)
        assert (net.b, net.sigma) == (ends[name].b, p.sparse.rho * ends[name].b)
    assert torch.equal(found.start, ends["clean"].start)
    assert 0 < len(found.start) < p.sparse.random.neurons  # some neurons died, and their beginnings with them
    rows = (tmp_path / "plots/sparse_growth/random.csv").read_text().splitlines()
    assert rows[0].startswith("step,b,neurons,alpha,")
    steps = [float(row.split(",")[0]) for row in rows[1:] if row.endswith(",clean")]
    assert steps == [0, 16, 32, 40]


OTHER = [("margin", 0.5), ("spread", 0.2), ("decay", 1.0), ("dictionary", "identity"), ("pure__clean__lr", 0.2)]
OTHER += [("k", 2), ("c1", 0.9), ("c2", 0.9), ("sigma_x", 0.1), ("spikes", 0.0), ("spike_size", 0.1)]
OTHER += [("tau", 0.2), ("test", 30)]  # of which the recorded accuracies are


@pytest.mark.parametrize(("key", "value"), OTHER)
def test_a_checkpoint_of_other_parameters_is_not_used(
    key: str, value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"pure__clean__steps": 20, "pure__adversarial__steps": 2, "pure__clean__batch": 16}
    p, other, steps = params(**small), params(**(small | {key: value})), Counted(monkeypatch)
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    steps.left = 18
    at(tmp_path, monkeypatch, p)
    with pytest.raises(KeyboardInterrupt):
        train.main(p, "pure")
    assert len(list((tmp_path / ".checkpoints").iterdir())) == 1
    steps.left = math.inf
    at(tmp_path, monkeypatch, other)
    train.main(other, "pure")
    assert "resuming from" not in capsys.readouterr().err


def test_a_bias_under_which_every_neuron_dies_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    p = params(random__lottery__until=500, random__lottery__growth=50, random__also=[])
    at(tmp_path, monkeypatch, p)
    with pytest.raises(BadInput, match=r"sparse\.random: every neuron died \(lottery\); use a smaller growth"):
        train.main(p, "random")
    assert not (tmp_path / "models").exists()


def test_pgd_finds_more_on_a_purified_network_when_it_begins_on_a_softer_one() -> None:
    """Words that are off have no gradient: the plain attack does not see that it could turn them on."""
    d, generator = 32, np.random.default_rng(0)
    world = SparseCoding(orthogonal(d, d, generator), labelling(d, 0.0, generator), k=4, sigma_x=0.2, margin=1.0)
    net = Symmetric(torch.from_numpy((world.dictionary * world.w_star).T.copy()), 0.05, 0.0025)
    here = sparse_settings.Setting.of(world, *purify.drawn(world, 300, generator))
    plain, strong = (
        here.accuracy(net, here.perturbed(net, "l2", 0.35, softer)["pgd"]) for softer in (None, softened_pgd.soft(net))
    )
    assert strong < plain - 0.05


def test_effort_counts_the_products_of_a_step() -> None:
    stretch = Stretch(10, 8, 0.1)
    assert train.effort(Phase("clean", None, stretch)) == 80
    assert train.effort(Phase("robust", None, replace(stretch, attack=ATTACK))) == 240
    assert train.effort(Phase("pgd", None, replace(stretch, attack=Attack("l2", 0.3, 5)))) == 880


# Bad input


BAD = [
    ({"words": 17}, "sparse.words = 17: must be ≤ d = 16 unless the dictionary is incoherent"),
    (
        {"words": 17, "dictionary": "identity"},
        "sparse.words = 17: must be ≤ d = 16 unless the dictionary is incoherent",
    ),
    ({"k": 40}, "sparse.k = 40: must be smaller: c1 + c2 k words of a sample must be a minority of D = 16"),
    ({"k": 16}, "sparse.k = 16: must be smaller: c1 + c2 k words of a sample must be a minority of D = 16"),
    ({"k": 0}, "sparse.k = 0: must be an integer ≥ 1"),
    ({"margin": 2.5}, "sparse.margin = 2.5: must be smaller: hardly a sample would pass the filter"),
    ({"taus": [0.1, 0.2]}, "sparse.taus = [0.1, 0.2]: must contain tau = 0.3"),
    ({"tau": 0.25}, "sparse.taus = [0.2, 0.3]: must contain tau = 0.25"),
    ({"taus": [0.3, 0.3]}, "sparse.taus = [0.3, 0.3]: must be a list of one or more different numbers > 0"),
    ({"starts": ["warm"]}, "sparse.starts = ['warm']: must be a list of different ones of random, pure"),
    ({"starts": []}, "sparse.starts = []: must be a list of different ones of random, pure"),
    (
        {"starts": ["pure", "pure"]},
        "sparse.starts = ['pure', 'pure']: must be a list of different ones of random, pure",
    ),
    (
        {"pure__also": ["fgm"]},
        "sparse.pure.also = ['fgm']: must be a list, which may be empty, of different ones of pgd, direct",
    ),
    (
        {"random__also": "pgd"},
        "sparse.random.also = 'pgd': must be a list, which may be empty, of different ones of pgd, direct",
    ),
    (
        {"grid__variants": ["l1"]},
        "sparse.grid.variants = ['l1']: must be a list, which may be empty, of different ones of "
        "spikes, incoherent, spread, linf",
    ),
    (
        {"low__trainings": ["fast"]},
        "sparse.low.trainings = ['fast']: must be a list of different ones of clean, fgm, pgd",
    ),
    ({"dictionary": "fourier"}, "sparse.dictionary = 'fourier': must be one of orthogonal, incoherent, identity"),
    ({"rho": 1.0}, "sparse.rho = 1.0: must be a number ≥ 0 and < 1"),
    ({"random__lottery__until": 1}, "sparse.random.lottery.until = 1: must be a number > 1"),
    (
        {"grid__ks": [2, 40]},
        "sparse.grid.ks = 40: must be smaller: c1 + c2 k words of a sample must be a minority of D = 16",
    ),
    ({"pgd": 1}, "sparse.pgd = 1: must be an integer ≥ 2"),
]


@pytest.mark.parametrize(("changes", "line"), BAD, ids=[str(changes) for changes, _ in BAD])
def test_bad_input_gives_one_line_with_the_key_and_what_is_allowed(
    tmp_path: Path, changes: dict[str, Any], line: str
) -> None:
    YAML(typ="safe", pure=True).dump(content(**changes), tmp_path / "params.yaml")
    with pytest.raises(BadInput) as error:
        load(SparseParams, tmp_path / "params.yaml")
    assert str(error.value) == f"params.yaml: {line}"


@pytest.mark.parametrize(
    "changes",
    [
        {"words": 17, "dictionary": "incoherent"},
        {"k": 15, "grid__random_ds": [16]},
        {"pure__also": []},
        {"grid__variants": []},
        {"margin": 2.0},
    ],
    ids=str,
)
def test_what_is_just_allowed_is_accepted(tmp_path: Path, changes: dict[str, Any]) -> None:
    YAML(typ="safe", pure=True).dump(content(**changes), tmp_path / "params.yaml")
    assert load(SparseParams, tmp_path / "params.yaml") == params(**changes)
