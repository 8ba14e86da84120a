"""Remedies against brittleness: the training loop against a slow obvious one, each remedy against what it promises."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity
from torch.nn.utils import parameters_to_vector

from brittle.attacks.nearest_boundary import minimum
from brittle.attacks.pgd import pgd
from brittle.core.errors import BadInput
from brittle.core.rng import rng
from brittle.cross.params import REMEDIES
from brittle.nets.modules import Average, Relu, SymmetricModule, as_two_layer
from brittle.plugins import built_in
from brittle.probes import battery
from brittle.train import remedies
from brittle.train.remedies import RemedyPlan, Task
from brittle.worlds import sphere
from brittle.worlds.common import World

STRENGTH = {
    "adversarial": 60,
    "ensemble": 3,
    "weight_decay": 0.02,
    "dropout": 0.5,
    "sam": 0.1,
    "muon": 0.02,
    "power_relu": 0.5,
    "spectral_decoupling": 0.1,
    "diverse": 1.0,
    "noised": 0.5,
}


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def lms(n: int = 600) -> World:
    """SB's lms in small: S is y U[0.2, 1]; the next coordinate is near 0 for one label and ±1 for the other."""
    draws = np.random.default_rng(0)
    y = np.where(draws.random(n) < 0.5, 1.0, -1.0)
    slab = np.where(y > 0, draws.choice([-1.0, 1.0], n), 0.0) + draws.uniform(-0.2, 0.2, n)
    x = np.stack([y * draws.uniform(0.2, 1, n), slab, *draws.uniform(-0.3, 0.3, (2, n))], axis=1)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    half = n // 2
    return World(
        x=x[:half], y=y[:half], x_test=x[half:], y_test=y[half:], radius=0.15, simple=torch.eye(4)[:1], simple_is="S"
    )


def task(
    world: World | None = None,
    *,
    seed: int = 0,
    build: Callable[[int], nn.Module] | None = None,
    updates: int = 40,
    batch: int = 32,
    lr: float = 0.3,
    momentum: float = 0.9,
    target: float = 0.0,
    **strength: float,
) -> Task:
    world = lms() if world is None else world

    def default(number: int) -> nn.Module:
        return Relu(world.x.shape[1], 20, rng(number, "test"))

    def attack(net: nn.Module, x: Tensor, y: Tensor, radius: float) -> Tensor:
        return x + pgd(net, x, y, "l2", radius, 3)

    plan = RemedyPlan(updates, batch, lr, momentum, target)
    return Task(world, build or default, seed, plan, STRENGTH | strength, attack)


def weights(net: nn.Module) -> Tensor:
    return parameters_to_vector(net.parameters()).detach()


# --- The loop


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_fit_is_sgd_with_momentum_as_a_textbook_has_it(decay: float) -> None:
    """Gradients by hand, one sample after another: v ← μv + g + λθ, θ ← θ - ηv; five passes, the rest at η/5."""
    t = task(updates=47, lr=0.1, seed=3)
    net = t.net()
    w, b, v = (p.detach().double().numpy().copy() for p in (net.first.weight, net.first.bias, net.last.weight[0]))
    theta, velocity, draws, done = [w, b, v], [0.0, 0.0, 0.0], rng(3, "remedy"), 0
    draws.integers(2**62)  # torch's seed
    x, y = t.x.double().numpy(), t.y.double().numpy()
    while done < 47:
        for rows in draws.permutation(300)[:288].reshape(9, 32)[: 47 - done]:
            g = [np.zeros_like(p) for p in theta]
            for i in rows:
                a = w @ x[i] + b
                slope = -y[i] / (1 + math.exp(y[i] * (v @ np.maximum(a, 0)))) / 32  # of ln(1 + exp(-y f))
                g[0] += slope * np.outer(v * (a > 0), x[i])
                g[1] += slope * v * (a > 0)
                g[2] += slope * np.maximum(a, 0)
            for j, p in enumerate(theta):
                velocity[j] = 0.9 * velocity[j] + g[j] + decay * p
                p -= (0.1 if done < 0.8 * 47 else 0.02) * velocity[j]
            done += 1
    t.fit(net, weight_decay=decay)
    for p, expected in zip((net.first.weight, net.first.bias, net.last.weight[0]), theta, strict=True):
        np.testing.assert_allclose(p.detach(), expected, rtol=0, atol=2e-5)
    assert t.spent == 47 * 32
    assert not net.training


