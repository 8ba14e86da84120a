"""Training samples from weights: the equations against autograd, networks whose samples are known, controls."""

from __future__ import annotations

import math

import pytest
import torch

from brittle.attacks.reconstruct import Search, differences, from_kkt, nearest, unexplained
from brittle.core.rng import rng
from brittle.nets.two_layer import TwoLayer, initial
from brittle.train.spaces import joined
from brittle.worlds import sphere

HOW = Search(candidates=2, steps=400, lr=0.1, sharpness=(10.0, 100.0))


def opposite(d: int = 12, r: float = 3.0, neurons: int = 4) -> tuple[TwoLayer, torch.Tensor]:
    """A KKT point in closed form: samples ±r u with labels ±1, and each neuron on for its own sample alone.

    w̃_j = v_j λ y x̃ needs λ ‖x̃‖ = 1, so that v_j = λ y w̃_j·x̃; a neuron with y v_j > 0 is off at the other sample, as
    x·x' + 1 = 1 - r² < 0.
    """
    u = torch.nn.functional.normalize(torch.randn(d, generator=torch.Generator().manual_seed(4)), dim=0)
    x, y = torch.stack([r * u, -r * u]), torch.tensor([1.0, -1.0])
    points = torch.cat([x, torch.ones(2, 1)], 1)
    v = torch.linspace(0.5, 1.5, neurons).repeat(2) * y.repeat_interleave(neurons)
    w = (v * y.repeat_interleave(neurons))[:, None] * (points / points.norm(dim=1, keepdim=True)).repeat_interleave(
        neurons, 0
    )
    return TwoLayer(w[None, :, :-1].contiguous(), w[None, :, -1].contiguous(), v[None]), x


def test_true_samples_explain_a_kkt_point_and_others_do_not() -> None:
    net, x = opposite()
    w, v, sharp = joined(net), net.v, torch.full((1, 1, 8), 1e4)
    c = torch.tensor([[1.0, -1.0]]) / math.sqrt(10.0)  # λ = 1/‖x̃‖
    size = float((w * w).sum() + (v * v).sum())
    assert float(unexplained(w, v, x[None], c, sharp)) == pytest.approx(0, abs=1e-9 * size)
    assert float(unexplained(w, v, x[None].flip(1), c, sharp)) > 0.5 * size


def test_what_is_unexplained_is_the_kkt_residual() -> None:
    """θ - Σ c_i ∇N(x_i), with the gradients by autograd."""
    net = initial(5, 7, 1.0, [rng(0, "test")])
    x, c = torch.randn(1, 4, 5, generator=torch.Generator().manual_seed(0)), torch.tensor([[0.3, -0.2, 0.5, -0.9]])
    parts = [part.clone().requires_grad_() for part in (net.w, net.b, net.v)]
    gradients = torch.autograd.grad((c * TwoLayer(*parts)(x)).sum(), parts)
    expected = sum(float((part - g).detach().square().sum()) for part, g in zip(parts, gradients, strict=True))
    found = unexplained(joined(net), net.v, x, c, torch.full((1, 1, 7), 1e6))
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_the_samples_of_a_kkt_point_are_found_whatever_its_scale() -> None:
    net, x = opposite()
    for scale in (1.0, 100.0):
        larger = TwoLayer(scale * net.w, scale * net.b, scale * net.v)
        found = from_kkt(larger, HOW, [rng(1, "test")])
        assert float(nearest(found.x[0], x).min()) > 0.99
        assert float(found.residual) < 1e-3


def test_an_untrained_network_gives_no_sample_away() -> None:
    net = initial(20, 100, 0.01, [rng(0, "test")])
    x = torch.from_numpy(sphere.points(20, 10, rng(1, "test"))).float()
    found = from_kkt(net, Search(20, 100, 0.1, (10.0, 100.0)), [rng(2, "test")])
    assert float(nearest(found.x[0], x).max()) < 0.9
    assert float(nearest(differences(net), x).max()) < 0.9


def test_neurons_that_differ_in_one_sample_give_it_away() -> None:
    """w̃_j/v_j = Σ λ_i s_ij y_i x̃_i: for every sample two neurons that see the same samples but this one."""
    g = torch.Generator().manual_seed(5)
    x, y = torch.randn(6, 30, generator=g), torch.tensor([1.0, -1.0] * 3)
    seen = (torch.rand(6, 6, generator=g) < 0.5).float()  # what neuron i sees; its twin sees all that but sample i
    twins = seen.clone().fill_diagonal_(0.0)
    pulls = torch.cat([seen.fill_diagonal_(1.0), twins]) * y * torch.linspace(0.5, 2.0, 6)
    v = torch.randn(12, generator=g)
    rows = v[:, None] * (pulls @ torch.cat([x, torch.ones(6, 1)], 1))
    net = TwoLayer(rows[None, :, :-1].contiguous(), rows[None, :, -1].contiguous(), v[None])
    found = differences(net)
    assert found.shape == (66, 30)
    assert float(nearest(found, x).min()) > 0.999
    assert float(nearest(found, torch.randn(6, 30, generator=g)).max()) < 0.9
