"""Attacks on pictures: balls and pixels, SmoothAdv by a slow obvious version, and foolbox as a rival."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from functools import cache

import foolbox
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from brittle.attacks.image_pgd import Attacker, accuracy, fixed, margin, named, strongest
from brittle.core.rng import rng
from brittle.nets.alexnet import AlexNet
from brittle.nets.pre_resnet import PreResNet
from brittle.nets.weights import flat
from brittle.train.image_sgd import ImagePlan, train
from brittle.worlds.pixels import shown

NORMS = pytest.mark.parametrize("norm", ["l2", "linf"])
DUAL = {"l2": 2.0, "linf": 1.0}
ORDER = {"l2": 2.0, "linf": math.inf}
CLASSES, SIDE = 4, 12


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbers(purpose: str, *shape: int) -> Tensor:
    return torch.from_numpy(rng(0, purpose).standard_normal(shape, dtype=np.float32))


def pixels(n: int, side: int = SIDE, low: float = 0.0, high: float = 1.0) -> Tensor:
    return torch.from_numpy(rng(0, "pixels").uniform(low, high, (n, 3, side, side)).astype(np.float32))


def size(delta: Tensor, norm: str) -> Tensor:
    return torch.linalg.vector_norm(delta.flatten(1), ORDER[norm], dim=1)


class Linear(nn.Module):
    """Logits W x + b; one row: one logit a picture."""

    def __init__(self, w: Tensor, b: Tensor) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(w), nn.Parameter(b)

    def forward(self, x: Tensor) -> Tensor:
        logits = x.flatten(1) @ self.w.T + self.b
        return logits[:, 0] if len(self.w) == 1 else logits


class Cnn(nn.Module):
    def __init__(self, outputs: int = CLASSES, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.first, self.bn = nn.Conv2d(3, 8, 5, padding=2), nn.BatchNorm2d(8)
            self.second, self.last = nn.Conv2d(8, 12, 3, padding=1), nn.Linear(12 * 9, outputs)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.max_pool2d(self.bn(self.first(x - 0.5)).relu(), 2)
        y = nn.functional.max_pool2d(self.second(y).relu(), 2)
        y = self.last(self.dropout(y.flatten(1)))
        return y[:, 0] if y.shape[1] == 1 else y


class TwoLogits(nn.Module):
    """One logit f as the two logits 0 and f."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        f = self.net(x)
        return torch.stack([torch.zeros_like(f), f], 1)