def test_training_ends_with_the_first_pass_whose_mean_loss_is_below_the_target() -> None:
    seen: list[float] = []

    def loss(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        value = remedies.logistic(net, x, y)
        seen.append(float(value))
        return value

    t = task(updates=1000)
    t.fit(t.net(), loss, target=0.2)
    passes = np.array(seen).reshape(-1, 9).mean(1)
    assert (passes[:-1] >= 0.2).all()
    assert passes[-1] < 0.2
    assert len(passes) > 1


class Two(nn.Module):
    """Two parameters, to see that SAM goes along the gradient of both at once."""

    def __init__(self, p: Tensor, q: Tensor) -> None:
        super().__init__()
        self.p, self.q = nn.Parameter(p), nn.Parameter(q)

    def forward(self, x: Tensor) -> Tensor:
        return x[:, 0]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), rho=st.floats(0.01, 2))
def test_sam_steps_by_the_gradient_at_the_worst_weights_nearby(seed: int, rho: float) -> None:
    """On ½θᵀAθ + bᵀθ: θ ← θ - η (A(θ + ρ g/‖g‖) + b), with g = Aθ + b."""
    theta, b, root = (normal(seed + i, *shape).double() for i, shape in enumerate([(5,), (5,), (5, 5)]))
    a = root @ root.T
    net = Two(theta[:3].clone(), theta[3:].clone())

    def loss(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        both = torch.cat([net.p, net.q])
        return both @ a @ both / 2 + b @ both

    task(lr=0.1, momentum=0.0).fit(net, loss, sharpness=rho, updates=1)
    g = a @ theta + b
    expected = theta - 0.1 * (a @ (theta + rho * g / g.norm()) + b)
    torch.testing.assert_close(weights(net), expected, rtol=1e-10, atol=1e-10)


def test_a_loss_that_is_no_longer_finite_is_said_in_one_line() -> None:
    with pytest.raises(
        BadInput, match=r"^the loss is no longer finite after \d+ updates; use a lower cross.training.lr$"
    ):
        remedies.nothing(task(lr=1e30))


def test_frozen_weights_stay_and_torchs_own_generator_is_left_alone() -> None:
    t = task()
    net = t.net()
    net.first.weight.requires_grad_(False)
    before, last = net.first.weight.clone(), net.last.weight.detach().clone()
    state = torch.get_rng_state()
    t.fit(net)
    assert torch.equal(net.first.weight, before)
    assert not torch.equal(net.last.weight, last)
    assert torch.equal(torch.get_rng_state(), state)


def test_no_updates_are_none() -> None:
    t = task()
    net = t.net()
    before = weights(net)
    t.fit(net, updates=0)
    assert torch.equal(weights(net), before)


# --- The remedies


def test_the_list_of_the_parameters_is_that_of_the_remedies() -> None:
    assert {each.name for each in built_in("remedy")} == set(REMEDIES)


@pytest.mark.parametrize("name", REMEDIES)
@pytest.mark.parametrize("kind", [Relu, SymmetricModule])
def test_the_same_seed_gives_the_same_bytes_and_another_others(name: str, kind: type[nn.Module]) -> None:
    found = []
    for seed, noise in ((1, 0), (1, 5), (2, 0)):
        torch.manual_seed(noise)  # whatever was drawn before does not matter
        t = task(seed=seed, adversarial=5, updates=15, build=lambda number: kind(4, 20, rng(number, "test")))
        net = getattr(remedies, name)(t)
        assert not any(part.training for part in net.members) if isinstance(net, Average) else not net.training
        assert bool(net(t.x).isfinite().all())
        found.append((weights(net).numpy().tobytes(), t.spent))
    assert found[0] == found[1]
    assert found[0][0] != found[2][0]
    assert found[0][1] == found[2][1] > 0


def test_the_cost_is_the_samples_that_go_through_networks() -> None:
    """In units of updates × batch: an ensemble's members; SAM twice; PGD's 3 steps and its end, and the update."""
    costs = {name: task() for name in ("nothing", "weight_decay", "ensemble", "sam", "adversarial", "diverse")}
    for name, t in costs.items():
        getattr(remedies, name)(t)
    each = 40 * 32
    plain = {"nothing": each, "weight_decay": each, "ensemble": 3 * each, "sam": 2 * each}
    assert {name: costs[name].spent for name in plain} == plain
    assert costs["adversarial"].spent == each + 60 * 32 * 5
    assert costs["diverse"].spent == 2 * 40 * (32 + 8)  # input gradients on a quarter


def test_an_ensemble_is_the_mean_of_networks_trained_alone() -> None:
    t = task()
    net = remedies.ensemble(t)
    alone = [t.fit(t.net(member)) for member in range(3)]
    assert len(net.members) == 3
    for member, other in zip(net.members, alone, strict=True):
        assert torch.equal(weights(member), weights(other))
    assert not torch.equal(weights(alone[0]), weights(alone[1]))
    expected = sum(other(t.world.x_test).detach().double() for other in alone) / 3
    np.testing.assert_allclose(net(t.world.x_test).detach(), expected, rtol=1e-5, atol=1e-6)


def test_weight_decay_leaves_smaller_weights_the_more_of_it() -> None:
    sizes = [float(weights(remedies.weight_decay(task(updates=200, weight_decay=s))).norm()) for s in (0, 0.003, 0.03)]
    assert sizes[0] > 1.1 * sizes[1] > 1.1**2 * sizes[2]
    assert sizes[0] == float(weights(remedies.nothing(task(updates=200))).norm())


def test_dropout_drops_neurons_in_training_and_none_afterwards() -> None:
    dropped, t = [], task(updates=5, dropout=0.25)
    build = t.build

    def spied(number: int) -> nn.Module:
        net = build(number)
        net.last.register_forward_hook(lambda layer, x, out: dropped.append((layer.training, x[0] == 0)))
        return net

    t.build = spied
    net = remedies.dropout(t)
    assert net.first._forward_hooks == {}
    hidden = net.first(t.x).relu()
    np.testing.assert_allclose(net(t.x).detach(), (hidden @ net.last.weight[0]).detach(), atol=1e-6)
    off = torch.stack([zeros for training, zeros in dropped if training]).double().mean((1,))  # (5, neurons)
    silent = (hidden == 0).double().mean(0)
    expected = 0.25 + 0.75 * silent  # dropped, or off as it is
    np.testing.assert_allclose(off.mean(0), expected, atol=0.25)
    assert float(off.mean()) == pytest.approx(float(expected.mean()), abs=0.05)
    torch.testing.assert_close(weights(remedies.dropout(task(dropout=0.0))), weights(remedies.nothing(task())))


def test_spectral_decoupling_holds_scores_where_its_loss_is_least() -> None:
    """ln(1 + exp(-s)) + λs²/2 is least at σ(-s) = λs; plain SGD's scores grow on."""
    x, y = 3 * torch.eye(4), torch.tensor([1.0, -1.0, 1.0, -1.0])
    world = World(x=x, y=y, x_test=x, y_test=y, radius=1.0)
    for strength in (0.1, 0.5):
        s = brentq(lambda s: 1 / (1 + math.exp(s)) - strength * s, 0, 10)  # noqa: B023
        net = remedies.spectral_decoupling(task(world, updates=600, lr=0.1, spectral_decoupling=strength))
        np.testing.assert_allclose(y * net(x).detach(), s, rtol=1e-3)
        assert float((y * remedies.nothing(task(world, updates=600, lr=0.1))(x)).min()) > 2 * s


def test_diverse_makes_input_gradients_less_alike_and_keeps_the_accuracy() -> None:
    alike = []
    for strength in (0.0, 1.0):
        t = task(updates=300, lr=0.1, diverse=strength)
        net = remedies.diverse(t)
        x = t.world.x_test.requires_grad_()
        first, second = (torch.autograd.grad(member(x).sum(), x)[0] for member in net.members)
        alike.append(float(cosine_similarity(first, second).square().mean()))
        assert float((t.world.y_test * net(x) > 0).double().mean()) > 0.95
    assert alike[1] < 0.5 * alike[0]


def test_noised_leaves_a_network_that_does_not_rely_on_s() -> None:
    relies = {}
    for name in ("nothing", "noised"):
        t = task(updates=600, lr=0.1)
        relies[name] = battery.reliance(getattr(remedies, name)(t), t.world, 3)
    assert relies["nothing"]["reliance"] > 0.6
    assert relies["noised"]["reliance"] < 0.1
    assert relies["noised"]["accuracy"] > 0.95


def test_noised_exchanges_s_alone_and_of_its_share_alone() -> None:
    seen: list[Tensor] = []
    t = task(updates=1, noised=0.25)
    plain = t.fit
    t.fit = lambda net, perturb: seen.append(perturb(net, t.x[:8], t.y[:8], 0.0)) or plain(net)
    remedies.noised(t)
    expected = t.x[:8].clone()
    expected[0, 0], expected[1, 0] = t.x[1, 0], t.x[0, 0]  # a quarter of eight are two
    torch.testing.assert_close(seen[0], expected)


def test_adversarial_training_moves_the_boundary_away_on_the_sphere() -> None:
    x, y = (torch.from_numpy(part).float() for part in sphere.sample(40, 30, np.random.default_rng(0)))
    world, sizes = World(x=x, y=y, x_test=x, y_test=y, radius=0.25 * 40**0.5), {}
    for name in ("nothing", "adversarial"):
        t = task(world, build=lambda number: Relu(40, 60, rng(number, "test")), updates=200, lr=0.1, adversarial=300)
        sizes[name] = minimum(as_two_layer(getattr(remedies, name)(t)), x.double(), y.double(), steps=30).size
    assert float(sizes["adversarial"].median()) > 1.3 * float(sizes["nothing"].median()) > 0
    kept = {name: float((size > world.radius).double().mean()) for name, size in sizes.items()}
    assert kept["adversarial"] > 0.9 > 0.7 > kept["nothing"]


def test_the_radius_of_adversarial_training_grows_in_the_first_half() -> None:
    asked: list[float] = []
    t = task(updates=1, adversarial=10)
    t.attack = lambda net, x, y, radius: asked.append(radius) or x
    remedies.adversarial(t)
    np.testing.assert_allclose(asked, 0.15 * np.array([0, 0.2, 0.4, 0.6, 0.8, 1, 1, 1, 1, 1]), atol=1e-12)


# --- Stopped and resumed


class Stopped(Exception):
    pass


class Memory:
    """Keeps one training's state; stops it just after the one that it was told to keep."""

    def __init__(self, at: int) -> None:
        self.at, self.asked, self.saved = at, 0, None

    def load(self, names: tuple[str, ...]) -> dict[str, np.ndarray] | None:
        if self.saved is not None:
            assert set(names) <= set(self.saved)
        return self.saved

    def due(self) -> bool:
        if self.saved is not None and self.asked == self.at + 1:
            raise Stopped
        self.asked += 1
        return self.asked == self.at + 1

    def save(self, arrays: dict[str, np.ndarray]) -> None:
        self.saved = {name: array.copy() for name, array in arrays.items()}


def test_muon_steps_by_orthogonal_matrices_alone() -> None:
    """Every singular value of a step of the first layer is near the learning rate, however unequal the gradient's."""
    t = task(updates=1, muon=0.05)
    before, after = t.net().first.weight.detach(), remedies.muon(t).first.weight.detach()
    values = torch.linalg.svdvals(after - before) / (0.05 * math.sqrt(20 / 4))
    assert bool(((values > 0.6) & (values < 1.3)).all())
    plain = torch.linalg.svdvals(remedies.nothing(task(updates=1)).first.weight.detach() - before)
    assert float(plain[0] / plain[-1]) > 3


def test_powers_of_relu_see_samples_of_the_norm_that_they_are_given() -> None:
    t = task(updates=5, power_relu=0.25)
    net = remedies.power_relu(t)
    assert float(net.norm) == pytest.approx(0.25 * float(t.x.norm(dim=1).mean()))
    assert net.p == 3
    assert t.spent == 5 * 32


@pytest.mark.parametrize("name", REMEDIES)
def test_a_training_that_was_stopped_goes_on_to_the_same_network(name: str) -> None:
    def run(keeper: Callable[[int], Memory] | None = None) -> tuple[Task, Tensor]:
        t = task(updates=60, target=0.005)
        t.keeper = keeper
        return t, weights(getattr(remedies, name)(t))

    whole, expected = run()
    for fit in range(whole.fits):
        for update in (0, 4, 9, 17):  # at the start, within a pass, between two, at the end of one
            kept = [Memory(update if number == fit else 10**6) for number in range(whole.fits)]
            with pytest.raises(Stopped):
                run(kept.__getitem__)
            kept[fit].at = 10**6
            for _ in range(2):  # the second time everything is done already
                again, found = run(kept.__getitem__)
                assert torch.equal(found, expected)
                assert again.spent == whole.spent
