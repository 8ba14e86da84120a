"""Each architecture against PyTorch's own layers with the same weights: scores, gradients, initial weights, sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from scipy.stats import ks_2samp, kstest
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from brittle.core.rng import rng
from brittle.nets import parse
from brittle.nets.cnn import Cnn
from brittle.nets.family import Family
from brittle.nets.fcn import ACTIVATIONS, Fcn
from brittle.nets.fcn_as_two_layer import two_layer
from brittle.nets.fixed_output import FixedOutput
from brittle.nets.gru import Gru
from brittle.nets.modules import PowerReluModule
from brittle.nets.power_relu import PowerRelu, scores
from brittle.slabs.titles import model_title
from brittle.train.sgd import LOSSES

ALARM = 1e-7  # how likely a statistical test here is to fail for nothing, had its seed not been fixed
PHI = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "prelu": nn.PReLU, "tanh": nn.Tanh}
OBVIOUS: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": lambda q: softplus(-q).mean(),
    "hinge": lambda q: (1 - q).clamp(min=0).mean(),
    "exponential": lambda q: q.neg().exp().mean(),
}

FCNS = [Fcn(5, 7, depth, phi) for phi in ACTIVATIONS for depth in (1, 2, 3)]
CNNS = [Cnn(6, 3, size, depth) for size, depth in ((3, 1), (5, 2), (3, 3))]
GRUS = [Gru(d, 4, reads, depth) for d, reads, depth in ((6, 2, 1), (7, 3, 1), (11, 3, 2))]
LAYERED = [*FCNS, *CNNS, *GRUS]
POWERS = [PowerRelu(5, 6, p) for p in (1.0, 1.5, 2.0, 3.0)]
ALL = [*LAYERED, *POWERS, FixedOutput(5, 6)]


def called(net: Family) -> str:
    return "-".join([type(net).__name__.lower(), *(str(size) for size in vars(net).values() if size)])


class FcnTwin(nn.Module):
    def __init__(self, net: Fcn) -> None:
        super().__init__()
        sizes = (net.d, *net.hidden)
        self.linear = nn.ModuleList(nn.Linear(sizes[i], sizes[i + 1]) for i in range(net.depth))
        self.out = nn.Linear(net.width, 1)
        self.phi = nn.ModuleList(PHI[net.activation]() for _ in range(net.depth))

    def forward(self, x: Tensor, keep: Sequence[Tensor] = ()) -> Tensor:
        for layer, (linear, phi) in enumerate(zip(self.linear, self.phi, strict=True)):
            x = phi(linear(x))
            x = x * keep[layer] if keep else x
        return self.out(x).squeeze(1)


class CnnTwin(nn.Module):
    def __init__(self, net: Cnn) -> None:
        super().__init__()
        channels = (1, *(net.filters,) * net.depth)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(channels[i], channels[i + 1], net.size, padding="same") for i in range(net.depth)
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(net.d * net.filters, net.d), nn.ReLU(), nn.Linear(net.d, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = x[:, None]
        for convolution in self.convolutions:
            x = convolution(x).relu()
        return self.head(x).squeeze(1)


class GruTwin(nn.Module):
    def __init__(self, net: Gru) -> None:
        super().__init__()
        self.reads = net.reads
        self.gru = nn.GRU(net.reads, net.units, net.depth, batch_first=True)
        self.out = nn.Linear(net.units, 1)

    def forward(self, x: Tensor) -> Tensor:
        read = x[:, : x.shape[1] // self.reads * self.reads]
        states, _ = self.gru(read.reshape(len(x), -1, self.reads))
        return self.out(states[:, -1]).squeeze(1)


class FixedOutputTwin(nn.Module):
    """Σ_j v_j ReLU(w_j·x), a unit at a time."""

    def __init__(self, net: FixedOutput) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(net.units, net.d))

    def forward(self, x: Tensor) -> Tensor:
        k = len(self.w)
        signs = [1] * (k // 2) + [-1] * (k // 2)
        return sum(sign / math.sqrt(k) * (x @ w).clamp(min=0) for sign, w in zip(signs, self.w, strict=True))


class PowerReluTwin(nn.Module):
    """Σ_j v_j σ(w_j·x)^p / ‖w_j‖^(p-1), a neuron at a time."""

    def __init__(self, net: PowerRelu) -> None:
        super().__init__()
        self.p = net.p
        self.first, self.last = nn.Linear(net.d, net.width, bias=False), nn.Linear(net.width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        rows = zip(self.first.weight, self.last.weight[0], strict=True)
        return sum(v * (x @ w).clamp(min=0) ** self.p / (w @ w) ** ((self.p - 1) / 2) for w, v in rows)


TWINS = {Fcn: FcnTwin, Cnn: CnnTwin, Gru: GruTwin, FixedOutput: FixedOutputTwin, PowerRelu: PowerReluTwin}


def twin(net: Family) -> nn.Module:
    """The same network as PyTorch would have it; its parameters come in the order of ours."""
    return TWINS[type(net)](net).double()


def carrying(net: Family, theta: Tensor) -> nn.Module:  # (p,)
    module = twin(net)
    vector_to_parameters(theta, module.parameters())
    return module


def problem(net: Family, s: int = 2, n: int = 9) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, samples and labels at random, the weights larger than initial ones."""
    p = net.initial([rng(0, "init")]).shape[1]
    sizes = ((s, p), (s, n, net.d), (s, n))
    theta, x, y = (torch.from_numpy(rng(i, str(net)).standard_normal(size)) for i, size in enumerate(sizes))
    return 0.7 * theta, x, y.sign()


