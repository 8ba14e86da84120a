"""The linear classifier and the neural tangent kernel of FP, against autograd and the formulas as they are written."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn.functional import softplus

from brittle.attacks.fgm import fgm
from brittle.attacks.pgd import pgd
from brittle.core.rng import rng
from brittle.nets.family import Family
from brittle.nets.linear import Linear
from brittle.nets.ntk import Ntk
from brittle.nets.polynomial import Polynomial
from brittle.nets.symmetric import Symmetric
from brittle.train.sgd import LOSSES, Member, SgdPlan, train

SETTINGS = [(0.0, 0.3), (0.5, 0.3), (1.0, 1.0), (2.0, 0.1), (-0.5, 0.4), (0.7, 0.0)]


def normal(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(rng(seed, "low complexity").standard_normal(shape))


def ntk(b: float = 0.7, sigma: float = 0.4, m: int = 7, d: int = 5) -> Ntk:
    return Ntk(normal(9, m, d), b, sigma)


ALL = [
    Linear(5),
    *(ntk(*setting) for setting in SETTINGS),
    *(Polynomial(normal(8, 5, 4), n, 1.5) for n in (1, 3, 4, 5)),
]


def called(net: Family) -> str:
    if isinstance(net, Polynomial):
        return f"degree-{net.degree}"
    return "linear" if isinstance(net, Linear) else f"ntk-{net.b}-{net.sigma}"


def obvious(net: Family, theta: Tensor, x: Tensor) -> Tensor:
    """The inner product with the feature map, one network and one sample at a time."""  # (s, p), (s, n, d) -> (s, n)
    if isinstance(net, Linear):
        return torch.stack([torch.stack([v @ point for point in points]) for v, points in zip(theta, x, strict=True)])
    if isinstance(net, Polynomial):
        odds = [n for n in range(net.degree + 1) if n % 2]
        words = [(net.scale * net.dictionary[:, j], n) for n in odds for j in range(net.dictionary.shape[1])]
        score = [[sum(c * (p @ word) ** n for c, (word, n) in zip(v, words, strict=True)) for p in points]
                 for v, points in zip(theta, x, strict=True)]  # fmt: skip
        return torch.stack([torch.stack(row) for row in score])
    phi = Symmetric(net.w, net.b, net.sigma).features
    return torch.stack([phi(points).flatten(1) @ v for v, points in zip(theta, x, strict=True)])


def problem(net: Family, s: int = 2, n: int = 9) -> tuple[Tensor, Tensor, Tensor]:
    p = net.initial([rng(0, "init")]).shape[1]
    return normal(0, s, p), normal(1, s, n, net.d), normal(2, s, n).sign()


# Scores and gradients


@pytest.mark.parametrize("net", ALL, ids=called)
def test_scores_are_the_formulas(net: Family) -> None:
    theta, x, _ = problem(net)
    torch.testing.assert_close(net(theta, x), obvious(net, theta, x), rtol=1e-10, atol=1e-12)


def test_ntk_is_the_expectation_over_the_noise_with_a_plus_sign() -> None:
    net, draws = ntk(), 200_000
    theta, x, _ = problem(net, s=1, n=3)
    a, rho = x[0] @ net.w.T, net.sigma * normal(5, draws, 1, 7)
    on = ((a + rho >= net.b).double() + (-a + rho >= net.b).double()).mean(0)  # (n, m)
    assert (on - net.slopes(x)[1][0]).abs().max() < 6 * np.sqrt(0.5 / draws)  # the variance of a sum of two bits ≤ ½
    expected = torch.einsum("nd,md,nm->n", x[0], net.weights(theta)[0], on)
    torch.testing.assert_close(net(theta, x)[0], expected, rtol=0, atol=0.1)


@pytest.mark.parametrize("net", ALL, ids=called)
def test_scores_are_odd(net: Family) -> None:
    theta, x, _ = problem(net)
    assert net(theta, x).std() > 0.1
    torch.testing.assert_close(net(theta, -x), -net(theta, x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("net", ALL, ids=called)
def test_gradient_by_the_weights_is_autograds_through_the_formula(net: Family, loss: str) -> None:
    theta, x, y = problem(net)
    theta *= 2 / obvious(net, theta, x).abs().max()  # scores of the order of 1, for the exponential loss
    grad = torch.full_like(theta, torch.nan)
    values = net.gradient(theta, grad, LOSSES[loss])(x, y, ())
    leaf = theta.clone().requires_grad_()
    q = y * obvious(net, leaf, x)
    losses = {"logistic": softplus(-q), "hinge": (1 - q).clamp(min=0), "exponential": (-q).exp()}[loss].mean(1)
    losses.sum().backward()
    torch.testing.assert_close(values, losses.detach(), rtol=1e-10, atol=1e-12)
    assert leaf.grad.abs().max() > 1e-3
    torch.testing.assert_close(grad, leaf.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("net", ALL, ids=called)
def test_gradients_of_the_scores_are_autograds_through_the_formula(net: Family) -> None:
    theta, x, y = problem(net)
    found, expected = ([leaf.clone().requires_grad_() for leaf in (theta, x)] for _ in range(2))
    (y * net(*found)).sum().backward()
    (y * obvious(net, *expected)).sum().backward()
    for ours, autograds in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.grad, autograds.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("net", ALL, ids=called)
def test_gradient_is_at_the_weights_as_they_now_are(net: Family) -> None:
    theta, x, y = problem(net)
    weights, grad, expected = torch.zeros_like(theta), torch.zeros_like(theta), torch.zeros_like(theta)
    gradient = net.gradient(weights, grad, LOSSES["logistic"])
    weights.copy_(theta)
    gradient(x, y, ())
    net.gradient(theta, expected, LOSSES["logistic"])(x, y, ())
    assert torch.equal(grad, expected)


@pytest.mark.parametrize("net", ALL, ids=called)
def test_initial_weights_are_zero(net: Family) -> None:
    theta = net.initial([rng(0, "init")] * 3)
    assert theta.shape[0] == 3
    assert not theta.any()


def test_ntk_without_bias_is_linear_with_the_sum_of_the_weights() -> None:
    net = ntk(0.0)
    theta, x, _ = problem(net)
    torch.testing.assert_close(net(theta, x), Linear(5)(net.weights(theta).sum(1), x))


# Training


def separable(n: int = 400, d: int = 6) -> tuple[Tensor, Tensor]:
    x = normal(3, 1, n, d).float()
    return x, (x @ normal(4, d).float()).sign()


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_linear_finds_the_direction_of_logistic_regression(optimiser: str) -> None:
    x, y = separable()
    member = Member(0, lr={"sgd": 0.5, "adam": 0.05}[optimiser], weight_decay=0.01)
    v = train(Linear(6), [member], x, y, SgdPlan(100, batch=100, optimiser=optimiser)).theta[0]
    # scikit-learn's is the sum of the losses, times C, + ½ ‖v‖²
    reference = LogisticRegression(C=1 / (0.01 * 400), fit_intercept=False).fit(x[0].numpy(), y[0].numpy()).coef_[0]
    cosine = v.numpy() @ reference / np.linalg.norm(v) / np.linalg.norm(reference)
    assert cosine > 0.999
    assert float(v.norm()) == pytest.approx(np.linalg.norm(reference), rel=0.02)


def test_ntk_learns_what_a_linear_model_cannot() -> None:
    x = normal(3, 1, 500, 3).float()
    y = x.prod(2).sign()  # odd, and uncorrelated with every linear function
    net = Ntk(normal(9, 100, 3).float(), 0.7, 0.3)
    accuracy = {
        family: float((family(train(family, [Member(0, lr=lr)], x, y, plan).theta, x) * y > 0).float().mean())
        for family, lr, plan in ((Linear(3), 0.5, SgdPlan(20)), (net, 0.02, SgdPlan(150, optimiser="adam")))
    }
    assert accuracy[Linear(3)] < 0.65
    assert accuracy[net] > 0.9


# Attacks


@pytest.mark.parametrize(("norm", "dual"), [("l2", 2), ("linf", 1)])
def test_worst_case_of_a_linear_model_is_closed_form(norm: str, dual: int) -> None:
    net, tau = Linear(5), 0.4
    theta, x, y = (each[0] for each in problem(net, s=1, n=30))
    expected = y * (x @ theta) - tau * theta.norm(p=dual)
    deltas = (
        fgm(theta.expand_as(x), y, norm, tau),
        *(pgd(lambda z: net(theta[None], z[None])[0], x, y, norm, tau, steps) for steps in (5, 40)),
    )
    for delta in deltas:
        torch.testing.assert_close(y * net(theta[None], (x + delta)[None])[0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_more_steps_lower_the_margins_of_an_ntk(norm: str) -> None:
    net = ntk()
    theta, x, y = (each[0] for each in problem(net, s=1, n=50))

    def after(steps: int) -> Tensor:
        delta = pgd(lambda z: net(theta[None], z[None])[0], x, y, norm, 0.3, steps)
        return y * net(theta[None], (x + delta)[None])[0]

    assert (y * net(theta[None], x[None])[0]).mean() > after(1).mean() > after(40).mean()
