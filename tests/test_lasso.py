"""The convolutional Lasso (FP §8.3): against scikit-learn, by its optimality conditions, and its certificates."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso
from torch import Tensor
from torch.nn.functional import conv_transpose2d

from brittle.core.rng import rng
from brittle.probes.lasso import Curve, Dictionary, Point, alike, centred, error_at, errors_at, path, solve, unreachable

SHAPES = [(64, 11, 4, 5, 32), (16, 3, 1, 1, 32), (8, 3, 2, 1, 16), (5, 4, 2, 0, 9), (3, 2, 3, 0, 13), (4, 5, 4, 3, 8)]


def numbers(purpose: str, *shape: int) -> Tensor:
    return torch.from_numpy(rng(0, purpose).standard_normal(shape))


def dictionary(m: int, k: int, stride: int, padding: int, size: int) -> Dictionary:
    return Dictionary.unit(numbers("w", m, 3, k, k), stride, padding, size)


def small(m: int = 6) -> Dictionary:
    """More coefficients, 6 · 16, than some 80 pixels that matter, of 3 · 64."""
    return dictionary(m, 4, 2, 1, 8)


def written_out(w: Dictionary) -> Tensor:
    """W as a matrix, from PyTorch's own transposed convolution."""  # (pixels, coefficients)
    count = len(w.weight) * w.side**2
    y = torch.eye(count, dtype=torch.float64).unflatten(1, (len(w.weight), w.side, w.side))
    short = (w.size + 2 * w.padding - w.weight.shape[-1]) % w.stride
    x = conv_transpose2d(y, w.weight.double(), stride=w.stride, padding=w.padding, output_padding=short)
    return x.flatten(1).T


