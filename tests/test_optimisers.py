"""Optimisers against torch's own and slow, obvious loops; deep networks and their crossings against depth 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from brittle.attacks import line, segments
from brittle.attacks.line import Crossings
from brittle.core.rng import rng
from brittle.nets import two_layer
from brittle.nets.deep import Deep, initial
from brittle.nets.smooth_deep import SmoothDeep
from brittle.nets.two_layer import TwoLayer
from brittle.probes.margin import MarginProbe, probe
from brittle.train import flow
from brittle.train.losses import ln_loss
from brittle.train.muon import orthogonalised
from brittle.train.optimisers import (
    OPTIMISERS,
    Adam,
    Constant,
    Fall,
    GradientDescent,
    Momentum,
    Muon,
    Optimiser,
    OptimiserState,
    Relative,
    Sam,
    SignDescent,
    train,
)
from brittle.train.state import NotReached
from brittle.worlds import sphere

LN_TARGET = -30 * math.log(10)


def problem(
    d: int, m: int, widths: list[int], seeds: range, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Deep]:
    x, y = zip(*(sphere.sample(d, m, rng(s, "data")) for s in seeds), strict=True)
    net = initial(d, widths, 1.0, [rng(s, "init") for s in seeds])
    return torch.from_numpy(np.stack(x)).to(dtype), torch.from_numpy(np.stack(y)).to(dtype), net.to(dtype)


def normal_net(seed: int, d: int, widths: list[int]) -> tuple[Deep, Callable[..., Tensor]]:
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    sizes = [d, *widths, 1]
    ws = tuple(normal(1, out, fan_in) for fan_in, out in pairwise(sizes))
    return Deep(ws, normal(1, widths[0])), normal


def only(net: Deep, i: int) -> Deep:
    return net.like(net.flat()[i : i + 1])


# Deep networks


def test_depth_2_is_two_layer_in_numbers_values_and_gradients() -> None:
    shallow = two_layer.initial(7, 20, 0.5, [rng(s, "init") for s in range(3)])
    deep = initial(7, [20], 0.5, [rng(s, "init") for s in range(3)])
    assert torch.equal(deep.flat(), Deep.of(shallow).flat())
    assert all(torch.equal(p, q) for p, q in zip(vars(deep.two_layer()).values(), vars(shallow).values(), strict=True))
    x = torch.from_numpy(rng(0, "x").standard_normal((3, 5, 7))).float()
    parameters = [p.requires_grad_() for p in vars(shallow).values()]  # w, b, v
    theta = deep.flat().requires_grad_()
    torch.testing.assert_close(deep.like(theta)(x), shallow(x))
    w, b, v = torch.autograd.grad(shallow(x).square().sum(), parameters)
    (g,) = torch.autograd.grad(deep.like(theta)(x).square().sum(), theta)
    torch.testing.assert_close(g, Deep.of(TwoLayer(w, b, v)).flat())


@pytest.mark.parametrize("widths", [[6], [6, 5], [6, 5, 4]])
def test_a_network_is_homogeneous_of_the_degree_of_its_depth(widths: list[int]) -> None:
    net, normal = normal_net(0, 3, widths)
    x = normal(1, 8, 3)
    assert net.depth == len(widths) + 1
    assert net(x).abs().max() > 0.1
    torch.testing.assert_close(net.like(1.7 * net.flat())(x), 1.7**net.depth * net(x))


@pytest.mark.parametrize(("widths", "degree"), [([6], 4), ([6, 5], 13)])
def test_a_smooth_network_is_homogeneous_of_the_degree_of_its_cubes(widths: list[int], degree: int) -> None:
    """1, then 3 · 1 + 1, then 3 · 4 + 1."""
    net, normal = normal_net(0, 3, widths)
    smooth, x = SmoothDeep(net.ws, net.b), normal(1, 8, 3)
    assert smooth.degree == degree
    torch.testing.assert_close(smooth.like(1.2 * smooth.flat())(x), 1.2**degree * smooth(x))
    h = x[0] @ net.ws[0][0].T + net.b[0]
    for w in net.ws[1:]:
        h = torch.where(h > 0, h * h * h, 0.0) @ w[0].T
    torch.testing.assert_close(smooth(x)[0], h[:, 0])
    assert isinstance(smooth.to(torch.float32), SmoothDeep)


def test_a_network_is_a_stack_of_linear_layers_with_relus_between() -> None:
    net, normal = normal_net(1, 3, [6, 5])
    x = normal(1, 8, 3)
    sizes = [3, 6, 5, 1]
    layers = [torch.nn.Linear(sizes[i], sizes[i + 1], bias=i == 0, dtype=torch.float64) for i in range(3)]
    for layer, w in zip(layers, net.ws, strict=True):
        layer.weight.data = w[0]
    layers[0].bias.data = net.b[0]
    expected = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])(x[0])
    torch.testing.assert_close(net(x)[0], expected[:, 0])


def test_initial_weights_are_spread_as_torchs_own() -> None:
    net = initial(50, [200, 300], 2.0, [rng(0, "init")])
    for w, (fan_in, out) in zip(net.ws[:2], [(50, 200), (200, 300)], strict=True):
        theirs = torch.nn.Linear(fan_in, out).weight.detach()
        assert float(w.abs().max()) == pytest.approx(2 * float(theirs.abs().max()), rel=0.01)
        assert float(w.std()) == pytest.approx(2 * float(theirs.std()), rel=0.03)


# Rules


def steps_of(optimiser: Optimiser, x: Tensor, y: Tensor, net: Deep, n: int, loss: str = "exponential") -> list[Deep]:
    """The networks before each of n steps and after the last."""
    seen: list[Deep] = []
    with pytest.raises(NotReached, match=f"after {n} steps"):
        train(
            x, y, net, optimiser=optimiser, loss=loss, ln_target=-1e9, max_steps=n,
            watch=lambda state: seen.append(net.like(state.theta)),
        )  # fmt: skip
    return seen


def slow_ln_loss(x: Tensor, y: Tensor, parameters: list[Tensor], loss: str = "exponential") -> Tensor:
    *ws, b = parameters
    h = x @ ws[0].T + b
    for w in ws[1:]:
        h = h.relu() @ w.T
    q = y * h[:, 0]
    return ((-q).exp() if loss == "exponential" else torch.nn.functional.softplus(-q)).mean().log()


def slow_gradient(x: Tensor, y: Tensor, parameters: list[Tensor]) -> list[Tensor]:
    leaves = [p.detach().clone().requires_grad_() for p in parameters]
    return list(torch.autograd.grad(slow_ln_loss(x, y, leaves), leaves))


def length(tensors: list[Tensor]) -> float:
    return math.sqrt(sum(float((t * t).sum()) for t in tensors))


def assert_same(net: Deep, i: int, parameters: list[Tensor]) -> None:
    for ours, theirs in zip(net.parameters(), parameters, strict=True):
        torch.testing.assert_close(ours[i], theirs.detach(), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_adam_takes_the_steps_of_torch_adam_on_ln_loss(loss: str) -> None:
    x, y, net = problem(6, 10, [12, 9], range(2))
    after = steps_of(Optimiser(Adam(0.8, 0.9, 1e-3), Constant(0.02)), x, y, net, 40, loss)[-1]
    for i in range(2):
        theirs = [p[i].clone().requires_grad_() for p in net.parameters()]
        adam = torch.optim.Adam(theirs, lr=0.02, betas=(0.8, 0.9), eps=1e-3)
        for _ in range(40):
            adam.zero_grad()
            slow_ln_loss(x[i], y[i], theirs, loss).backward()
            adam.step()
        assert_same(after, i, theirs)


def test_muon_takes_the_steps_of_torch_muon_on_matrices_and_normalises_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda t: t)  # torch orthogonalises in 8 bits
    x, y, net = problem(6, 10, [12, 15], range(2))  # one matrix taller than wide by 2, one by 1.25
    after = steps_of(Optimiser(Muon(0.9), Constant(0.01)), x, y, net, 40)[-1]
    for i in range(2):
        theirs = [p[i].clone().requires_grad_() for p in net.parameters()]
        muon = torch.optim.Muon(theirs[:2], lr=0.01, momentum=0.9, weight_decay=0.0)
        momentum = [torch.zeros_like(p) for p in theirs[2:]]
        for _ in range(40):
            muon.zero_grad()
            gradients = torch.autograd.grad(slow_ln_loss(x[i], y[i], theirs), theirs)
            for p, g in zip(theirs, gradients, strict=True):
                p.grad = g
            muon.step()
            for j, (p, g) in enumerate(zip(theirs[2:], gradients[2:], strict=True)):
                momentum[j] = 0.9 * momentum[j] + 0.1 * g
                ahead = 0.9 * momentum[j] + 0.1 * g
                p.data -= 0.01 * ahead / ahead.norm()
        assert_same(after, i, theirs)


def slow_descent(g: list[Tensor], *_: object) -> list[Tensor]:
    return g


def slow_sign(g: list[Tensor], *_: object) -> list[Tensor]:
    return [t.sign() for t in g]


def slow_sam(g: list[Tensor], parameters: list[Tensor], x: Tensor, y: Tensor) -> list[Tensor]:
    rho = 0.1 * length(parameters)
    return slow_gradient(x, y, [p + rho * t / length(g) for p, t in zip(parameters, g, strict=True)])


@pytest.mark.parametrize(
    "clock",
    [Constant(0.01), Relative(0.01), Fall(0.3, math.inf), Fall(0.3, 0.03)],
    ids=["constant", "relative", "fall", "short fall"],
)
@pytest.mark.parametrize(
    ("rule", "slow"),
    [(GradientDescent(), slow_descent), (SignDescent(), slow_sign), (Sam(0.1), slow_sam)],
    ids=["gd", "sign", "sam"],
)
def test_rules_and_clocks_take_the_steps_of_an_obvious_loop(
    rule: GradientDescent | SignDescent | Sam,
    slow: Callable[..., list[Tensor]],
    clock: Constant | Relative | Fall,
) -> None:
    x, y, net = problem(6, 10, [12, 9], range(2))
    after = steps_of(Optimiser(rule, clock), x, y, net, 25)[-1]
    for i in range(2):
        theirs = [p[i].clone() for p in net.parameters()]
        for _ in range(25):
            g = slow_gradient(x[i], y[i], theirs)
            u = slow(g, theirs, x[i], y[i])
            if isinstance(clock, Fall):  # what the gradient that the rule goes by promises
                goes_by = u if isinstance(rule, Sam) else g
                eta = 0.3 / sum(float((s * t).sum()) for s, t in zip(goes_by, u, strict=True))
                eta = min(eta, clock.stride * length(theirs) / length(u))
            else:
                eta = 0.01 * length(theirs) / length(u) if isinstance(clock, Relative) else 0.01
            theirs = [p - eta * t for p, t in zip(theirs, u, strict=True)]
        assert_same(after, i, theirs)


@pytest.mark.parametrize(("rule", "slow"), [(GradientDescent(), slow_descent), (SignDescent(), slow_sign)])
def test_momentum_steepest_descent_goes_by_the_average_of_the_gradients(
    rule: GradientDescent | SignDescent, slow: Callable[..., list[Tensor]]
) -> None:
    x, y, net = problem(6, 10, [12, 9], range(2))
    after = steps_of(Optimiser(Momentum(rule, 0.8), Constant(0.01)), x, y, net, 25)[-1]
    for i in range(2):
        theirs, past = [p[i].clone() for p in net.parameters()], []
        for _ in range(25):
            past.append(slow_gradient(x[i], y[i], theirs))
            weights = [0.8**age for age in reversed(range(len(past)))]
            together = zip(*past, strict=True)  # each parameter's gradients
            mean = [sum(w * g for w, g in zip(weights, each, strict=True)) / sum(weights) for each in together]
            theirs = [p - 0.01 * t for p, t in zip(theirs, slow(mean), strict=True)]
        assert_same(after, i, theirs)


@pytest.mark.parametrize("rule", [GradientDescent(), SignDescent(), Adam(), Muon()], ids=lambda r: type(r).__name__)
def test_the_first_step_falls_as_far_as_its_clock_says(rule: GradientDescent | SignDescent | Adam | Muon) -> None:
    x, y, net = problem(20, 20, [40, 30], range(3))
    before, after = steps_of(Optimiser(rule, Fall(1e-4)), x, y, net, 1)
    falls = ln_loss(y * before(x), "exponential")[0] - ln_loss(y * after(x), "exponential")[0]
    torch.testing.assert_close(falls, torch.full_like(falls, 1e-4), rtol=0.05, atol=0)


@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (9, 9)])
def test_orthogonalised_keeps_singular_vectors_and_brings_singular_values_near_1(shape: tuple[int, int]) -> None:
    g = torch.Generator().manual_seed(0)
    m = torch.randn(4, *shape, generator=g, dtype=torch.float64)
    u, s, vt = torch.linalg.svd(m, full_matrices=False)
    assert (s[:, 0] / s[:, -1]).max() > 2
    inside = u.transpose(1, 2) @ orthogonalised(m) @ vt.transpose(1, 2)
    values = inside.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(torch.diag_embed(values), inside, rtol=0, atol=1e-8)
    torch.testing.assert_close(orthogonalised(m), u @ inside @ vt, rtol=0, atol=1e-8)
    assert ((values > 0.6) & (values < 1.3)).all()


# Training


@pytest.mark.parametrize("widths", [[60], [30, 30]], ids=["depth 2", "depth 3"])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_optimiser_reaches_the_target(name: str, widths: list[int]) -> None:
    x, y, net = problem(20, 20, widths, range(2), torch.float32)
    how = {"optimiser": OPTIMISERS[name], "loss": "exponential", "ln_target": LN_TARGET, "max_steps": 10_000}
    trained, state = train(x, y, net, **how)
    torch.testing.assert_close(ln_loss(y * trained(x), "exponential")[0], state.ln_loss)
    assert (state.ln_loss <= LN_TARGET).all()
    assert (torch.stack(state.history).amax(1) > LN_TARGET).all()  # and no step was taken after that


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_network_that_has_arrived_rests_while_others_go_on(name: str) -> None:
    x, y, net = problem(10, 12, [20, 20], range(2))
    how = {"optimiser": OPTIMISERS[name], "loss": "exponential", "ln_target": -10.0, "max_steps": 10_000}
    first, _ = train(x[:1], y[:1], only(net, 0), **how)
    start = net.like(torch.cat([first.flat(), net.flat()[1:]]))
    trained, state = train(x, y, start, **how)
    assert torch.equal(trained.flat()[0], first.flat()[0])
    assert (state.ln_loss <= -10).all()


@pytest.mark.parametrize("name", OPTIMISERS)
def test_networks_side_by_side_are_those_trained_alone(name: str) -> None:
    x, y, net = problem(10, 12, [20, 20], range(3))
    how = {"optimiser": OPTIMISERS[name], "loss": "exponential", "ln_target": -10.0, "max_steps": 10_000}
    together, _ = train(x, y, net, **how)
    for i in range(3):
        alone, _ = train(x[i : i + 1], y[i : i + 1], only(net, i), **how)
        torch.testing.assert_close(only(together, i).flat(), alone.flat(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_training_stopped_and_resumed_is_training_never_stopped(name: str) -> None:
    x, y, net = problem(10, 12, [20, 20], range(2))
    how = {"optimiser": OPTIMISERS[name], "loss": "exponential", "ln_target": -20.0, "max_steps": 10_000}
    saved: dict[str, np.ndarray] = {}

    def save(state: OptimiserState) -> None:
        if len(state.history) == 10:
            saved.update({name: array.copy() for name, array in state.arrays().items()})

    straight, end = train(x, y, net, watch=save, **how)
    assert len(end.history) > 10
    resumed, state = train(x, y, net, state=OptimiserState.restore(saved, torch.device("cpu")), **how)
    assert torch.equal(resumed.flat(), straight.flat())
    assert len(state.history) == len(end.history)


def probes(x: Tensor, y: Tensor, trained: Deep) -> list[MarginProbe]:
    x, y, trained = x.double(), y.double(), trained.to(torch.float64)
    return [probe(only(trained, i).two_layer(), x[i], y[i], 1.1) for i in range(len(x))]


def c_of(x: Tensor, y: Tensor, trained: Deep) -> np.ndarray:
    return np.array([p.c for p in probes(x, y, trained)])


def typical_c(x: Tensor, y: Tensor, trained: Deep) -> float:
    """The size at which z flips the median sample on the margin; c itself hangs on the last one."""
    return float(np.mean([float(p.z.first().median()) for p in probes(x, y, trained)]))


def test_descent_by_any_clock_reaches_the_network_of_flow() -> None:
    x, y, net = problem(50, 50, [150], range(3), torch.float64)  # paths are compared, not how a CPU rounds
    how = {"loss": "exponential", "ln_target": LN_TARGET, "max_steps": 10_000}
    expected = c_of(x, y, Deep.of(flow.train(x, y, net.two_layer(), momentum=0.0, **how)[0]))
    for clock in (Fall(0.2), Relative(0.004), Constant(0.005)):
        trained, _ = train(x, y, net, optimiser=Optimiser(GradientDescent(), clock), **how)
        np.testing.assert_allclose(c_of(x, y, trained), expected, rtol=0.02, err_msg=str(clock))


def test_descent_from_small_weights_reaches_the_network_of_flow() -> None:
    """A clock without a stride leaps over the early path there: the first step is hundreds of times as long as θ."""
    x, y, net = problem(30, 30, [100], range(2), torch.float64)
    small = net.like(0.01 * net.flat())
    how = {"loss": "exponential", "ln_target": LN_TARGET, "max_steps": 10_000}
    expected = flow.train(x, y, small.two_layer(), momentum=0.0, **how)[0]

    def far(clock: Fall) -> float:
        trained, _ = train(x, y, small, optimiser=Optimiser(GradientDescent(), clock), **how)
        return float((1 - torch.cosine_similarity(trained.flat(), Deep.of(expected).flat())).max())

    assert far(Fall(0.4)) < 0.05
    assert far(Fall(0.4, math.inf)) > 0.2


def test_half_the_step_reaches_a_network_as_robust() -> None:
    x, y, net = problem(40, 40, [100], range(3), torch.float32)
    how = {"loss": "exponential", "ln_target": LN_TARGET, "max_steps": 10_000}
    for name in ("sign", "adam", "muon"):
        optimiser = OPTIMISERS[name]
        half = replace(optimiser, clock=Fall(optimiser.clock.size / 2))
        whole, halved = (typical_c(x, y, train(x, y, net, optimiser=o, **how)[0]) for o in (optimiser, half))
        assert whole == pytest.approx(halved, rel=0.03), name


def test_training_that_cannot_descend_says_so() -> None:
    # Two equal samples of opposite labels: the loss cannot fall below 1.
    x = torch.ones(1, 2, 3, dtype=torch.float64)
    y = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    net = initial(3, [10], 1.0, [rng(0, "init")]).to(torch.float64)
    for optimiser in OPTIMISERS.values():
        with pytest.raises(NotReached):
            train(x, y, net, optimiser=optimiser, loss="exponential", ln_target=-1.0, max_steps=100)


# Crossings of deep networks


def flipped_at(found: Crossings, c: float) -> Tensor:
    wrong = found.starts_flipped.clone()
    for sample in found.sample[found.c <= c]:
        wrong[sample] ^= True
    return wrong


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 6), k=st.integers(1, 12), d=st.integers(1, 4))
def test_crossings_at_depth_2_are_those_of_line(seed: int, n: int, k: int, d: int) -> None:
    net, normal = normal_net(seed, d, [k])
    x, y, u = normal(n, d), normal(n).sign(), normal(d)
    ours = segments.along(net, x, y, u)
    theirs = line.crossings(net.preactivations(x[None])[0], net.ws[0][0] @ u, net.ws[1][0, 0], y)
    assert torch.equal(ours.starts_flipped, theirs.starts_flipped)
    for a, b in ((ours, theirs), (theirs, ours)):
        assert torch.equal(a.sample.bincount(minlength=n), b.sample.bincount(minlength=n))
    torch.testing.assert_close(ours.c.sort().values, theirs.c.sort().values, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(ours.first(), theirs.first(), rtol=1e-8, atol=1e-10)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**31), n=st.integers(1, 5), widths=st.lists(st.integers(1, 8), min_size=2, max_size=3),
    own=st.booleans(),
)  # fmt: skip
def test_signs_between_crossings_are_the_deep_networks_own(seed: int, n: int, widths: list[int], own: bool) -> None:
    net, normal = normal_net(seed, 3, widths)
    x, y, u = normal(n, 3), normal(n).sign(), normal(n, 3) if own else normal(3)
    found = segments.along(net, x, y, u)
    grid = torch.cat([torch.linspace(0, 5, 200), torch.logspace(1, 4, 50)]).double()
    wrong = torch.stack([flipped_at(found, float(c)) for c in grid])
    q = y * net((x - grid[:, None, None] * y[:, None] * u).reshape(1, -1, 3)).view(len(grid), n)
    clear = q.abs() > 1e-9 * (1 + grid[:, None])
    assert torch.equal((q < 0)[clear], wrong[clear])


def test_crossings_at_depth_3_are_where_bisection_finds_them() -> None:
    net, normal = normal_net(2, 10, [30, 30])
    x, u = normal(20, 10), normal(10)
    y = net(x[None])[0].sign()
    found = segments.along(net, x, y, u)
    assert int(found.first().isfinite().sum()) > 5
    for i in found.first().isfinite().nonzero().flatten().tolist():
        low, high = 0.0, float(found.first()[i]) * (1 + 1e-6)
        for _ in range(80):
            middle = (low + high) / 2
            flipped = float(y[i] * net((x[i] - middle * y[i] * u)[None, None])) < 0
            low, high = (low, middle) if flipped else (middle, high)
        assert float(found.first()[i]) == pytest.approx(high, rel=1e-10)


def test_a_deep_network_that_falls_silent_or_never_flips_has_no_crossing() -> None:
    # N = σ(σ(x)) is 1 at x = 1, and 0 from x = 0 on, which is not a flip; against -1 it only rises.
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    net = Deep((one, one, one), 0 * one[0])
    for start in (1.0, 0.1):
        found = segments.along(net, start * one[0], one[0, 0], one[0, 0])
        assert found.all_at_once() == math.inf
        assert len(found.c) == 0


def test_a_flip_that_lasts_for_ever_is_not_undone_at_infinity() -> None:
    # N = σ(x + 1) - 2 σ(0·x + 1) falls from 1 at x = 2 through 0 at x = 1 to rest at -2.
    w = torch.tensor([[[1.0], [0.0]]], dtype=torch.float64)
    v = torch.tensor([[[1.0, -2.0]]], dtype=torch.float64)
    net = Deep((w, v), torch.ones(1, 2, dtype=torch.float64))
    one = torch.ones(1, dtype=torch.float64)
    found = segments.along(net, 2 * one[None], one, one)
    assert found.c.tolist() == pytest.approx([1.0])
    assert found.flips.tolist() == [True]


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    net, normal = normal_net(5, 4, [9, 7])
    x, y, u = normal(50, 4), normal(50).sign(), normal(4)
    whole = segments.along(net, x, y, u)
    monkeypatch.setattr(segments, "CHUNK", 7 * 2 * 9 * 9)
    parts = segments.along(net, x, y, u)
    torch.testing.assert_close(whole.first(), parts.first(), rtol=1e-12, atol=0)
    assert whole.all_at_once() == pytest.approx(parts.all_at_once(), rel=1e-12)
    assert len(whole.c) == len(parts.c) > 5
