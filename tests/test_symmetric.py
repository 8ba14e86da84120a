"""The symmetric network of FP §4: the smoothed ReLU by quadrature, every gradient by autograd through obvious code."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import kstest, norm
from torch import Tensor

from brittle.core.rng import rng
from brittle.nets import symmetric
from brittle.nets.symmetric import Look, Symmetric, odd, pure, random, smoothed_relu
from brittle.nets.two_layer import TwoLayer
from brittle.worlds.sparse_coding import labelling, orthogonal

ALARM = 1e-7  # how likely a statistical test here is to fail for nothing, had its seed not been fixed
SIX = 6.0  # standard errors; beyond them lies 2e-9 of a Gaussian
M, N, D = 12, 9, 6
CUT = 3e-7  # Φ(-5), which a neuron that is off is still on
CASES = [(0.8, 0.0), (0.8, 0.1), (0.9, 0.05), (0.3, 0.2), (0.0, 0.0), (0.0, 0.3)]  # b, σ: some off, off, off, all on …
PATHS = pytest.mark.parametrize("sparse", [0.0, 1.0], ids=["dense", "sparse"])


def numbers(purpose: str, *shape: int) -> Tensor:
    return torch.from_numpy(rng(0, purpose).standard_normal(shape))


def network(b: float, sigma: float) -> Symmetric:
    return Symmetric(0.4 * numbers("w", M, D), b, sigma)


def smooth(u: Tensor, sigma: float) -> Tensor:
    """E ReLU(u + ρ), for autograd to differentiate."""
    if sigma == 0:
        return u.clamp(min=0)
    t = u / sigma
    return u * torch.special.ndtr(t) + sigma * torch.distributions.Normal(0.0, 1.0).log_prob(t).exp()


def obvious(w: Tensor, x: Tensor, b: float, sigma: float) -> Tensor:
    """f(x_i), neuron by neuron as FP §4 writes it."""  # (m, d), (n, d) -> (n,)
    return sum(smooth(x @ row - b, sigma) - smooth(-(x @ row) - b, sigma) for row in w)


def tolerance(b: float, sigma: float) -> float:
    """The slopes of M neurons are wrong by what is cut off, where something is."""
    return M * CUT if b > symmetric.REACH * sigma > 0 else 1e-12


@pytest.fixture
def path(sparse: float, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Makes every product a sparse one, or none."""
    monkeypatch.setattr(symmetric, "SPARSE", sparse)
    return sparse > 0


# The smoothed ReLU


@pytest.mark.parametrize("sigma", [0.05, 0.4, 2.0])
def test_smoothed_relu_is_the_mean_over_the_noise(sigma: float) -> None:
    us = np.linspace(-4, 4, 17) * max(sigma, 0.3)
    value, slope = smoothed_relu(torch.from_numpy(us), sigma)
    for u, r, share in zip(us, value.tolist(), slope.tolist(), strict=True):
        low, high = max(-u, -12 * sigma), 12 * sigma  # where u + ρ > 0
        mean = (
            quad(lambda rho, u=u: (u + rho) * norm.pdf(rho, scale=sigma), low, high, epsabs=1e-12)[0]
            if low < high
            else 0
        )
        positive = quad(lambda rho: norm.pdf(rho, scale=sigma), low, high, epsabs=1e-12)[0] if low < high else 0
        assert r == pytest.approx(mean, abs=1e-10)
        assert share == pytest.approx(positive, abs=1e-10)


@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.4, 2.0])
def test_slopes_are_derivatives(sigma: float) -> None:
    u = (numbers("u", 200) * (1 + sigma)).requires_grad_()
    (expected,) = torch.autograd.grad(smooth(u, sigma).sum(), u)
    value, slope = (each.detach() for each in smoothed_relu(u.detach(), sigma))
    torch.testing.assert_close(value, smooth(u, sigma).detach(), rtol=0, atol=1e-14)
    torch.testing.assert_close(slope, expected, rtol=0, atol=1e-12)
    b = 0.7
    (expected,) = torch.autograd.grad((smooth(u - b, sigma) - smooth(-u - b, sigma)).sum(), u)
    torch.testing.assert_close(odd(u.detach(), b, sigma)[1], expected, rtol=0, atol=1e-12)


def test_without_noise_it_is_the_relu() -> None:
    value, slope = smoothed_relu(torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0]), 0.0)
    assert value.tolist() == [0, 0, 0, 0.5, 2]
    assert slope.tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(("b", "sigma"), CASES)
