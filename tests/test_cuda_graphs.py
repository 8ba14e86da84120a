"""CUDA graphs change no result, and what CUDA refuses while it captures one is caught: on a pretended device
(pretend_graphs.py), or on a real one if there is one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from brittle.attacks.fgm import Attack
from brittle.core import device as devices
from brittle.core.errors import BadInput
from brittle.core.rng import rng
from brittle.nets import symmetric
from brittle.nets.cnn import Cnn
from brittle.nets.family import Family
from brittle.nets.fcn import Fcn
from brittle.nets.gru import Gru
from brittle.nets.power_relu import PowerRelu
from brittle.nets.two_layer import initial
from brittle.train import flow, graphs, purify, sgd
from brittle.worlds import sphere
from brittle.worlds.sparse_coding import SparseCoding, labelling, orthogonal
from test_gpu import REAL, gpu, pytestmark  # noqa: F401, it skips these tests, too, where there is nothing to run on

CUDA = torch.device("cuda")


@pytest.fixture(autouse=True)
def switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(graphs.SWITCH, "1")


# --- The same networks with graphs as without


def by_flow(nets: int, loss: str, width: int = 20) -> list[Tensor]:
    drawn = [sphere.sample(12, 12, rng(seed, "graph data")) for seed in range(nets)]
    x, y = (torch.from_numpy(np.stack(part)).float().to(CUDA) for part in zip(*drawn, strict=True))
    net = initial(12, width, 1.0, [rng(seed, "graph init") for seed in range(nets)]).to(CUDA)
    trained, state = flow.train(x, y, net, loss=loss, ln_target=-7.0, momentum=0.7, max_steps=1000)
    return [trained.w, trained.b, trained.v, *state.history]


def by_sgd(family: Family, **plan: Any) -> list[Tensor]:
    x = torch.from_numpy(rng(0, "graph data").standard_normal((1, 128, 8))).float()
    y = torch.where(x[..., 0] > 0, 1.0, -1.0)
    members = [sgd.Member(seed, lr=0.1 + seed, momentum=0.5, weight_decay=1e-3) for seed in range(2)]
    plan = sgd.SgdPlan(epochs=4, batch=16, decay=0.9, **plan)
    state = sgd.train(family, members, x.to(CUDA), y.to(CUDA), plan)
    return [state.theta, state.memory1, state.memory2, state.losses]


def by_purify(attack: Attack | None = None, **stretch: float) -> list[Tensor]:
    draws = rng(0, "graph world")
    world = SparseCoding(orthogonal(16, 16, draws), labelling(16, 0.0, draws), k=3, sigma_x=0.3, margin=1.0)
    w = symmetric.pure(world.dictionary, world.w_star, 64, 0.5, 3e-3, draws).to(CUDA)
    state = purify.Training.begin(w, 0.07)
    rules = purify.Rules(momentum=0.9, decay=0.1 / 16, rho=0.05)
    purify.run(state, world, purify.Stretch(40, 8, 0.1, attack=attack, **stretch), rules, 0, "graph")
    return [state.w, state.velocity]


FCN = Fcn(8, 6, 2)
LOOPS: dict[str, Callable[[], list[Tensor]]] = {
    "flow, one network": lambda: by_flow(1, "exponential"),
    "flow, three networks": lambda: by_flow(3, "logistic"),
    "flow, wide networks": lambda: by_flow(3, "exponential", flow.NARROW),
    "sgd": lambda: by_sgd(FCN),
    "sgd, where a network finishes": lambda: by_sgd(FCN, target=0.4),
    "sgd, rmsprop": lambda: by_sgd(FCN, optimiser="rmsprop"),
    "sgd, muon": lambda: by_sgd(FCN, optimiser="muon"),
    "sgd, convolutional": lambda: by_sgd(Cnn(8, 2, 3, 1)),
    "sgd, recurrent": lambda: by_sgd(Gru(8, 2, 4, 1)),
    "sgd, powers of ReLU": lambda: by_sgd(PowerRelu(8, 6, 3.0)),
    "purify": by_purify,
    "purify, FGM": lambda: by_purify(Attack("l2", 0.3)),
    "purify, PGD": lambda: by_purify(Attack("linf", 0.05, 3)),
    "purify, where the bias grows to its end": lambda: by_purify(growth=0.5, most=0.075, prune=1),
    "purify, where the radius grows": lambda: by_purify(Attack("l2", 0.3), warm=0.3),
}
ONE_BY_ONE: dict[str, Callable[[], list[Tensor]]] = {  # what a recording would repeat for ever
    "sgd, adam": lambda: by_sgd(FCN, optimiser="adam"),
    "sgd, dropout": lambda: by_sgd(Fcn(8, 6, 2, dropout=0.3)),
}


@pytest.mark.parametrize("name", LOOPS | ONE_BY_ONE)
def test_training_with_graphs_gives_the_same_networks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, launches = {}, {}
    for switch in ("0", "1"):
        monkeypatch.setenv(graphs.SWITCH, switch)
        with gpu() as counting:
            devices.pick("cuda")
            found[switch] = [tensor.cpu().numpy().tobytes() for tensor in (LOOPS | ONE_BY_ONE)[name]()]
            torch.use_deterministic_algorithms(False)
        if counting:
            launches[switch] = counting.launches.total()
            assert bool(counting.replays) == (switch == "1" and name in LOOPS)
            assert not counting.wrong
    assert found["0"] == found["1"]
    assert not launches or (launches["1"] < launches["0"]) == (name in LOOPS)


# --- What `captured` promises


def test_only_a_gpu_and_the_switch_make_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    assert graphs.captured(by_flow, torch.device("cpu")) is by_flow
    monkeypatch.setenv(graphs.SWITCH, "0")
    assert graphs.captured(by_flow, CUDA) is by_flow
    monkeypatch.delenv(graphs.SWITCH)
    assert graphs.captured(by_flow, CUDA) is by_flow
    monkeypatch.setenv(graphs.SWITCH, "yes")
    with pytest.raises(BadInput, match=r"^BRITTLE_GRAPHS = yes: must be 1 \(record CUDA graphs\) or 0 \(do not\)$"):
        graphs.captured(by_flow, torch.device("cpu"))


def called(function: Callable[..., Any], times: int, *arguments: Any) -> Any:
    for _ in range(times):
        result = function(*arguments)
    return result


def test_other_shapes_and_other_values_are_recorded_anew() -> None:
    with gpu() as counting:
        times = graphs.captured(lambda x, factor: (x * factor).sum(0), CUDA)
        for n, factor in ((3, 2.0), (5, 2.0), (5, 4.0), (7, 2.0), (3, 2.0)):  # the first is forgotten by then
            for value in range(6):
                assert times(torch.full((n,), float(value), device=CUDA), factor).item() == n * factor * value
        if counting:
            assert (counting.recordings, counting.replays) == (5, 15)


def test_a_value_that_always_changes_is_never_recorded() -> None:
    with gpu() as counting:
        times = graphs.captured(lambda x, factor: x * factor, CUDA)
        assert [times(torch.ones((), device=CUDA), factor).item() for factor in range(9)] == list(range(9))
        assert not counting or not counting.recordings


def test_results_are_the_callers_own() -> None:
    with gpu():
        x, double = torch.ones(3, device=CUDA), graphs.captured(lambda x: 2 * x, CUDA)
        called(double, graphs.WARM, x)
        first, second = double(x), double(10 * x)
        assert (first.sum().item(), second.sum().item()) == (6, 60)


def test_what_is_still_is_changed_where_it_is_and_recorded_anew_elsewhere() -> None:
    with gpu() as counting:
        add = graphs.captured(lambda total, x: total.add_(x).sum(), CUDA, still=1)
        for total in (torch.zeros(2, device=CUDA), torch.ones(2, device=CUDA)):
            before = total.sum().item()
            called(add, 6, total, torch.ones(2, device=CUDA))
            assert total.sum().item() == before + 12
        assert not counting or counting.recordings == 2


# --- What CUDA refuses, and what a replay would do wrongly, is caught


def leaky() -> Callable[[Tensor], Tensor]:
    """A function that reads memory of which nobody has told it that it must stay."""
    hidden = [torch.ones(4, device=CUDA)]

    def function(x: Tensor) -> Tensor:
        result = x + hidden[0]
        hidden[0] = hidden[0] + 1
        return result

    return function


PLANTED: dict[str, tuple[Callable[[], Callable[[Tensor], Any]], str]] = {
    "a wait": (lambda: lambda x: x / x.sum().item(), "capturing: _local_scalar_dense"),
    "a condition": (lambda: lambda x: x if x.sum() > 0 else -x, "capturing: "),
    "a list of those that are on": (lambda: lambda x: x.nonzero(), "capturing: nonzero"),
    "a copy to the host": (lambda: lambda x: x + x.cpu().numpy().mean(), "capturing: a copy to the host"),
    "a copy from the host": (lambda: lambda x: x + torch.ones(4).to(CUDA), "capturing: a copy from the host"),
    "a number from the host": (lambda: lambda x: x * torch.tensor(2.0, device=CUDA), "a copy from the host"),
    "indices of the host": (lambda: lambda x: x[torch.tensor([1, 2])], "a copy from the host"),
    "waiting for all": (lambda: lambda x: torch.cuda.synchronize() or x, "synchronize: operation not permitted"),
    "its own generator": (
        lambda: partial(lambda g, x: x + torch.rand(4, generator=g, device=CUDA), torch.Generator(CUDA)),
        "a generator that is not registered",
    ),
    "memory that was freed": (leaky, "memory that has been freed"),
}


@pytest.mark.skipif(REAL, reason="a real device does not survive some of these")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_caught(name: str) -> None:
    make, words = PLANTED[name]
    with gpu() as counting:
        function = graphs.captured(make(), CUDA)
        x = torch.ones(4, device=CUDA)
        called(function, graphs.WARM, x)
        with pytest.raises(RuntimeError, match=words):
            called(function, 2, x)
        assert counting.wrong
        assert torch.cuda.current_stream() is torch.cuda.default_stream()
        assert not torch.cuda.is_current_stream_capturing()


def test_an_input_that_was_not_copied_in_keeps_its_first_value() -> None:
    """So the comparison of networks above would fail."""
    with gpu():
        state = {"x": torch.zeros(1, device=CUDA)}
        kept = [state["x"]]
        forgetful = graphs.captured(lambda one: one + state["x"], CUDA)
        seen = []
        for value in range(graphs.WARM + 3):
            state["x"] = torch.full((1,), float(value), device=CUDA)
            kept.append(state["x"])
            seen.append(forgetful(torch.ones(1, device=CUDA)).item() - 1)
        assert seen == [0, 1, 2, 3, 3, 3]


def test_a_count_of_the_program_stands_still_in_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adam, were it recorded, would take every update for the same one: the comparison above would fail."""
    monkeypatch.setitem(sgd.OPTIMISERS, "recorded adam", sgd.adam)
    with gpu():
        honest, wrong = (by_sgd(FCN, optimiser=name)[0].cpu() for name in ("adam", "recorded adam"))
    assert not torch.equal(honest, wrong)