def objective(w: Dictionary, x: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    return (w.synthesise(y) - x).square().sum((1, 2, 3)) + lam * y.abs().sum((1, 2, 3))


# W


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_synthesis_is_the_transposed_convolution_and_the_adjoint_of_analysis(shape: tuple[int, ...]) -> None:
    w = dictionary(*shape)
    y, x = numbers("y", 2, len(w.weight), w.side, w.side), numbers("x", 2, 3, w.size, w.size)
    assert w.analyse(x).shape == y.shape
    short = (w.size + 2 * w.padding - w.weight.shape[-1]) % w.stride
    expected = conv_transpose2d(y, w.weight, stride=w.stride, padding=w.padding, output_padding=short)
    torch.testing.assert_close(w.synthesise(y), expected, rtol=0, atol=1e-11)
    products = (w.synthesise(y) * x).sum(), (y * w.analyse(x)).sum()
    torch.testing.assert_close(*products, rtol=1e-11, atol=1e-11)


def test_the_first_layer_of_alexnet_has_8_by_8_places() -> None:
    w = dictionary(*SHAPES[0])
    assert w.side == 8
    assert w.synthesise(torch.zeros(1, 64, 8, 8, dtype=torch.float64)).shape == (1, 3, 32, 32)


@pytest.mark.parametrize("shape", SHAPES[2:], ids=str)
def test_the_norm_is_the_largest_singular_value(shape: tuple[int, ...]) -> None:
    w = dictionary(*shape)
    largest = float(torch.linalg.matrix_norm(written_out(w), 2))
    assert 0.995 * largest <= w.norm <= largest * (1 + 1e-9)


def test_filters_have_norm_one_whatever_the_layer() -> None:
    weight = numbers("w", 5, 3, 4, 4).requires_grad_()
    a = Dictionary.unit(weight, 2, 1, 8)
    b = Dictionary.unit(weight * torch.tensor([1e-3, 1.0, 5.0, 70.0, 1e4])[:, None, None, None], 2, 1, 8)
    torch.testing.assert_close(a.weight.flatten(1).norm(dim=1), torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close(a.weight, b.weight)
    assert not a.weight.requires_grad


# The minimum


@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_the_minimum_is_that_of_scikit_learn(share: float) -> None:
    w, x = small(), numbers("x", 4, 3, 8, 8)
    lam = share * w.lam_max(x)
    found = solve(w, x, lam, 1e-10, 100_000)
    assert found.converged.all()
    matrix = written_out(w).numpy()
    for i in range(4):
        # scikit-learn minimises ‖x - Wy‖²/(2 · pixels) + α‖y‖₁
        theirs = Lasso(float(lam[i]) / (2 * len(matrix)), fit_intercept=False, tol=1e-12, max_iter=100_000)
        theirs.fit(matrix, x[i].flatten().numpy())
        y = torch.from_numpy(theirs.coef_).view(1, 6, w.side, w.side)
        ours, expected = (objective(w, x[i : i + 1], each, lam[i : i + 1]) for each in (found.y[i : i + 1], y))
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=0)
        torch.testing.assert_close(w.synthesise(found.y[i : i + 1]), w.synthesise(y), rtol=0, atol=1e-4)  # Wy is unique
        if share > 0.01:  # and here y is, too
            assert torch.equal(found.y[i] != 0, y[0].abs() > 1e-9)


@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_the_conditions_for_a_minimum_hold(shape: tuple[int, ...]) -> None:
    """2Wᵀ(x - Wy) = λ sign(y) where y is not 0, and is at most λ where it is."""
    w = dictionary(*shape)
    x = numbers("x", 3, 3, w.size, w.size)
    lam = 0.2 * w.lam_max(x)
    found = solve(w, x, lam, 1e-11, 50_000)
    assert found.converged.all()
    lam = lam[:, None, None, None]
    g = 2 * w.analyse(x - w.synthesise(found.y)) / lam
    clear = found.y.abs() > 1e-4 * found.y.abs().max()
    assert clear.any()
    assert (found.y == 0).any()
    torch.testing.assert_close(g[clear], found.y[clear].sign(), rtol=0, atol=1e-4)
    assert g.abs().max() <= 1 + 1e-4


def test_from_lam_max_on_all_is_zero_and_not_before() -> None:
    w, x = small(), numbers("x", 5, 3, 8, 8)
    for share, zero in ((2.0, True), (1.0, True), (0.99, False)):
        found = solve(w, x, share * w.lam_max(x), 1e-9, 10_000)
        assert found.converged.all()
        assert ((found.y == 0).flatten(1).all(1) == zero).all()
    [point] = path(w, x, [1.0], 1e-9, 10).points
    assert (point.sparsity, point.error, point.steps, point.converged) == (0.0, pytest.approx(1), 0.0, 1.0)
    assert solve(w, 0 * x, w.lam_max(0 * x), 0.0, 10).converged.all()  # nothing to explain


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("most", [0, 1, 3, 10, 50])
def test_the_gap_is_at_least_the_distance_to_the_minimum(most: int, dtype: torch.dtype) -> None:
    w, y = small(), numbers("y", 6, 6, 4, 4)
    x = w.synthesise(y)
    lam = 0.03 * w.lam_max(x)
    least = objective(w, x, solve(w, x, lam, 1e-12, 100_000).y, lam)
    for times in (0, 3):  # from 0, and from where the residual points away from x
        start = (times * y).to(dtype)
        rough = solve(replace(w, weight=w.weight.to(dtype)), x.to(dtype), lam, 0.0, most, start)
        now = objective(w, x, rough.y.double(), lam)
        assert ((now - least) / now <= rough.gap + (1e-5 if dtype == torch.float32 else 1e-9)).all()
        assert (rough.gap < 1).all()
        assert not rough.converged.any()
        assert (rough.steps == most).all()


def test_each_picture_stops_when_it_is_done_and_as_if_it_were_alone() -> None:
    w = small()
    x = torch.cat([numbers("x", 3, 3, 8, 8), w.synthesise(torch.eye(96, dtype=torch.float64)[:2].view(2, 6, 4, 4))])
    lam = 0.05 * w.lam_max(x)
    both = solve(w, x, lam, 1e-3, 10_000)
    assert len(set(both.steps.tolist())) > 2
    for i in range(5):
        alone = solve(w, x[i : i + 1], lam[i : i + 1], 1e-3, 10_000)
        assert alone.steps[0] == both.steps[i]
        torch.testing.assert_close(alone.y[0], both.y[i], rtol=0, atol=1e-9)
    few = int(both.steps.median())
    cut = solve(w, x, lam, 1e-3, few)
    assert torch.equal(cut.converged, both.steps <= few)
    assert torch.equal(cut.converged, cut.gap <= 1e-3)
    assert not cut.converged.all()


def test_a_picture_made_of_three_filters_is_found_again() -> None:
    w = dictionary(*SHAPES[0])
    y = torch.zeros(1, 64, 8, 8, dtype=torch.float64)
    y[0, 3, 2, 2], y[0, 40, 5, 1], y[0, 11, 4, 6] = 1.0, -2.0, 1.5
    x = w.synthesise(y).float()
    w = replace(w, weight=w.weight.float())
    curve = path(w, x, [0.1, 0.01], 1e-3, 1000, keep=0.01)
    assert curve.points[1].sparsity == pytest.approx(3 / 4096)
    assert curve.points[1].error < 1e-3
    found = solve(w, x, 0.01 * w.lam_max(x), 1e-5, 1000).y  # from 0; with less care other filters are not yet back at 0
    assert torch.equal(found != 0, y != 0)
    torch.testing.assert_close(found, y.float(), rtol=0, atol=0.03)
    torch.testing.assert_close(curve.pictures, x, rtol=0, atol=0.02)


# The path


def test_the_path_descends_and_says_what_has_not_converged() -> None:
    w, x = small(), centred(numbers("x", 6, 3, 8, 8))
    curve = path(w, x, [0.01, 1.0, 0.1, 0.3], 1e-4, 20_000, keep=0.1)
    assert [point.lam for point in curve.points] == [1.0, 0.3, 0.1, 0.01]
    assert all(point.converged == 1 and point.gap <= 1e-4 for point in curve.points)
    assert np.all(np.diff([point.sparsity for point in curve.points]) > 0)
    assert np.all(np.diff([point.error for point in curve.points]) < 0)
    y = solve(w, x, 0.1 * w.lam_max(x), 1e-9, 100_000).y
    expected = (w.synthesise(y) - x).square().sum((1, 2, 3)) / x.square().sum((1, 2, 3))
    assert curve.points[2].error == pytest.approx(float(expected.mean()), rel=0.01)
    assert curve.points[2].sparsity == pytest.approx(float((y != 0).double().mean()), rel=0.05)
    torch.testing.assert_close(curve.pictures, w.synthesise(y), rtol=0, atol=0.05)

    rough = path(w, x, [1.0, 0.01], 1e-4, 5)
    assert rough.points[1].converged < 1
    assert rough.points[1].gap > 1e-4
    assert rough.points[1].steps <= 5
    assert rough.pictures is None
    for lams, keep in (([0.1, 0.0], None), ([0.1], 0.2)):
        with pytest.raises(ValueError, match="λ is positive"):
            path(w, x, lams, 1e-4, 5, keep=keep)


def test_the_error_at_a_sparsity_lies_between_its_neighbours() -> None:
    values = [(0.0, 1.0), (0.01, 0.8), (0.1, 0.4), (0.4, 0.1)]
    curve = Curve(tuple(Point(1.0, s, e, 0, 0, 1) for s, e in values), None, torch.zeros(4, 0))
    assert error_at(curve, 0.1) == pytest.approx(0.4)
    assert error_at(curve, math.sqrt(0.001)) == pytest.approx(0.6)
    assert math.isnan(error_at(curve, 0.005))
    assert math.isnan(error_at(curve, 0.5))
    assert math.isnan(error_at(replace(curve, points=curve.points[:1]), 0.1))


def test_the_error_of_each_picture_at_a_sparsity_has_the_mean_of_the_curve() -> None:
    w, x = small(), centred(numbers("x", 6, 3, 8, 8))
    curve = path(w, x, [0.8, 0.3, 0.1], 1e-4, 5000)
    middle = math.sqrt(curve.points[1].sparsity * curve.points[2].sparsity)
    each = errors_at(curve, middle)
    assert each.shape == (6,)
    assert each.mean() == pytest.approx(error_at(curve, middle))
    assert each.std() > 0
    assert np.isnan(errors_at(curve, 1.0)).all()


# What is in reach


@pytest.mark.parametrize(("m", "k", "stride", "size"), [(2, 4, 2, 8), (1, 4, 4, 8), (3, 3, 1, 8)])
def test_what_is_unreachable_is_that_of_least_squares(m: int, k: int, stride: int, size: int) -> None:
    w = Dictionary.unit(numbers("w", m, 3, k, k), stride, 0, size)
    x = torch.cat([numbers("x", 3, 3, size, size), w.synthesise(numbers("y", 2, m, w.side, w.side))])
    matrix, flat = written_out(w).numpy(), x.flatten(1).T.numpy()
    rest = flat - matrix @ np.linalg.lstsq(matrix, flat, rcond=None)[0]
    expected = torch.from_numpy((rest**2).sum(0) / (flat**2).sum(0))
    torch.testing.assert_close(unreachable(w, x), expected, rtol=1e-5, atol=1e-10)
    assert (expected[:3] > 0.1).all()
    assert (unreachable(w, x)[3:] < 1e-10).all()
    assert (unreachable(replace(w, weight=w.weight.float()), x.float())[3:] < 1e-10).all()


def test_enough_filters_reach_everything() -> None:
    w, x = dictionary(60, 4, 4, 0, 8), numbers("x", 2, 3, 8, 8)  # 48 make a basis of each block
    assert (unreachable(w, x) < 1e-10).all()


# What comes before


def test_pictures_are_centred_and_perturbations_made_alike() -> None:
    images = 0.5 + 0.2 * numbers("images", 4, 3, 8, 8)
    images[1] += 0.3
    delta = 0.01 * numbers("delta", 4, 3, 8, 8) * torch.tensor([1.0, 2.0, 3.0, 4.0])[:, None, None, None]
    assert centred(images).mean((2, 3)).abs().max() < 1e-12
    torch.testing.assert_close(centred(images)[0, 1] - images[0, 1], -images[0, 1].mean().expand(8, 8))
    same = alike(delta, images)
    torch.testing.assert_close(same.mean((1, 2, 3)), images.mean((1, 2, 3)))
    torch.testing.assert_close(same.std((1, 2, 3)), images.std((1, 2, 3)))
    pairs = torch.stack([same.flatten(1), delta.flatten(1)], 1)
    assert all(torch.corrcoef(pair)[0, 1] == pytest.approx(1) for pair in pairs)
