"""Muon on mini-batches and on modules: against torch's own, and its singular values in closed form."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from brittle.core.rng import rng
from brittle.nets.family import split
from brittle.nets.fcn import Fcn
from brittle.nets.fixed_output import FixedOutput
from brittle.nets.linear import Linear
from brittle.nets.parse import family
from brittle.nets.power_relu import PowerRelu
from brittle.train.muon import Muon, steepest
from brittle.train.sgd import Step, muon


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5)])
def test_a_step_has_the_singular_vectors_of_the_momentum_and_a_polynomial_of_its_singular_values(
    shape: tuple[int, int],
) -> None:
    m = normal(0, 1, *shape)
    u, s, vt = torch.linalg.svd(m[0], full_matrices=False)
    s = s / s.norm()
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    expected = max(1.0, shape[0] / shape[1]) ** 0.5 * (u * s) @ vt
    torch.testing.assert_close(steepest(m)[0], expected)


def test_filters_are_the_rows_of_one_matrix_and_vectors_are_normalised() -> None:
    filters = normal(1, 2, 4, 3, 5)
    torch.testing.assert_close(steepest(filters).flatten(2), steepest(filters.flatten(2)))
    for vectors in (normal(2, 2, 7), normal(3, 2, 1, 7)):
        expected = torch.stack([each / each.norm() for each in vectors])
        torch.testing.assert_close(steepest(vectors), expected)
    assert torch.equal(steepest(torch.zeros(1, 3, 4)), torch.zeros(1, 3, 4))  # and not a number over nought


def theirs(parameters: list[Tensor], gradients: list[list[Tensor]], lr: float) -> list[Tensor]:
    """Torch's own Muon on matrices; on vectors, normalised momentum by hand."""
    parameters = [p.clone().requires_grad_() for p in parameters]
    matrices = [p for p in parameters if p.ndim == 2 and len(p) > 1]
    optimiser = torch.optim.Muon(matrices, lr=lr, weight_decay=0.0)
    memory = [torch.zeros_like(p) for p in parameters]
    for each in gradients:
        for i, (p, g) in enumerate(zip(parameters, each, strict=True)):
            p.grad = g
            if not any(p is matrix for matrix in matrices):
                memory[i] = 0.95 * memory[i] + 0.05 * g
                ahead = 0.95 * memory[i] + 0.05 * g
                p.data -= lr * ahead / ahead.norm()
        optimiser.step()
    return [p.detach() for p in parameters]


def test_mini_batch_steps_are_those_of_torch_muon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda t: t)  # torch orthogonalises in 8 bits
    net = Fcn(4, 6, 2)
    theta = net.initial([rng(seed, "init") for seed in range(3)]).double()
    gradients = [normal(i, *theta.shape) for i in range(4)]
    at = Step(
        theta=theta.clone(), g=theta, memory=(torch.zeros_like(theta), theta), n=0,
        lr=torch.tensor([[0.1], [0.2], [0.03]]).double(), momentum=theta, moves=False, shapes=net.shapes,
    )  # fmt: skip
    for at.g in gradients:
        muon(at)
    for i in range(3):
        parts = [[p[i] for p in split(t, net.shapes)] for t in (theta, *gradients)]
        expected = torch.cat([p.flatten() for p in theirs(parts[0], parts[1:], float(at.lr[i]))])
        torch.testing.assert_close(at.theta[i], expected)


def test_steps_of_a_module_are_those_of_torch_muon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda t: t)
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1, bias=False)).double()
    start = [p.detach().clone() for p in net.parameters()]
    gradients = [[normal(10 * i + j, *p.shape) for j, p in enumerate(start)] for i in range(4)]
    optimiser = Muon(net.parameters(), lr=0.05)
    for each in gradients:
        for p, g in zip(net.parameters(), each, strict=True):
            p.grad = g
        optimiser.step()
    for p, expected in zip(net.parameters(), theirs(start, gradients, 0.05), strict=True):
        torch.testing.assert_close(p.detach(), expected)


NAMED = [family(name, 12) for name in ("fcn-5-2", "cnn-3-3-1", "gru-4-3-1")]


@pytest.mark.parametrize(
    "net", [*NAMED, Fcn(12, 5, 1, activation="prelu"), Linear(12), FixedOutput(12, 4), PowerRelu(12, 4, 3.0)]
)
def test_a_family_says_of_which_tensors_its_weights_consist(net: Fcn) -> None:
    theta = net.initial([rng(0, "init")])
    assert sum(torch.zeros(shape).numel() for shape in net.shapes) == theta.shape[1]