@pytest.mark.skipif(REAL, reason="a race need not show")
@pytest.mark.parametrize("forgotten", ["before", "after"])
def test_streams_that_do_not_wait_for_each_other_are_caught(forgotten: str) -> None:
    with gpu():
        here, side = torch.cuda.current_stream(), torch.cuda.Stream()
        x = torch.ones(3, device=CUDA)
        if forgotten == "after":
            side.wait_stream(here)
            with torch.cuda.stream(side):
                x = x + 1
            side = here
        with torch.cuda.stream(side), pytest.raises(RuntimeError, match="wait_stream is missing"):
            x + 1


@pytest.mark.skipif(REAL, reason="a real device need not survive it")
def test_a_capture_computes_nothing_and_wants_a_stream_of_its_own() -> None:
    with gpu():
        x = torch.ones(3, device=CUDA)
        graph = torch.cuda.CUDAGraph()
        with pytest.raises(RuntimeError, match="non-default stream"):
            graph.capture_begin()
        with torch.cuda.graph(graph):
            y = x.mul_(2) + 1
        assert (x.cpu() == 1).all()
        assert y.cpu().isnan().all()
        graph.replay()
        graph.replay()
        assert (x.cpu() == 4).all()
        assert (y.cpu() == 5).all()


def test_random_numbers_of_the_device_are_new_in_every_replay() -> None:
    with gpu():
        draw = graphs.captured(lambda x: x + torch.rand(8, device=CUDA), CUDA)
        x = torch.zeros(8, device=CUDA)
        called(draw, graphs.WARM, x)
        assert not torch.equal(draw(x).cpu(), draw(x).cpu())