def data(n: int, side: int = SIDE, purpose: str = "train") -> tuple[Tensor, Tensor]:
    """Pictures of smooth patterns in noise."""
    shapes = rng(0, "patterns").standard_normal((CLASSES, 4, 4, 3))
    shapes = np.kron(shapes, np.ones((1, side // 4, side // 4, 1)))
    random = rng(0, purpose)
    y = random.integers(0, CLASSES, n)
    x = 128 + 22 * shapes[y] + 30 * random.standard_normal((n, side, side, 3))
    return torch.from_numpy(x.clip(0, 255).astype(np.uint8)), torch.from_numpy(y)


@cache
def trained(kind: str) -> nn.Module:
    """Cleanly, or against an attacker."""
    architecture, _, against = kind.partition(" ")
    if architecture == "alexnet":
        net: nn.Module = AlexNet(CLASSES, width=0.1)
        net.draw(rng(0, "weights"))
        plan, side, n, eps = ImagePlan(5, 32, 0.02, 0.9, 5e-4), 32, 224, 0.01
    else:
        net, plan, side, n, eps = Cnn(), ImagePlan(8, 32, 0.05, 0.9, 5e-4, drops=(6,)), SIDE, 384, 0.04
    attack = {"": None, "linf": Attacker("linf", eps, 2, warmup=3.0), "l2": Attacker("l2", 0.5, 3, 0.1, 2)}[against]
    train(net, *data(n, side), plan, 0, attack)
    return net.eval()


def sample(kind: str, n: int = 120) -> tuple[nn.Module, Tensor, Tensor]:
    x, y = data(n, 32 if kind.startswith("alexnet") else SIDE, "test")
    return deepcopy(trained(kind)), shown(x), y


# Balls and pixels


@NORMS
@pytest.mark.parametrize("eps", [1e-3, 0.1, 3.0])
def test_perturbations_stay_in_the_ball_and_pixels_in_their_range(norm: str, eps: float) -> None:
    net, _, y = sample("cnn", 40)
    x = pixels(40)
    x[:10], x[10:20] = x[:10].round(), 0.5 + 0.5 * x[10:20]  # black and white; bright
    found = {
        "strongest": strongest(net, x, y, norm, eps, 6, 2, generator()),
        "training": Attacker(norm, eps, 3)(net, x, y, 0.0, generator())[0] - x,
    }
    for name, delta in found.items():
        assert (size(delta, norm) <= eps * (1 + 1e-5) + 1e-6).all(), name
        assert (x + delta).min() >= -1e-6, name
        assert (x + delta).max() <= 1 + 1e-6, name
        assert delta.shape == x.shape
        assert delta.any()
        assert not delta.requires_grad
    noisy, _ = Attacker(norm, eps, 3, sigma=0.2, copies=2)(net, x, y, 0.0, generator())
    quiet, _ = Attacker(norm, 0.0, 3, sigma=0.2, copies=2)(net, x, y, 0.0, generator())
    if norm == "l2":  # no random start: the same noise
        delta = (noisy - quiet)[:40]
        assert (size(delta, norm) <= eps * (1 + 1e-5) + 1e-5).all()
        assert (x + delta).min() >= -1e-5
        assert (x + delta).max() <= 1 + 1e-5


def test_names_of_attackers_are_those_of_the_paper() -> None:
    assert named("linf-8", 7) == Attacker("linf", 8 / 255, 7)
    assert named("l2-1-0.25", 4, 2, 10.0) == Attacker("l2", 1.0, 4, 0.25, 2, 10.0)
    assert named("l2-0.5-0.12", 4, 2) == Attacker("l2", 0.5, 4, 0.12, 2)
    assert named("l2-1", 4, 2).sigma == 0
    assert len(named("l2-1", 4, 2)(sample("cnn")[0], pixels(3), torch.tensor([0, 1, 2]), 0.0, generator())[0]) == 3


@pytest.mark.parametrize("sigma", [0.0, 0.1])
@NORMS
def test_the_radius_grows_from_nothing_over_the_warmup(norm: str, sigma: float) -> None:
    """A linear classifier is pushed to the boundary, in its one direction."""
    w = numbers("w", 1, 3 * SIDE**2)
    net, x, y = Linear(w, torch.zeros(1)), pixels(6, low=0.4, high=0.6), torch.tensor([1.0, -1.0] * 3)
    sizes = []
    for epoch in (0.0, 0.5, 1.0, 1.9, 2.0, 7.5):
        attack = Attacker(norm, 0.1, 4, sigma, 2, warmup=2.0)
        base = Attacker(norm, 0.0, 4, sigma, 2)(net, x, y, epoch, generator())[0]
        delta = (attack(net, x, y, epoch, generator())[0] - base)[:6]
        if sigma == 0 or norm == "l2":
            sizes.append(size(delta, norm).max().item())
            assert size(delta, norm).min().item() == pytest.approx(sizes[-1], abs=1e-6)
    if sizes:
        assert sizes == pytest.approx([0, 0.025, 0.05, 0.095, 0.1, 0.1], rel=1e-3, abs=1e-6)
    whole = Attacker(norm, 0.1, 4)(net, x, y, 0.0, generator())[0] - x  # without warm-up, at once
    assert size(whole, norm).tolist() == pytest.approx([0.1] * 6, rel=1e-3)


# SmoothAdv


def obvious(net: nn.Module, x: Tensor, y: int, noises: Tensor, eps: float, steps: int) -> Tensor:
    """Salman et al. 2019, for one picture: PGD in l2 against the mean probability of its label over noisy copies."""
    delta = torch.zeros_like(x)
    for _ in range(steps):
        delta.requires_grad_()
        probability = sum(net((x + delta + noise)[None])[0].softmax(0)[y] for noise in noises) / len(noises)
        (g,) = torch.autograd.grad(-probability.log(), delta)
        delta = (delta + 2 * eps / steps * g / g.norm()).detach()
        delta = delta * min(1.0, eps / float(delta.norm()))
        delta = (x + delta).clamp(0, 1) - x
    return delta


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_smoothadv_is_its_slow_obvious_version_with_the_noise_that_is_trained_on(copies: int) -> None:
    net, x, y = sample("cnn", 6)
    attack = Attacker("l2", 0.8, 3, sigma=0.2, copies=copies, warmup=1.0)
    noisy, labels = attack(net, x, y, 0.0, generator())  # the radius is 0
    inputs: list[Tensor] = []
    net.register_forward_pre_hook(lambda _, args: inputs.append(args[0].detach().clone()))
    moved, truth = attack(net, x, y, 1.0, generator())
    assert torch.equal(truth, labels)
    assert torch.equal(labels, torch.cat([y] * copies))
    assert len(inputs) == 3
    torch.testing.assert_close(inputs[0], noisy, rtol=0, atol=1e-6)  # the attack begins at what training sees
    noises = (noisy - torch.cat([x] * copies)).unflatten(0, (copies, 6))
    assert float(noises.std()) == pytest.approx(0.2, rel=0.05)
    assert copies == 1 or not torch.equal(noises[0], noises[1])
    deltas = (moved - noisy).unflatten(0, (copies, 6))
    for number in range(6):
        expected = obvious(deepcopy(net), x[number], int(y[number]), noises[:, number], 0.8, 3)
        for copy in range(copies):  # one perturbation for all copies
            torch.testing.assert_close(deltas[copy, number], expected, rtol=1e-3, atol=1e-4)


# One logit and two


@NORMS
def test_one_logit_and_two_give_the_same(norm: str) -> None:
    net = Cnn(1).eval()
    two, x, signs = TwoLogits(net), pixels(20), torch.tensor([1.0, -1.0] * 10)
    labels = (signs > 0).long()
    torch.testing.assert_close(margin(net(x), signs), margin(two(x), labels))
    assert accuracy(net, x, signs) == accuracy(two, x, labels)
    y = torch.where(net(x) > 0, 1.0, -1.0)  # all right at first
    one = strongest(net, x, y, norm, 0.05, 5, 2, generator())
    other = strongest(two, x, (y > 0).long(), norm, 0.05, 5, 2, generator())
    torch.testing.assert_close(margin(net(x + one), y), margin(net(x + other), y), rtol=1e-3, atol=1e-4)
    assert accuracy(net, x, y, one) == accuracy(two, x, (y > 0).long(), other)
    attack = Attacker(norm, 0.05, 3)
    mine, _ = attack(net, x, signs, 0.0, generator())
    theirs, _ = attack(two, x, labels, 0.0, generator())
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-4)


def test_one_logit_and_two_give_the_same_over_noisy_copies() -> None:
    net = Cnn(1).eval()
    with torch.no_grad():
        net.last.weight.mul_(30)  # probabilities that differ between copies
    x, signs = pixels(20), torch.tensor([1.0, -1.0] * 10)
    attack = Attacker("l2", 0.5, 3, sigma=0.3, copies=3)
    mine, truth = attack(net, x, signs, 0.0, generator())
    theirs, _ = attack(TwoLogits(net), x, (signs > 0).long(), 0.0, generator())
    assert torch.equal(truth, signs.repeat(3))
    torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-3)


def test_margins_are_by_how_much_the_label_leads() -> None:
    logits, y = torch.tensor([[1.0, 3.0, 2.5], [1.0, 3.0, 2.5], [2.0, 2.0, 0.0]]), torch.tensor([1, 2, 0])
    assert margin(logits, y).tolist() == [0.5, -0.5, 0.0]
    assert margin(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([-1.0, -1.0, 1.0])).tolist() == [-2.0, 1.0, 0.0]
    net = Linear(torch.eye(3), torch.zeros(3))
    assert accuracy(net, logits[:, :, None, None], y) == pytest.approx(1 / 3)  # a tie is wrong


# What is known of linear classifiers


@NORMS
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("steps", [4, 10, 40])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_strongest_attack_on_a_linear_classifier_is_the_closed_form(
    norm: str, outputs: int, steps: int, scale: float
) -> None:
    """However its logits are scaled: where they are huge, cross entropy has no gradient."""
    d, n, eps = 3 * SIDE**2, 40, 0.05
    w, x = numbers("w", outputs, d) / math.sqrt(d), pixels(n, low=0.2, high=0.8)
    net = Linear(w, torch.zeros(outputs))
    with torch.no_grad():
        net.b[-1] -= (x.flatten(1) @ (w[-1] - (w[0] if outputs == 2 else 0))).mean()
        net.w.mul_(scale)
        net.b.mul_(scale)
        direction = net.w[0] if outputs == 1 else net.w[1] - net.w[0]
        signs = net(x).sign() if outputs == 1 else (net(x)[:, 1] - net(x)[:, 0]).sign()
    y = signs if outputs == 1 else (signs > 0).long()
    before = margin(net(x), y).detach()
    lowest = before - eps * torch.linalg.vector_norm(direction.detach(), DUAL[norm])
    delta = strongest(net, x, y, norm, eps, steps, 1, generator())
    found = margin(net(x + delta), y).detach()
    torch.testing.assert_close(found / scale, lowest / scale, rtol=2e-3, atol=2e-3)
    assert accuracy(net, x, y, delta) == pytest.approx(float((lowest > 0).float().mean()))


@NORMS
def test_of_ten_classes_the_one_that_is_nearest_in_the_ball_is_found(norm: str) -> None:
    d, n, k = 3 * SIDE**2, 100, 10
    w, x = numbers("w", k, d) / math.sqrt(d), pixels(n, low=0.2, high=0.8)
    net = Linear(w, -0.5 * w.sum(1))
    y = net(x).argmax(1)
    with torch.no_grad():
        gaps = net(x).gather(1, y[:, None]) - net(x)  # (n, k)
        dual = torch.linalg.vector_norm(w[y][:, None] - w[None], DUAL[norm], dim=2).scatter(1, y[:, None], 1.0)
        reach = (gaps / dual).scatter(1, y[:, None], torch.inf).amin(1)  # the distance to the nearest boundary
    eps = float(reach.median())
    delta = strongest(net, x, y, norm, eps, 20, 5, generator())
    fallen = margin(net(x + delta), y) <= 0
    assert not fallen[reach > eps * 1.001].any()  # no more than is possible
    assert fallen[reach < eps * 0.98].float().mean() >= 0.98


def test_pictures_that_are_wrong_already_are_left_alone() -> None:
    net, x, y = sample("cnn")
    wrong = (y + 1) % CLASSES
    delta = strongest(net, x, wrong, "l2", 0.5, 4, 1, generator())
    already = margin(net(x), wrong) <= 0
    assert already.any()
    assert not delta[already].any()


def test_more_restarts_and_more_pictures_at_once_never_help_the_network() -> None:
    net, x, y = sample("cnn linf", 260)  # more than are attacked at a time
    found = [accuracy(net, x, y, strongest(net, x, y, "linf", 0.06, 6, restarts, generator())) for restarts in (1, 2)]
    assert found[1] <= found[0] <= accuracy(net, x, y)
    few = strongest(net, x[:7], y[:7], "linf", 0.06, 6, 1, generator())
    many = strongest(net, x, y, "linf", 0.06, 6, 1, generator())
    torch.testing.assert_close(margin(net(x[:7] + few), y[:7]), margin(net(x[:7] + many[:7]), y[:7]), atol=0.05, rtol=0)


# Against foolbox

Rival = Callable[..., tuple[object, object, Tensor]]
RIVALS: dict[str, list[Rival]] = {
    "l2": [
        foolbox.attacks.L2DeepFoolAttack(steps=15, candidates=CLASSES),
        foolbox.attacks.L2FMNAttack(steps=30),
        foolbox.attacks.L2ProjectedGradientDescentAttack(steps=20),
    ],
    "linf": [
        foolbox.attacks.LinfDeepFoolAttack(steps=15, candidates=CLASSES),
        foolbox.attacks.LInfFMNAttack(steps=30),
        foolbox.attacks.LinfProjectedGradientDescentAttack(steps=20),
    ],
}
RADII = {  # at which some pictures fall and some do not
    ("cnn", "l2"): 0.6,
    ("cnn", "linf"): 0.04,
    ("cnn linf", "l2"): 0.8,
    ("cnn linf", "linf"): 0.055,
    ("cnn l2", "l2"): 0.8,
    ("alexnet", "l2"): 0.8,
    ("alexnet linf", "linf"): 0.03,
}


@pytest.mark.parametrize(("kind", "norm"), RADII)
def test_the_strongest_attack_is_as_strong_as_each_of_foolbox_s(kind: str, norm: str) -> None:
    """On cleanly trained networks, and on adversarially trained ones, which might hide their gradients."""
    net, x, y = sample(kind, 20 if kind.startswith("alexnet") else 80)
    assert accuracy(net, x, y) > 0.9
    eps = RADII[kind, norm]
    ours = accuracy(net, x, y, strongest(net, x, y, norm, eps, 25, 2, generator()))
    assert 0.02 < ours < 0.98
    with fixed(net):
        model = foolbox.PyTorchModel(net, bounds=(0, 1), device="cpu")
        for rival in RIVALS[norm]:
            torch.manual_seed(0)
            fallen = rival(model, x, y, epsilons=[eps])[2][0]
            # A picture at the edge of the ball may fall to one attack and not to the other.
            assert round(ours * len(x)) <= int((~fallen).sum()) + 1, rival


@NORMS
def test_what_is_measured_is_no_artefact_of_masked_gradients(norm: str) -> None:
    """Logits times 1000 saturate every probability; the labels, and so the robust accuracy, are the same."""
    net, x, y = sample("cnn")
    loud = deepcopy(net)
    with torch.no_grad():
        loud.last.weight.mul_(1000)
        loud.last.bias.mul_(1000)
    eps = {"l2": 0.6, "linf": 0.04}[norm]
    shares = [accuracy(of, x, y, strongest(of, x, y, norm, eps, 25, 2, generator())) for of in (net, loud)]
    assert 0.1 < shares[0] < 0.95
    assert shares[1] <= shares[0] + 0.03


def test_training_against_the_attacker_makes_robust() -> None:
    shares = {}
    for kind in ("cnn", "cnn linf"):
        net, x, y = sample(kind)
        shares[kind] = accuracy(net, x, y, strongest(net, x, y, "linf", 0.05, 20, 2, generator()))
    assert shares["cnn linf"] > shares["cnn"] + 0.1


# What attacks leave behind


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("frozen", [0, 3])
def test_attacks_leave_a_network_as_it_was(frozen: int, training: bool) -> None:
    net = PreResNet(10, classes=CLASSES)
    net.draw(rng(0, "weights"))
    net.freeze(frozen)
    net.train(training)
    for number, p in enumerate(net.parameters()):
        p.grad = torch.full_like(p, float(number)) if p.requires_grad else None
    x, y = pixels(4, 16), torch.arange(4)

    def state() -> list[object]:
        return [
            [p.requires_grad for p in net.parameters()],
            [part.training for part in net.modules()],
            [None if p.grad is None else float(p.grad.sum()) for p in net.parameters()],
        ]

    first, weights = state(), flat(net)
    strongest(net, x, y, "l2", 0.5, 2, 2, generator())
    accuracy(net, x, y)
    assert state() == first
    assert all(np.array_equal(array, weights[name]) for name, array in flat(net).items())
    Attacker("linf", 0.1, 2)(net, x, y, 0.0, generator())
    Attacker("l2", 0.5, 2, 0.1, 2)(net, x, y, 0.0, generator())
    assert state() == first
    assert not x.requires_grad
    with pytest.raises(RuntimeError), fixed(net):
        raise RuntimeError
    assert state() == first


def test_the_attack_within_training_leaves_batch_statistics_to_training() -> None:
    """As Salman et al. do, who switch to eval mode for it: statistics are of what is trained on, once a batch."""
    net = PreResNet(10, classes=CLASSES)
    net.draw(rng(0, "weights"))
    net.train()
    weights = flat(net)
    Attacker("l2", 0.5, 2, 0.1, 2)(net, pixels(4, 16), torch.arange(4), 0.0, generator())
    assert net.training
    assert all(np.array_equal(array, weights[name]) for name, array in flat(net).items())


def test_the_attack_within_training_knows_no_dropout() -> None:
    """Its gradients are those of the network, not of a random half of it that is another one in the next step."""
    net, x, y = sample("cnn", 10)
    net.dropout.p = 0.5
    net.bn.momentum = 0.0
    net.train()
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(Attacker("l2", 0.5, 2)(net, x, y, 0.0, generator())[0])
    assert torch.equal(*found)