def test_a_neuron_is_odd_and_its_slope_even(b: float, sigma: float) -> None:
    a = numbers("a", 100)
    (value, slope), (mirrored, same) = odd(a, b, sigma), odd(-a, b, sigma)
    torch.testing.assert_close(mirrored, -value, rtol=0, atol=1e-15)
    torch.testing.assert_close(same, slope, rtol=0, atol=1e-15)
    assert value.abs().max() > 0.5
    assert (slope >= 0).all()


# Scores and gradients


@PATHS
@pytest.mark.parametrize(("b", "sigma"), CASES)
def test_scores_and_gradients_are_those_of_autograd(b: float, sigma: float, path: bool) -> None:
    net, c = network(b, sigma), numbers("c", N)
    w, x = net.w.clone().requires_grad_(), (2 * numbers("x", N, D)).requires_grad_()
    f = obvious(w, x, b, sigma)
    by_weights, _ = torch.autograd.grad((c * f).sum(), (w, x), retain_graph=True)
    (by_input,) = torch.autograd.grad(f.sum(), x)
    look, atol = net.look(x.detach()), tolerance(b, sigma)
    assert look.sparse == (path and b > symmetric.REACH * sigma)
    torch.testing.assert_close(look.scores, f.detach(), rtol=0, atol=atol)
    torch.testing.assert_close(look.input_gradient(), by_input, rtol=0, atol=atol)
    torch.testing.assert_close(look.weight_gradient(c, x.detach()), by_weights, rtol=0, atol=4 * atol)
    torch.testing.assert_close(net.input_gradient(x.detach()), by_input, rtol=0, atol=atol)


@PATHS
@pytest.mark.parametrize(("b", "sigma"), CASES)
def test_a_network_is_differentiated_by_its_inputs_as_autograd_does(b: float, sigma: float, path: bool) -> None:
    net, c, x = network(b, sigma), numbers("c", N), (2 * numbers("x", N, D)).requires_grad_()
    (expected,) = torch.autograd.grad((c * obvious(net.w, x, b, sigma).tanh()).sum(), x)
    f = net(x)
    (found,) = torch.autograd.grad((c * f.tanh()).sum(), x)
    torch.testing.assert_close(f.detach(), obvious(net.w, x, b, sigma).detach(), rtol=0, atol=tolerance(b, sigma))
    torch.testing.assert_close(found, expected, rtol=0, atol=4 * tolerance(b, sigma))


@PATHS
def test_single_precision_is_enough(path: bool) -> None:
    net, x, c = network(0.8, 0.1), 2 * numbers("x", N, D), numbers("c", N)
    exact, look = net.look(x), net.to(torch.float32).look(x.float())
    assert look.sparse == path
    assert look.scores.dtype == look.input_gradient().dtype == torch.float32
    torch.testing.assert_close(look.scores.double(), exact.scores, rtol=0, atol=1e-5)
    torch.testing.assert_close(look.input_gradient().double(), exact.input_gradient(), rtol=0, atol=1e-5)
    single, double = look.weight_gradient(c.float(), x.float()), exact.weight_gradient(c, x)
    torch.testing.assert_close(single.double(), double, rtol=0, atol=1e-4)


@PATHS
def test_neurons_that_are_off_everywhere_have_no_gradient(path: bool) -> None:
    net, x, c = network(0.8, 0.1), 2 * numbers("x", N, D), numbers("c", N)
    some = Symmetric(net.w * (torch.arange(M) % 3 > 0)[:, None], 0.8, 0.1)
    assert (some.look(x).weight_gradient(c, x)[::3] == 0).all()
    assert (some.look(x).weight_gradient(c, x)[1::3] != 0).any()
    look = Symmetric(1e-3 * net.w, 0.8, 0.1).look(x)
    assert look.sparse == path
    assert not look.scores.any()
    assert not look.input_gradient().any()
    assert look.input_gradient().shape == (N, D)
    assert look.weight_gradient(c, x).shape == (M, D)
    assert not look.weight_gradient(c, x).any()


@PATHS
@pytest.mark.parametrize(("b", "sigma"), CASES)
def test_the_network_is_odd(b: float, sigma: float, path: bool) -> None:
    net, x = network(b, sigma), 2 * numbers("x", N, D)
    torch.testing.assert_close(net(-x), -net(x), rtol=0, atol=1e-12)
    torch.testing.assert_close(net.input_gradient(-x), net.input_gradient(x), rtol=0, atol=1e-12)


