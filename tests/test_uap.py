"""Universal and minimal perturbations of any network: closed forms, brute force and another library."""

from __future__ import annotations

import math
from collections.abc import Callable

import foolbox
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from brittle.attacks import uap
from brittle.attacks.minimum_norm_pgd import Minimal, minimal
from brittle.attacks.pgd import pgd
from brittle.attacks.uap import accuracy, by_ascent, by_svd, cosines, share, transfer
from brittle.worlds import slabs

seeds = st.integers(0, 2**31)
norms = st.sampled_from(["l2", "linf"])
ORDERS = {"l2": 2, "linf": math.inf}
DUAL = {"l2": 2, "linf": 1}


def linear(seed: int, n: int = 30, d: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    """Samples, the labels of a linear network, and its weights."""
    g = torch.Generator().manual_seed(seed)
    x, w = torch.randn(n, d, generator=g, dtype=torch.float64), torch.randn(d, generator=g, dtype=torch.float64)
    return x, (x @ w).sign(), w


def smooth(seed: int, d: int, width: int = 20) -> Callable[[Tensor], Tensor]:
    """A random network of tanh neurons."""
    g = torch.Generator().manual_seed(seed)
    w, b, v = (torch.randn(width, k, generator=g, dtype=torch.float64) for k in (d, 1, 1))
    return lambda p: torch.tanh(p @ w.T + b[:, 0]) @ v[:, 0] / width**0.5


def ascent(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, norm: str = "l2", **options: float) -> Tensor:
    defaults = {"eps": 1.0, "step": 0.05, "steps_per_batch": 30, "epochs": 2, "batch": 10}
    return by_ascent(f, x, y, norm, **(defaults | options), rng=np.random.default_rng(0))


@settings(max_examples=10, deadline=None)
@given(seed=seeds, norm=norms, eps=st.floats(0.1, 1.0))
def test_the_universal_perturbation_of_a_linear_network_is_its_steepest_direction(
    seed: int, norm: str, eps: float
) -> None:
    x, y, w = linear(seed)
    delta = ascent(lambda p: p @ w, x, y, norm, eps=eps)
    np.testing.assert_allclose(delta, eps * (w / w.norm() if norm == "l2" else w.sign()), atol=1e-9)
    y_f = y * ((x - y[:, None] * delta) @ w)
    np.testing.assert_allclose(y_f, y * (x @ w) - eps * torch.linalg.vector_norm(w, DUAL[norm]))


@pytest.mark.parametrize("seed", range(4))
def test_the_ascent_comes_near_the_best_of_all_perturbations_in_the_plane(seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    f, x = smooth(seed, 2, 6), torch.randn(40, 2, generator=g, dtype=torch.float64)
    y = f(x).sign()
    delta = ascent(f, x, y, step=0.02, batch=40)
    assert float(delta.norm()) <= 1 + 1e-12
    angles = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    circle = torch.from_numpy(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    tried = [(y * f(x - y[:, None] * radius * u)).mean() for radius in np.linspace(0, 1, 11) for u in circle]
    ours, best, start = (y * f(x - y[:, None] * delta)).mean(), min(tried), (y * f(x)).mean()
    assert float(start - ours) >= 0.95 * float(start - best) > 0


def test_the_ascent_does_not_stall_on_a_network_that_is_sure_of_everything() -> None:
    """Scores of thousands, for which the logistic loss has no gradient left in float32."""
    x, y, w = (t.float() for t in linear(1))
    delta = ascent(lambda p: 1e4 * p @ w, x + 3 * y[:, None] * w / w.norm(), y)
    np.testing.assert_allclose(delta, w / w.norm(), atol=1e-4)


def test_every_batch_takes_its_steps() -> None:
    """No ball in the way: 3 epochs × 4 batches × 5 steps of 0.01 along one direction."""
    x, y, w = linear(2, n=10)
    seen: list[int] = []

    def f(points: Tensor) -> Tensor:
        seen.append(len(points))
        return points @ w

    delta = ascent(f, x, y, eps=100.0, step=0.01, steps_per_batch=5, epochs=3, batch=3)
    assert float(delta.norm()) == pytest.approx(0.6)
    assert seen == [n for _ in range(3) for n in (3, 3, 3, 1) for _ in range(5)]


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_the_singular_vector_is_the_direction_that_per_sample_attacks_share(seed: int) -> None:
    x, y, w = linear(seed)
    found = by_svd(pgd(lambda p: p @ w, x, y, "l2", 0.3, steps=5), y)
    np.testing.assert_allclose(found, w / w.norm(), atol=1e-9)
    g = torch.Generator().manual_seed(seed)
    deltas = torch.randn(30, 5, generator=g, dtype=torch.float64)
    ours, (values, vectors) = by_svd(deltas, y).numpy(), np.linalg.eigh((deltas.T @ deltas).numpy())
    assert np.linalg.norm(deltas.numpy() @ ours) ** 2 == pytest.approx(values[-1])
    np.testing.assert_allclose(ours * np.sign(ours @ vectors[:, -1]), vectors[:, -1], atol=1e-6)
    assert sum(-float(s) * d @ ours for s, d in zip(y, deltas.numpy(), strict=True)) >= 0
    np.testing.assert_allclose(by_svd(deltas, -y), -ours)


def test_the_share_is_that_of_the_squared_norm_in_the_rotated_features() -> None:
    q = torch.from_numpy(slabs.rotation(6, np.random.default_rng(0))).double()
    delta = 3 * q[0] + 4 * q[4]
    assert share(delta, q[:1]) == pytest.approx(9 / 25)
    assert share(delta, q[[1, 4]]) == pytest.approx(16 / 25)
    assert share(delta, q) == pytest.approx(1)
    assert share(ascent(lambda p: p @ q[0], q, torch.ones(6).double()), q[:1]) == pytest.approx(1)


def test_accuracy_counts_the_samples_that_stay_right_in_parts_or_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """y w·x must exceed w·δ."""
    x, y, w = linear(3)
    y[:4] *= -1
    for size in (0.0, 0.3, 1.0):
        right = sum(float(y[i] * (x[i] @ w)) > size * float(w.norm()) for i in range(30))
        assert accuracy(lambda p: p @ w, x, y, size * w / w.norm()) == right / 30
        with monkeypatch.context() as patch:
            patch.setattr(uap, "ROWS", 7)
            assert accuracy(lambda p: p @ w, x, y, size * w / w.norm()) == right / 30
    assert accuracy(lambda p: 0 * p[:, 0], x, y, w) == 0  # no score is no label


def test_transfer_has_perturbations_as_rows_and_networks_as_columns() -> None:
    """Networks of one coordinate each: a perturbation along its own is fatal, along another's harmless."""
    signs = torch.tensor([[1.0, 1, 1], [-1, -1, -1]], dtype=torch.float64)
    y, eye = signs[:, 0], 2 * torch.eye(3, dtype=torch.float64)
    fs = [lambda p, i=i: p[:, i] for i in range(2)]
    np.testing.assert_array_equal(transfer(fs, list(eye), signs, y), [[0, 1], [1, 0], [1, 1]])


def test_cosines_are_of_every_pair() -> None:
    found = cosines([torch.tensor([2.0, 0]), torch.tensor([0.0, -1]), torch.tensor([-3.0, 3])])
    half = 0.5**0.5
    np.testing.assert_allclose(found, [[1, 0, -half], [0, 1, -half], [-half, -half, 1]], atol=1e-6)


def check(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, norm: str, found: Minimal) -> None:
    """What is said to flip does, and is as large as is said."""
    hit = found.size.isfinite()
    assert bool((y * f(x + found.delta) <= 0)[hit].all())
    sizes = torch.linalg.vector_norm(found.delta, ORDERS[norm], dim=1)
    np.testing.assert_allclose(sizes, torch.where(hit, found.size, 0.0), rtol=1e-12)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, norm=norms)
def test_the_minimal_perturbation_of_a_linear_network_is_its_distance(seed: int, norm: str) -> None:
    """|f| / ‖w‖*, ∞ beyond what is searched, 0 where the label is wrong already."""
    x, y, w = linear(seed)
    y[:5] *= -1
    distance = (x @ w).abs() / torch.linalg.vector_norm(w, DUAL[norm])
    high = float(distance[5:].median())
    found = minimal(lambda p: p @ w, x, y, norm, high * (1 + 1e-9), steps=10, halvings=6)
    check(lambda p: p @ w, x, y, norm, found)
    expected = torch.where(distance <= high * (1 + 1e-9), distance, torch.inf)
    expected[:5] = 0
    np.testing.assert_allclose(found.size, expected, rtol=0, atol=2e-6 * high)
    assert bool(expected.isinf().any())


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_minimal_perturbation_out_of_a_ball_is_the_distance_to_its_surface(norm: str) -> None:
    """f = 1 - ‖p‖: l2 takes 1 - ‖x‖; l∞ the root ε of ‖|x| + ε‖ = 1. And a way back is as long as the way out."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(20, 3, generator=g, dtype=torch.float64)
    x = x / x.norm(dim=1, keepdim=True) * torch.linspace(0.3, 1.7, 20, dtype=torch.float64)[:, None]
    x, norms = x[(x.norm(dim=1) - 1).abs() > 0.05], x.norm(dim=1)[(x.norm(dim=1) - 1).abs() > 0.05]
    if norm == "linf":
        x, norms = x[norms < 1], norms[norms < 1]
        total = x.abs().sum(1)  # 3ε² + 2ε Σ|x| + ‖x‖² = 1
        expected = (-total + (total**2 - 3 * (norms**2 - 1)).sqrt()) / 3
    else:
        expected = (norms - 1).abs()

    def f(points: Tensor) -> Tensor:
        return 1 - points.norm(dim=1)

    y = f(x).sign()
    found = minimal(f, x, y, norm, 2.0, steps=20, halvings=12)
    check(f, x, y, norm, found)
    np.testing.assert_allclose(found.size, expected, rtol=1e-3)
    assert bool((found.size >= expected * (1 - 1e-9)).all())


def test_a_sample_that_is_wrong_already_is_left_where_it_is() -> None:
    x, y, w = linear(0)
    found = minimal(lambda p: p @ w, x, -y, "l2", 1.0, steps=3, halvings=0)
    assert not bool(found.size.any() or found.delta.any())


def test_a_thin_slab_is_found_though_the_longest_steps_jump_across_it() -> None:
    """Label -1 only for 0.9 < p < 1.1, from p = 0: a ball of 40 has steps of 10."""
    x, y = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    found = minimal(lambda p: (p[:, 0] - 1).abs() - 0.1, x, y, "l2", 40.0, steps=10, halvings=10)
    assert float(found.size) == pytest.approx(0.9, rel=1e-4)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_minimal_perturbations_are_hardly_ever_larger_than_foolbox_finds(norm: str) -> None:
    attacks = foolbox.attacks
    attack = attacks.DDNAttack(steps=100) if norm == "l2" else attacks.LInfFMNAttack(steps=100)
    ratios = []
    for seed in range(3):
        f, g = smooth(seed, 4), torch.Generator().manual_seed(seed)
        x = torch.randn(40, 4, generator=g, dtype=torch.float64)
        y = f(x).sign()

        class Logits(torch.nn.Module):
            def forward(self, points: Tensor, f: Callable[[Tensor], Tensor] = f) -> Tensor:
                return torch.stack([-f(points), f(points)], dim=1)

        model = foolbox.PyTorchModel(Logits().eval(), bounds=(-100, 100), device="cpu")
        _, moved, flipped = attack(model, x, (y > 0).long(), epsilons=None)
        theirs = torch.linalg.vector_norm(moved - x, ORDERS[norm], dim=1)
        found = minimal(f, x, y, norm, 3.0, steps=30, halvings=12)
        check(f, x, y, norm, found)
        ratios.append((found.size / theirs)[flipped & (theirs < 3)])
    ratio = torch.cat(ratios)
    assert len(ratio) > 80
    assert float((ratio <= 1.02).double().mean()) >= (0.97 if norm == "l2" else 0.93)
    assert float(ratio.median()) == pytest.approx(1, abs=2e-3)  # and theirs is no straw man
