"""The exact KKT point on orthogonal samples: VYS Eq. (3) and (4) term by term, c by evaluating the network."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.nets.kkt_point import kkt_point
from brittle.nets.two_layer import TwoLayer
from brittle.probes.margin import probe

sizes = st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), st.integers(2 * n, 60)))


def orthonormal(d: int, n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """2n orthogonal samples of norm √d in a random frame, labels in random order."""
    g = torch.Generator().manual_seed(seed)
    frame, _ = torch.linalg.qr(torch.randn(d, d, generator=g, dtype=torch.float64))
    y = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(n)[torch.randperm(2 * n, generator=g)]
    return d**0.5 * frame[: 2 * n], y


@given(size=sizes, seed=st.integers(0, 10**6))
def test_the_kkt_conditions_hold_term_by_term(size: tuple[int, int], seed: int) -> None:
    """With σ' only from {0, 1} off the kink, one number in [0, 1] at it, and λ > 0: sums by plain loops."""
    n, d = size
    x, y = orthonormal(d, n, seed)
    point = kkt_point(x, y)
    w, b, v = (p[0] for p in (point.net.w, point.net.b, point.net.v))
    assert point.multiplier > 0
    for j in range(2):
        right_w, right_b, right_v = torch.zeros(d, dtype=torch.float64), 0.0, 0.0
        for i in range(2 * n):
            a = float(w[j] @ x[i] + b[j])
            kink = abs(a) < 1e-9 * float(v[j].abs())
            slope = point.kink if kink else float(a > 0)
            assert 0 <= slope <= 1
            assert kink == (float(y[i] * v[j]) < 0)  # exactly the samples of the other label
            right_w += point.multiplier * y[i] * v[j] * slope * x[i]  # Eq. (3)
            right_b += float(point.multiplier * y[i] * v[j] * slope)  # Eq. (4)
            right_v += point.multiplier * float(y[i]) * max(a, 0.0)
        torch.testing.assert_close(w[j], right_w)
        assert float(b[j]) == pytest.approx(right_b)
        assert float(v[j]) == pytest.approx(right_v)
    torch.testing.assert_close(y * point.net(x[None])[0], torch.ones_like(y))  # feasible, and no slack


@given(size=sizes, seed=st.integers(0, 10**6))
def test_theta_is_a_mixture_of_gradients_on_either_side_of_the_kinks(size: tuple[int, int], seed: int) -> None:
    """Clarke's subdifferential by autograd: gradients where the kinks are on and where they are off, mixed by σ'."""
    n, d = size
    x, y = orthonormal(d, n, seed)
    point = kkt_point(x, y)
    parts = [p.clone() for p in (point.net.w, point.net.b, point.net.v)]
    total = [torch.zeros_like(p) for p in parts]
    for nudge, share in ((1e-6, point.kink), (-1e-6, 1 - point.kink)):
        shifted = [parts[0], parts[1] + nudge, parts[2]]
        leaves = [p.clone().requires_grad_() for p in shifted]
        outputs = (y * TwoLayer(*leaves)(x[None])[0]).sum()
        for sum_, gradient in zip(total, torch.autograd.grad(point.multiplier * outputs, leaves), strict=True):
            sum_ += share * gradient
    for ours, gradient in zip(parts, total, strict=True):
        torch.testing.assert_close(ours, gradient, atol=1e-4, rtol=1e-4)  # the nudge moves outputs by 1e-6


@given(size=sizes, seed=st.integers(0, 10**6))
def test_z_flips_all_samples_at_the_root_of_d_over_m(size: tuple[int, int], seed: int) -> None:
    n, d = size
    x, y = orthonormal(d, n, seed)
    net, c = kkt_point(x, y).net, (d / (2 * n)) ** 0.5
    assert probe(net, x, y, 1.1).c == pytest.approx(c)
    z = (y[:, None] * x).sum(0)
    z = z / z.norm()
    for share in (0.0, 0.5, 0.999, 1.001, 1.5):  # on the way there the output falls linearly, on every sample alike
        after = y * net((x - share * c * y[:, None] * z)[None])[0]
        torch.testing.assert_close(after, torch.full_like(y, 1 - share))


def test_the_norm_is_that_of_the_multipliers() -> None:
    """‖θ‖² = 2 Σ λ at any KKT point of margin 1 (Euler)."""
    x, y = orthonormal(20, 5, 0)
    point = kkt_point(x, y)
    squared = sum(float((p * p).sum()) for p in (point.net.w, point.net.b, point.net.v))
    assert squared == pytest.approx(2 * 10 * point.multiplier)