def test_few_active_neurons_make_products_sparse_by_themselves() -> None:
    x = 2 * numbers("x", N, D)
    few, many = network(5.0, 0.1).look(x), network(0.5, 0.05).look(x)
    assert few.sparse
    assert 0 < ((network(5.0, 0.1).w @ x.T).abs() > 4.5).double().mean() < 0.1
    assert few.scores.any()
    assert not many.sparse


@pytest.mark.parametrize("b", [0.0, 0.8])
def test_without_noise_it_is_the_two_layer_network_of_twice_the_width(b: float) -> None:
    net, x = network(b, 0.0), (2 * numbers("x", N, D)).requires_grad_()
    ones = torch.ones(1, M, dtype=torch.float64)
    twin = TwoLayer(
        w=torch.cat([net.w, -net.w])[None], b=torch.cat([-b * ones, -b * ones], 1), v=torch.cat([ones, -ones], 1)
    )
    f = twin(x[None])[0]
    torch.testing.assert_close(net(x).detach(), f.detach(), rtol=0, atol=1e-12)
    (gradient,) = torch.autograd.grad(f.sum(), x)
    torch.testing.assert_close(net.input_gradient(x.detach()), gradient, rtol=0, atol=1e-12)


def test_scores_that_nobody_holds_are_freed_at_once() -> None:
    net, x = network(0.8, 0.1), (2 * numbers("x", N, D)).requires_grad_()
    gc.collect()
    gc.disable()
    try:
        f = net(x)
        torch.autograd.grad(f.sum(), x)
        del f
        assert not any(type(each) is Look for each in gc.get_objects())
    finally:
        gc.enable()
        gc.collect()


# The tangent kernel's features


@pytest.mark.parametrize(("b", "sigma"), CASES)
def test_features_are_the_jacobian_by_the_weights(b: float, sigma: float) -> None:
    net, x = network(b, sigma), 2 * numbers("x", N, D)
    expected = torch.autograd.functional.jacobian(lambda w: obvious(w, x, b, sigma), net.w)
    found = net.features(x)
    assert found.shape == (N, M, D)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("b", "sigma"), CASES)
def test_a_function_of_the_tangent_kernel_is_odd_as_the_minus_of_definition_5_5_would_not_let_it_be(
    b: float, sigma: float
) -> None:
    net, x, v = network(b, sigma), 2 * numbers("x", N, D), numbers("v", M, D)
    p, mirrored = ((net.features(each) * v).sum((1, 2)) for each in (x, -x))
    torch.testing.assert_close(mirrored, -p, rtol=0, atol=1e-12)
    assert p.abs().min() > 1e-3


# Where weights begin


def test_random_weights_are_gaussian() -> None:
    w = random(300, 40, 0.02, rng(0, "w"))
    assert (w.shape, w.dtype) == ((300, 40), torch.float32)
    assert kstest(w.flatten().double() / 0.02, "norm").pvalue > ALARM
    assert abs(w.double().std() / 0.02 - 1) < SIX / math.sqrt(2 * w.numel())
    assert np.abs(np.corrcoef(w.T.numpy()) - np.eye(40)).max() < SIX / math.sqrt(300)
    assert torch.equal(w, random(300, 40, 0.02, rng(0, "w")))


@pytest.mark.parametrize(("words", "m"), [(10, 25), (10, 10), (10, 4), (30, 60)])
def test_pure_weights_are_the_words_in_turn_of_the_sign_of_w_star(words: int, m: int) -> None:
    d, size = 30, 0.7
    dictionary, w_star = orthogonal(d, words, rng(0, "M")), labelling(words, 0.3, rng(0, "w*"))
    assert len(set(np.sign(w_star))) == 2
    w = pure(dictionary, w_star, m, size, 0.0, rng(0, "w")).numpy()
    assert (w.shape, w.dtype) == ((m, d), np.float32)
    coefficients = w @ dictionary
    expected = np.zeros((m, words))
    for i in range(m):
        expected[i, i % words] = size if w_star[i % words] > 0 else -size
    np.testing.assert_allclose(coefficients, expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), size, atol=1e-6)  # nothing else


def test_pure_weights_may_be_noisy() -> None:
    dictionary, w_star = orthogonal(40, 40, rng(0, "M")), labelling(40, 0.3, rng(0, "w*"))
    clean, noisy = (pure(dictionary, w_star, 400, 0.7, noise, rng(0, "w")) for noise in (0.0, 0.05))
    assert kstest((noisy - clean).flatten().double() / 0.05, "norm").pvalue > ALARM
    assert abs((noisy - clean).double().std() / 0.05 - 1) < SIX / math.sqrt(2 * clean.numel())
