"""FP's Algorithms 1 and 2: steps against torch.optim, the attack, the bias, interruption, pruning, and purification."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from brittle.attacks.fgm import Attack, fgm
from brittle.core.rng import rng
from brittle.nets.symmetric import REACH, Symmetric, pure, random
from brittle.train.purify import BLOCK, LOOKED, Rules, Stretch, Training, alive, run, step
from brittle.worlds.sparse_coding import SparseCoding, labelling, orthogonal

D, K, WIDTH, BATCH = 16, 4, 24, 8
RULES = Rules(momentum=0.8, decay=0.05, rho=0.1)
BALLS = {"l2": 2.0, "linf": math.inf}
DUAL = {"l2": 2.0, "linf": 1.0}
ATTACKS = pytest.mark.parametrize("attack", [None, Attack("l2", 0.4), Attack("linf", 0.1)], ids=["clean", "l2", "linf"])


def world(d: int = D, **options: float) -> SparseCoding:
    return SparseCoding(orthogonal(d, d, rng(0, "M")), labelling(d, 0.2, rng(0, "w*")), K, **options)


def numbers(purpose: str, *shape: int) -> Tensor:
    return torch.from_numpy(rng(0, purpose).standard_normal(shape))


def batches(n: int) -> list[tuple[Tensor, Tensor]]:
    """In float64, for comparisons without rounding."""
    x, y = 1.5 * numbers("x", n, BATCH, D), numbers("y", n, BATCH).sign()
    return list(zip(x, y, strict=True))


def begin(b: float = 0.8, scale: float = 0.4) -> Training:
    return Training.begin(scale * numbers("w", WIDTH, D), b)


def smooth(u: Tensor, sigma: float) -> Tensor:
    """E ReLU(u + ρ), for autograd to differentiate."""
    if sigma == 0:
        return u.clamp(min=0)
    t = u / sigma
    return u * torch.special.ndtr(t) + sigma * torch.distributions.Normal(0.0, 1.0).log_prob(t).exp()


def obvious(w: Tensor, x: Tensor, b: float, sigma: float) -> Tensor:
    """f(x_i), by the definition."""  # (m, d), (n, d) -> (n,)
    return sum(smooth(x @ row - b, sigma) - smooth(-(x @ row) - b, sigma) for row in w)


def worst(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, attack: Attack) -> Tensor:
    """The FGM of FP §4.2 by autograd."""
    x = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(f(x).sum(), x)
    direction = g.sign() if attack.norm == "linf" else g / g.norm(dim=1, keepdim=True)
    return -attack.tau * y[:, None] * direction


def by_torch(
    w: Tensor, b: float, data: list[tuple[Tensor, Tensor]], stretch: Stretch, rules: Rules, rates: list[float]
) -> tuple[Tensor, list[float]]:
    """The same steps by torch.optim and autograd: the weights, and the bias after each step."""
    w = w.clone().requires_grad_()
    optimiser = torch.optim.SGD([w], lr=1.0, momentum=rules.momentum)
    biases = []
    for (x, y), rate in zip(data, rates, strict=True):
        optimiser.param_groups[0]["lr"] = rate
        if stretch.attack:
            x = x + worst(lambda x, b=b: obvious(w.detach(), x, b, rules.rho * b), x, y, stretch.attack)
        size = (w**2).sum(1).sqrt()
        loss = softplus(-y * obvious(w, x, b, rules.rho * b)).mean() + rules.decay * (size**2 / 2 + size**3 / 3).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        b += rate / (1 - rules.momentum) * stretch.growth / D
        biases.append(b)
    return w.detach(), biases


# Steps


@ATTACKS
@pytest.mark.parametrize("rho", [0.0, 0.1, 0.3])  # sharp, some neurons off, all on
@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_steps_are_those_of_torch_optim_on_the_paper_s_objective(
    momentum: float, rho: float, attack: Attack | None
) -> None:
    rules = Rules(momentum, decay=0.05, rho=rho)
    stretch = Stretch(steps=6, batch=BATCH, lr=0.1, growth=0.5, attack=attack, slow=0.34)
    state, data = begin(), batches(6)
    first = state.w.clone()
    biases = []
    for x, y in data:
        given = x.clone()
        step(state, x, y, stretch, rules)
        biases.append(state.b)
        assert torch.equal(x, given)  # the next attack is on the sample itself
    expected, expected_biases = by_torch(first, 0.8, data, stretch, rules, rates=[0.1] * 4 + [0.02] * 2)
    torch.testing.assert_close(state.w, expected, rtol=0, atol=2e-6 if rho == 0.1 else 1e-10)
    assert biases == pytest.approx(expected_biases, rel=1e-12)
    assert (expected - first).abs().max() > 0.1
    assert state.step == 6
    assert torch.equal(state.start, first)


@pytest.mark.parametrize(("slow", "fast_steps"), [(0.2, 8), (0.5, 5), (0.0, 10), (1.0, 0)])
def test_learning_rate_is_a_fifth_in_the_last_share_of_a_stretch(slow: float, fast_steps: int) -> None:
    stretch, rules = Stretch(steps=10, batch=BATCH, lr=0.1, slow=slow), Rules(0.0, 0.05, 0.1)
    state = begin()
    for i, (x, y) in enumerate(batches(10)):
        before = state.w.clone()
        step(state, x, y, stretch, rules)
        rate = 0.1 if i < fast_steps else 0.02
        torch.testing.assert_close(before - state.w, rate * state.velocity, rtol=1e-9, atol=1e-12)
        assert state.velocity.any()


def biases(stretch: Stretch, b: float) -> list[float]:
    """Before the first step and after each."""
    state = begin(b)
    found = [state.b]
    for x, y in batches(stretch.steps):
        step(state, x, y, stretch, RULES)
        found.append(state.b)
    return found


def test_bias_grows_with_training_time_and_stops_where_it_must() -> None:
    each = 0.1 / (1 - 0.8) * 0.64 / D  # 0.02
    stretch = Stretch(steps=10, batch=BATCH, lr=0.1, growth=0.64, most=0.45, slow=0.0)
    found = biases(stretch, 0.36)
    assert found[:5] == pytest.approx([0.36 + i * each for i in range(5)])
    assert found[5:] == [0.45] * 6  # exactly
    assert biases(replace(stretch, most=math.inf), 0.36)[-1] == pytest.approx(0.36 + 10 * each)
    assert biases(replace(stretch, most=math.inf, slow=0.5), 0.36)[-1] == pytest.approx(0.36 + (5 + 5 / 5) * each)


@pytest.mark.parametrize(("growth", "most", "b"), [(0.0, math.inf, 0.36), (0.0, 0.2, 0.36), (0.64, 0.2, 0.36)])
def test_bias_stays_if_it_does_not_grow_or_is_where_it_should_stop(growth: float, most: float, b: float) -> None:
    assert biases(Stretch(steps=3, batch=BATCH, lr=0.1, growth=growth, most=most), b) == [b] * 4


# Attacks


def in_ball(norm: str, n: int, d: int) -> Tensor:
    """Perturbations of norm at most 1, many of them of norm 1."""  # (n, d)
    direction = numbers(f"ball {norm}", n, d)
    direction[n // 2 :] = direction[n // 2 :].sign()
    radius = torch.from_numpy(rng(0, "radius").uniform(0, 2, (n, 1))).clamp(max=1)
    return radius * direction / torch.linalg.vector_norm(direction, BALLS[norm], 1, keepdim=True)


@pytest.mark.parametrize("norm", BALLS)
def test_fgm_is_the_worst_of_the_ball_to_first_order(norm: str) -> None:
    net, (x, y), tau = begin().net(RULES), batches(1)[0], 0.3
    assert len(set(y.tolist())) == 2
    variable = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(obvious(net.w, variable, net.b, net.sigma).sum(), variable)
    delta = Attack(norm, tau)(net, x, y)
    sizes = torch.linalg.vector_norm(delta, BALLS[norm], 1)
    torch.testing.assert_close(sizes, torch.full_like(sizes, tau), rtol=1e-12, atol=0)
    change = (y[:, None] * g * delta).sum(1)
    others = y[:, None] * g @ (tau * in_ball(norm, 4000, D)).T  # (n, 4000)
    assert (change < others.amin(1)).all()
    bound = -tau * torch.linalg.vector_norm(g, DUAL[norm], 1)  # Hölder
    torch.testing.assert_close(change, bound, rtol=1e-5, atol=0)


def test_fgm_leaves_a_sample_alone_whose_gradient_s_dual_norm_is_tiny() -> None:
    sizes = torch.tensor([0.0, 1e-11, 1e-10, 1e-9, 1.0], dtype=torch.float64)
    g = sizes[:, None] * torch.ones(D, dtype=torch.float64)  # l1 norm 16 of these, l2 norm 4
    y = torch.ones(5, dtype=torch.float64)
    assert fgm(g, y, "l2", 0.3).any(1).tolist() == [False, False, False, True, True]
    assert fgm(g, y, "linf", 0.3).any(1).tolist() == [False, False, True, True, True]
    assert fgm(g, y, "linf", 0.3, least=2.0).any(1).tolist() == [False] * 4 + [True]


@pytest.mark.parametrize("norm", BALLS)
def test_where_all_neurons_are_off_nothing_is_attacked(norm: str) -> None:
    net, (x, y) = begin().net(Rules(0.0, 0.0, rho=0.0)), batches(1)[0]
    quiet = torch.cat([1e-3 * x, x])
    delta = Attack(norm, 0.3)(net, quiet, torch.cat([y, y]))
    assert not delta[:BATCH].any()
    assert delta[BATCH:].any(1).all()


@pytest.mark.parametrize("norm", BALLS)
def test_more_steps_stay_in_the_ball_and_find_worse_than_nothing(norm: str) -> None:
    net, (x, y), tau = begin().net(RULES), batches(1)[0], 0.3
    delta = Attack(norm, tau, steps=7)(net, x, y)
    assert torch.linalg.vector_norm(delta, BALLS[norm], 1).max() <= tau * (1 + 1e-9)
    before, after = (y * obvious(net.w, each, net.b, net.sigma) for each in (x, x + delta))
    assert (after <= before).all()
    assert (after < before - 0.1).any()
    single = y * obvious(net.w, x + Attack(norm, tau)(net, x, y), net.b, net.sigma)
    assert after.mean() <= single.mean() + 1e-6
    assert not torch.allclose(after, single)


# Runs


@dataclass(frozen=True)
class Recorded(SparseCoding):
    """A world that remembers what was drawn."""

    seen: list[np.ndarray] = field(default_factory=list)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        x, y = super().draw(n, rng)
        self.seen.append(x.copy())
        return x, y


def recorded(**options: float) -> Recorded:
    return Recorded(**vars(world(**options)))


def single(scale: float = 0.4, b: float = 0.8) -> Training:
    """In float32, as samples are; neurons of many sizes."""
    sizes = torch.logspace(-1.5, 0.3, WIDTH)[:, None]
    return Training.begin(random(WIDTH, D, scale, rng(0, "w")) * sizes, b)


def fields(state: Training) -> tuple[Tensor, Tensor, Tensor, float, int]:
    return state.w, state.start, state.velocity, state.b, state.step


def same_bytes(a: Training, b: Training) -> bool:
    return all(torch.equal(torch.as_tensor(p), torch.as_tensor(q)) for p, q in zip(fields(a), fields(b), strict=True))


LONG = Stretch(steps=2 * BLOCK + 8, batch=BATCH, lr=0.05, growth=0.2, most=0.85, prune=1)


@ATTACKS
def test_training_goes_on_as_if_it_had_never_stopped(attack: Attack | None) -> None:
    stretch, saved = replace(LONG, attack=attack), []
    whole = single()
    run(whole, world(sigma_x=0.3), stretch, RULES, 0, "long", watch=lambda state: saved.append(deepcopy(state)))
    assert [state.step for state in saved] == [0, BLOCK, 2 * BLOCK, stretch.steps]
    assert same_bytes(saved[-1], whole)
    assert 0 < len(saved[1].w) < WIDTH  # something was dropped
    for state in saved[:-1]:
        resumed = Training(*(torch.tensor(each.numpy()) for each in fields(state)[:3]), state.b, state.step)
        run(resumed, world(sigma_x=0.3), stretch, RULES, 0, "long")
        assert same_bytes(resumed, whole)
    forgetful = replace(saved[1], velocity=0 * saved[1].velocity)
    run(forgetful, world(sigma_x=0.3), stretch, RULES, 0, "long")
    assert not same_bytes(forgetful, whole)


def test_a_run_is_determined_by_its_seed_and_its_stream() -> None:
    ends = []
    for seed, name in ((0, "long"), (0, "long"), (1, "long"), (0, "other")):
        ends.append(single())
        run(ends[-1], world(), LONG, RULES, seed, name)
    assert same_bytes(ends[0], ends[1])
    assert not same_bytes(ends[0], ends[2])
    assert not same_bytes(ends[0], ends[3])


def test_every_step_has_fresh_samples() -> None:
    w = recorded(sigma_x=0.3)
    run(single(), w, replace(LONG, prune=0), RULES, 0, "long")
    x = np.concatenate(w.seen)
    assert x.shape == (LONG.steps * BATCH, D)
    assert len(np.unique(x, axis=0)) == len(x)


def test_a_run_takes_its_steps_on_the_samples_drawn_batch_by_batch() -> None:
    w, state, other = recorded(sigma_x=0.3), single(), single()
    run(state, w, replace(LONG, prune=0), RULES, 0, "long")
    labels = np.concatenate(
        [world(sigma_x=0.3).draw(len(x), rng(0, f"long {i * BLOCK}"))[1] for i, x in enumerate(w.seen)]
    )
    for x, y in zip(*(torch.from_numpy(each).split(BATCH) for each in (np.concatenate(w.seen), labels)), strict=True):
        step(other, x, y, replace(LONG, prune=0), RULES)
    assert same_bytes(state, other)


def test_a_run_that_is_over_changes_nothing() -> None:
    state, seen = single(), []
    state.step = LONG.steps
    run(state, world(), LONG, RULES, 0, "long", watch=lambda state: seen.append(state.step))
    assert torch.equal(state.w, state.start)
    assert seen == [LONG.steps]


def test_the_next_stretch_begins_at_rest_where_the_last_ended_and_leaves_that_as_it_is() -> None:
    state = single()
    run(state, world(), LONG, RULES, 0, "long")
    end = deepcopy(state)
    following = state.then()
    assert same_bytes(following, Training(end.w, end.start, 0 * end.w, end.b, 0))
    run(following, world(), replace(LONG, attack=Attack("l2", 0.3)), RULES, 0, "next")
    assert same_bytes(state, end)
    assert not torch.equal(following.w, end.w)


# Pruning


@pytest.mark.parametrize("prune", [1, 1000], ids=["after so many blocks", "at the end"])
def test_pruning_drops_the_neurons_that_are_off_on_all_samples_looked_at(prune: int) -> None:
    stretch, w, state, unpruned = replace(LONG, steps=BLOCK, prune=prune), recorded(sigma_x=0.3), single(), single()
    for each in (state, unpruned):
        each.start = numbers("start", WIDTH, D).float()
    run(unpruned, world(sigma_x=0.3), replace(stretch, prune=0), RULES, 0, "long")
    run(state, w, stretch, RULES, 0, "long")
    assert [len(x) for x in w.seen] == [BLOCK * BATCH, LOOKED]
    looked = torch.from_numpy(w.seen[1])
    on = ((looked @ unpruned.w.T).abs() > unpruned.b * (1 - REACH * RULES.rho)).any(0)
    assert 3 < on.sum() < WIDTH - 3
    assert same_bytes(
        state, Training(unpruned.w[on], unpruned.start[on], unpruned.velocity[on], unpruned.b, unpruned.step)
    )
    before, after = (
        obvious(each.w.double(), looked.double(), each.b, RULES.rho * each.b) for each in (unpruned, state)
    )
    torch.testing.assert_close(after, before, rtol=0, atol=WIDTH * 1e-7)
    torch.testing.assert_close(state.net(RULES)(looked), unpruned.net(RULES)(looked), rtol=0, atol=1e-5)


@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_a_neuron_is_alive_if_it_is_on_ever_so_little_on_any_sample(sigma: float) -> None:
    b = 0.8
    edge = b - REACH * sigma
    w = torch.tensor([edge * 1.01, -edge * 1.01, edge * 0.99, -edge * 0.99, 0.0])[:, None]
    x = torch.tensor([[0.2], [1.0], [-0.5]])
    assert alive(Symmetric(w, b, sigma), x).tolist() == [True, True, False, False, False]


# Purification


def mixture(state: Training, w: SparseCoding) -> tuple[float, float, float]:
    """The mean coefficient of sign(w*_j) M_j in neurons of other words; how these add up along w*; that of the own."""
    coefficients = state.w.numpy() @ w.dictionary
    signed = coefficients * np.sign(w.w_star)
    own = np.eye(w.words, dtype=bool)
    total = np.where(own, 0, coefficients).sum(0)
    cosine = total @ w.w_star / (np.linalg.norm(total) * np.linalg.norm(w.w_star))
    return float(signed[~own].mean()), float(cosine), float(signed[own].mean())


def test_clean_training_grows_a_dense_mixture_and_adversarial_training_shrinks_it() -> None:
    w, rules = world(32, sigma_x=0.5), Rules(momentum=0.9, decay=1e-3, rho=0.1)
    clean = Stretch(steps=200, batch=64, lr=0.1)
    state = Training.begin(pure(w.dictionary, w.w_star, 32, 1.0, 0.0, rng(0, "w")), 0.5 / math.sqrt(K))
    assert mixture(state, w)[0] == pytest.approx(0, abs=1e-6)
    run(state, w, clean, rules, 0, "clean")
    trained, along, own = mixture(state, w)
    assert trained > 0.03
    assert along > 0.95
    assert own > 1
    ends = []
    for attack in (None, Attack("l2", 0.25 / math.sqrt(K))):
        end = state.then()
        run(end, w, replace(clean, attack=attack), rules, 0, "second")
        ends.append(mixture(end, w))
    (longer, _, _), (purified, _, still) = ends
    assert purified < 0.7 * trained < trained < longer
    assert still > 1  # the features themselves stay