def masks(net: Fcn, s: int, n: int) -> list[Tensor]:
    """A third is dropped; the rest is 1.5 times as large."""
    kept = (rng(i, "masks").random((s, n, width)) < 2 / 3 for i, width in enumerate(net.hidden))
    return [1.5 * torch.from_numpy(each).double() for each in kept]


def ours(net: Family, theta: Tensor, x: Tensor, y: Tensor, loss: str, keep: Sequence[Tensor] = ()) -> tuple:
    """The mean losses and the gradient."""  # (s,), (s, p)
    grad = torch.full_like(theta, torch.nan)
    value = net.gradient(theta, grad, LOSSES[loss])(x, y, keep)
    return value, grad


# Scores


@pytest.mark.parametrize("net", ALL, ids=called)
def test_scores_are_those_of_the_layers_of_torch(net: Family) -> None:
    theta, x, _ = problem(net)
    scores = net(theta, x)
    assert scores.std() > 0.01
    for row, weights, points in zip(scores, theta, x, strict=True):
        torch.testing.assert_close(row, carrying(net, weights)(points).detach(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("net", LAYERED, ids=called)
def test_number_of_parameters_is_that_of_torch(net: Family) -> None:
    assert net.initial([rng(0, "init")]).shape == (1, len(parameters_to_vector(twin(net).parameters())))


def test_gru_reads_whole_steps_only() -> None:
    net = Gru(7, 4, 3, 1)
    theta, x, _ = problem(net)
    for coordinate in range(net.d):
        moved = x.clone()
        moved[..., coordinate] += 1
        assert torch.equal(net(theta, moved), net(theta, x)) == (coordinate == 6)


# Gradients


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("net", ALL, ids=called)
def test_gradient_is_that_of_autograd_through_torch(net: Family, loss: str) -> None:
    theta, x, y = problem(net)
    values, grads = ours(net, theta, x, y, loss)
    for value, grad, weights, points, labels in zip(values, grads, theta, x, y, strict=True):
        module = carrying(net, weights)
        expected = OBVIOUS[loss](labels * module(points))
        expected.backward()
        torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=1e-12)
        flat = parameters_to_vector(p.grad for p in module.parameters())
        assert flat.abs().max() > 1e-3
        torch.testing.assert_close(grad, flat, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("net", FCNS, ids=called)
def test_gradient_with_dropout_is_that_of_autograd_with_the_same_neurons_kept(net: Fcn, loss: str) -> None:
    theta, x, y = problem(net)
    keep = masks(net, *y.shape)
    values, grads = ours(net, theta, x, y, loss, keep)
    assert not torch.allclose(grads, ours(net, theta, x, y, loss)[1])
    for i, (value, grad) in enumerate(zip(values, grads, strict=True)):
        module = carrying(net, theta[i])
        expected = OBVIOUS[loss](y[i] * module(x[i], [mask[i] for mask in keep]))
        expected.backward()
        torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=1e-12)
        flat = parameters_to_vector(p.grad for p in module.parameters())
        torch.testing.assert_close(grad, flat, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("net", ALL, ids=called)
def test_gradient_is_at_the_weights_as_they_now_are(net: Family) -> None:
    theta, x, y = problem(net)
    weights, grad = torch.zeros_like(theta), torch.zeros_like(theta)
    gradient = net.gradient(weights, grad, LOSSES["logistic"])
    gradient(x, y, ())
    before = grad.clone()
    weights.copy_(theta)
    gradient(x, y, ())
    assert not torch.equal(grad, before)
    assert torch.equal(grad, ours(net, theta, x, y, "logistic")[1])


@pytest.mark.parametrize("net", ALL, ids=called)
def test_networks_side_by_side_are_each_alone(net: Family) -> None:
    theta, x, y = problem(net, s=3)
    scores, (values, grads) = net(theta, x), ours(net, theta, x, y, "logistic")
    for i in range(3):
        one = (theta[i : i + 1], x[i : i + 1], y[i : i + 1])
        torch.testing.assert_close(net(*one[:2])[0], scores[i], rtol=1e-11, atol=1e-13)
        value, grad = ours(net, *one, "logistic")
        torch.testing.assert_close(value[0], values[i], rtol=1e-11, atol=1e-13)
        torch.testing.assert_close(grad[0], grads[i], rtol=1e-10, atol=1e-13)


# Initial weights


@pytest.mark.parametrize("net", [*LAYERED, POWERS[-1]], ids=called)
def test_initial_weights_are_distributed_as_torchs(net: Family) -> None:
    draws = 100
    mine = net.initial([rng(i, "init") for i in range(draws)]).double()
    torch.manual_seed(0)
    theirs = torch.stack([parameters_to_vector(twin(net).parameters()).detach() for _ in range(draws)])
    sizes = [p.numel() for p in twin(net).parameters()]
    for a, b in zip(mine.split(sizes, 1), theirs.split(sizes, 1), strict=True):
        assert ks_2samp(a.flatten(), b.flatten()).pvalue > ALARM
        assert float(a.abs().max()) == pytest.approx(float(b.abs().max()), rel=0.1)


@pytest.mark.parametrize("depth", [1, 2])
def test_initial_weights_of_an_fcn_fill_the_range_of_their_fan_in(depth: int) -> None:
    net = Fcn(9, 100, depth)
    theta = net.initial([rng(i, "init") for i in range(10)]).double()
    fan_ins = [fan_in for fan_in in (9, 100)[:depth] for _ in "wb"] + [100, 100]
    sizes = [p.numel() for p in twin(net).parameters()]
    for part, fan_in in zip(theta.split(sizes, 1), fan_ins, strict=True):
        bound = 1 / math.sqrt(fan_in)
        assert part.abs().max() <= bound * (1 + 1e-6)
        assert kstest(part.flatten(), "uniform", (-bound, 2 * bound)).pvalue > ALARM
        if part.numel() > 1000:
            assert part.abs().max() > 0.99 * bound
            assert float(part.var()) == pytest.approx(1 / (3 * fan_in), rel=6 * math.sqrt(0.8 / part.numel()))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_initial_slopes_of_prelus_are_a_quarter(depth: int) -> None:
    plain, prelu = (Fcn(5, 7, depth, phi).initial([rng(0, "init")]) for phi in ("relu", "prelu"))
    assert torch.equal(prelu[:, : plain.shape[1]], plain)
    assert prelu[0, plain.shape[1] :].tolist() == [0.25] * depth


def test_initial_weights_of_theorem_1_are_gaussian_of_variance_1_over_d_k_log4_d() -> None:
    net = FixedOutput(20, 50)
    theta = net.initial([rng(i, "init") for i in range(20)]).double()
    assert theta.shape == (20, 1000)
    sd = math.sqrt(1 / (20 * 50 * math.log(20) ** 4))
    assert kstest(theta.flatten(), "norm", (0, sd)).pvalue > ALARM
    assert float(theta.var()) == pytest.approx(sd**2, rel=6 * math.sqrt(2 / theta.numel()))


def test_initial_weights_of_a_given_size_are_gaussian() -> None:
    theta = PowerRelu(9, 50, 3.0, std=1e-7).initial([rng(i, "init") for i in range(20)]).double()
    assert theta.shape == (20, 500)
    assert kstest(theta.flatten(), "norm", (0, 1e-7)).pvalue > ALARM


@pytest.mark.parametrize("net", ALL, ids=called)
def test_initial_weights_are_the_seeds_own(net: Family) -> None:
    first, again, other = net.initial([rng(seed, "init") for seed in (3, 3, 4)])
    assert torch.equal(first, again)
    differ = first != other
    assert differ.sum() == len(first) - (net.depth if "prelu" in str(net) else 0)  # all but the slopes
    assert torch.equal(net.initial([rng(4, "init")])[0], other)


# Names


def test_names_give_the_sizes_in_the_papers_order() -> None:
    assert parse.family("fcn-100-2", 50) == Fcn(d=50, width=100, depth=2)
    assert parse.family("fcn-10-1", 5, activation="tanh", dropout=0.5) == Fcn(5, 10, 1, "tanh", 0.5)
    assert parse.family("cnn-32-7-1", 50) == Cnn(d=50, filters=32, size=7, depth=1)
    assert parse.family("gru-100-10-2", 50) == Gru(d=50, units=100, reads=10, depth=2)
    assert model_title("fcn-100-2") == "(100, 2)-FCN"
    assert model_title("cnn-32-7-1") == "(32, 7, 1)-CNN"
    assert model_title("gru-100-10-1") == "(100, 10, 1)-GRU"


def test_one_hidden_layer_is_a_depth_2_network_for_the_certificates() -> None:
    family = Fcn(7, 5, 1)
    theta = family.initial([rng(seed, "test") for seed in (0, 1)]).double()
    x = torch.from_numpy(rng(2, "test").standard_normal((2, 9, 7)))
    torch.testing.assert_close(two_layer(family, theta)(x), family(theta, x))
    assert two_layer(Fcn(7, 5, 2), theta) is None
    assert two_layer(Fcn(7, 5, 1, "tanh"), theta) is None


# Powers of ReLU


def test_a_power_of_one_is_the_relu_network_and_every_power_is_of_degree_two_in_the_weights() -> None:
    theta, x, _ = problem(POWERS[0])
    w, v = POWERS[0].weights(theta)
    torch.testing.assert_close(POWERS[0](theta, x), ((x @ w.transpose(1, 2)).relu() * v[:, None]).sum(2))
    for net in POWERS:
        torch.testing.assert_close(net(3 * theta, x), 9 * net(theta, x))
        torch.testing.assert_close(net(theta, 3 * x), 3**net.p * net(theta, x))


def test_a_module_with_powers_of_relu_is_the_same_network_on_scaled_samples() -> None:
    module = PowerReluModule(5, 6, 3.0, rng(0, "test"), norm=2.0)
    x = torch.from_numpy(rng(1, "test").standard_normal((9, 5))).float()
    expected = scores(module.first.weight, module.last.weight[0], x, 3.0) / 8
    torch.testing.assert_close(module(x), expected)
    assert float(expected.detach().std()) > 0
