"""Every stage runs on a CUDA device: a real one if there is one, else a pretended one (pretend_cuda.py)."""

from __future__ import annotations

import contextlib
import importlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from brittle.core import device as devices
from brittle.core import store
from brittle.core.errors import BadInput
from brittle.core.params import load
from brittle.core.rng import rng
from brittle.nets.symmetric import Symmetric
from brittle.nets.two_layer import initial
from brittle.nets.weights import flat
from brittle.tools.graph import Stage, stages
from brittle.tools.observe import few_pictures, write_plugins, write_tiny
from brittle.train import flow, image_sgd, purify
from brittle.train.image_sgd import ImagePlan
from brittle.train.passes import Passes
from brittle.worlds import sphere
from pretend_cuda import COMPILER, Device, pretended
from tiny import set_params

REAL = torch.cuda.is_available()
pytestmark = pytest.mark.skipif(not (REAL or COMPILER), reason="no CUDA device, and no C++ compiler to pretend one")

STAGES = stages()
# Smaller still than the tiny scale, because every operator passes through Python.
SMALLER = {
    "device": "cpu",
    "sweep.ds": [16],
    "sweep.width_ds": [16],
    "sweep.log10_target": -2,
    "minibatch.log10_target": -1,
    "minibatch.every": 2,
    "optimisers.log10_target": -2,
    "variants.log10_target": -2,
    "variants.width": 40,
    "unseen.log10_target": -2,
    "powers.epochs": 2,
    "sparse.grid.variants": [],
    "sparse.taus": [0.3],
    "cifar10.nets": ["alexnet"],
    "cifar10.attackers": ["l2-1-0.25"],
    "cifar10.lasso.weights": [0.5],
    "cifar10.lasso.pictures": 1,
    "cross.worlds": ["lms-5"],
    "cross.remedies": ["nothing", "dropout"],
    "cross.training.updates": 4,
    "cross.measure.attacked": 2,
    "cross.measure.bracketed": 1,
    "cross.seeds": [0],
    "mnist_cifar.worlds": ["0-1-automobile-truck"],
}
SHORTER = {
    "brittle.slabs.adversarial_probe.LINE": 3,
    "brittle.slabs.adversarial_probe.STEPS": 2,
    "brittle.slabs.adversarial_probe.HALVINGS": 1,
    "brittle.attacks.minimum_norm_pgd.BACK": 2,
    "brittle.attacks.evaluation.STEPS": 2,
    "brittle.attacks.softened_pgd.PGD_STEPS": 4,
    "brittle.pictures.cifar10_lasso.MOST": 20,
}
ON_DEVICE = [name for name, stage in STAGES.items() if "device" in stage.definition.get("params", [])]


@contextlib.contextmanager
def gpu() -> Iterator[Device | None]:
    """A CUDA device: None stands for a real one, which counts nothing."""
    try:
        if REAL:
            yield None
        else:
            with pretended() as device:
                yield device
    finally:
        store.computed_on("")


# --- Every stage that reads `device`


@dataclass
class Ran:
    """What a stage left on the CPU and on the device."""

    error: Exception | None = None
    device: Device | None = None
    models: list[tuple[Path, Path]] = field(default_factory=list)


def execute(stage: Stage, values: dict[str, Any]) -> None:
    module = importlib.import_module(stage.module)
    params = load(getattr(module, module.main.__annotations__["params"]))
    for cell in stage.cells(values):
        module.main(params, *([] if cell is None else [cell]))


def needed(names: list[str]) -> list[Stage]:
    """These stages and all that they need, in an order in which they can run."""
    made = {out: stage for stage in STAGES.values() for out in stage.outputs}
    made |= {str(Path(out).parent): stage for out, stage in made.items() if "${" in out}
    todo, found = list(names), set()
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += [made[dep].name for dep in STAGES[name].inputs if dep in made]
    return [stage for stage in STAGES.values() if stage.name in found]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Every stage that reads `device`, tiny: first on the CPU, then on the device, with the same inputs."""
    cpu, cuda, found = tmp_path_factory.mktemp("cpu"), tmp_path_factory.mktemp("cuda") / "run", {}
    values = write_tiny(cpu / "params.yaml")
    set_params(cpu / "params.yaml", SMALLER)
    values |= SMALLER
    write_plugins(cpu / "plugins")
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch("brittle.pictures.fetch.obtain", few_pictures))
        for name, value in SHORTER.items():
            stack.enter_context(mock.patch(name, value))
        with contextlib.chdir(cpu):
            for stage in needed(ON_DEVICE):
                execute(stage, values)
        shutil.copytree(cpu, cuda)
        set_params(cuda / "params.yaml", {"device": "cuda"})
        with contextlib.chdir(cuda):
            for name in ON_DEVICE:
                found[name] = Ran()
                try:
                    with gpu() as found[name].device:
                        execute(STAGES[name], values)
                except Exception as error:
                    found[name].error = error
                outs = [Path(out) for out in STAGES[name].outputs if out.startswith("models/")]
                files = [file for out in outs for file in Path(out.parent).glob(re.sub(r"\$.*}", "*", out.name))]
                found[name].models = [(cpu / file, cuda / file) for file in files]
    return found


@pytest.mark.parametrize("stage", ON_DEVICE)
def test_a_stage_that_reads_device_computes_there(stage: str, ran: dict[str, Ran]) -> None:
    if error := ran[stage].error:
        raise error
    if counted := ran[stage].device:
        assert counted.launches
        assert not counted.wrong


# These draw from the device's own stream (dropout), whose numbers are not the CPU's.
OWN_STREAM = {"recipes_train", "cross_train", "cifar10_train", "cifar10_layers", "mnist_cifar_train"}

# On a device it adds up all neurons, on the CPU only those that are on: the sums are rounded differently.
OWN_SUMS = {"sparse_train"}


@pytest.mark.skipif(REAL, reason="a real device rounds as it likes")
@pytest.mark.parametrize("stage", [name for name in ON_DEVICE if any("models/" in out for out in STAGES[name].outputs)])
def test_a_stage_trains_the_networks_of_the_cpu(stage: str, ran: dict[str, Ran]) -> None:
    assert ran[stage].models
    assert bool(ran[stage].device.random) == (stage in OWN_STREAM)
    for cpu, cuda in ran[stage].models:
        assert store.device_of(cpu) == ""
        assert store.device_of(cuda).startswith("cuda, ")
        ours, theirs = load_file(cuda), load_file(cpu)
        assert ours.keys() == theirs.keys()
        if stage in OWN_SUMS:
            for name, array in theirs.items():
                np.testing.assert_allclose(ours[name], array, rtol=1e-3, atol=1e-4, err_msg=name)
        elif stage not in OWN_STREAM:
            assert all(ours[name].tobytes() == theirs[name].tobytes() for name in theirs), cuda


# --- What a device would refuse is caught


def planted(name: str) -> None:
    x = torch.ones(4, 3, device="cuda")
    if name == "mixed":
        x + torch.ones(4, 3)
    elif name == "index":
        torch.ones(4)[x.sum(1).long()]
    elif name == "generator":
        torch.randn(3, generator=torch.Generator(), device="cuda")
    elif name == "generator of the device":
        torch.randn(3, generator=torch.Generator("cuda"))
    elif name == "numpy":
        x.numpy()
    elif name == "order":
        x.cumsum(0)
    elif name == "weights":
        x.flatten().long().bincount(weights=x.flatten())
    else:
        weight = torch.nn.Parameter(torch.ones(2, 3, 4, 4, device="cuda").to(memory_format=torch.channels_last))
        optimiser = torch.optim.SGD([weight], 0.1, 0.9, fused=True)
        optimiser.state[weight]["momentum_buffer"] = torch.ones(2, 3, 4, 4, device="cuda")
        weight.sum().backward()
        optimiser.step()


@pytest.mark.parametrize(
    "name", ["mixed", "index", "generator", "generator of the device", "numpy", "order", "weights", "strides"]
)
def test_a_planted_bug_is_caught(name: str) -> None:
    with gpu():
        devices.pick("cuda")
        try:
            with pytest.raises((RuntimeError, TypeError)):
                planted(name)
        finally:
            torch.use_deterministic_algorithms(False)


def test_what_waits_is_counted_and_what_only_describes_memory_is_not() -> None:
    with pretended() as device:
        x = torch.ones(4, device="cuda")
        before = device.launches.total(), device.waits.total()
        y = x.view(2, 2).T + 1
        assert (device.launches.total() - before[0], device.waits.total() - before[1]) == (1, 0)
        float(y.sum())
        y[y > 0]
        y.cpu()
        assert device.waits.total() - before[1] == 3


def test_random_numbers_of_the_device_are_its_own() -> None:
    with gpu():
        drawn = torch.randn(8, generator=torch.Generator("cuda").manual_seed(1), device="cuda").cpu()
        again = torch.randn(8, generator=torch.Generator("cuda").manual_seed(1), device="cuda").cpu()
    assert torch.equal(drawn, again)
    assert not torch.equal(drawn, torch.randn(8, generator=torch.Generator().manual_seed(1)))


# --- Loops that do not make a device wait compute what the others do


@pytest.mark.parametrize("sigma", [0.0, 0.02])
def test_neurons_that_are_off_add_nothing_on_a_device(sigma: float) -> None:
    draws = torch.Generator().manual_seed(0)
    w, x = torch.randn(30, 8, generator=draws), torch.randn(20, 8, generator=draws)
    here = Symmetric(w, 1.5, sigma).look(x)
    with gpu() as counting:
        there = Symmetric(w.to("cuda"), 1.5, sigma).look(x.to("cuda"))
        if counting:
            assert not counting.waits
        scores, gradient = there.scores.cpu(), there.input_gradient().cpu()
        weights = there.weight_gradient(x[:, 0].to("cuda"), x.to("cuda")).cpu()
    torch.testing.assert_close(scores, here.scores, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, here.input_gradient(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(weights, here.weight_gradient(x[:, 0], x), rtol=1e-5, atol=1e-5)


def test_samples_drawn_ahead_are_the_same_in_the_same_order() -> None:
    drawn = []
    assert list(purify.ahead(n for n in range(5) if drawn.append(n) is None)) == list(range(5)) == drawn
    one_more = purify.ahead(drawn.append(n) or n for n in range(10, 20))
    next(one_more)
    one_more.close()
    assert max(drawn) <= 11  # at most one ahead of what is used


def test_flow_waits_once_a_step_and_finds_the_networks_of_the_cpu() -> None:
    drawn = [sphere.sample(30, 30, rng(seed, "gpu data")) for seed in range(4)]
    x, y = (torch.from_numpy(np.stack(part)).float() for part in zip(*drawn, strict=True))
    net, trials = initial(30, 200, 1.0, [rng(seed, "gpu init") for seed in range(4)]), []
    how = {"loss": "exponential", "ln_target": -20.0, "momentum": 0.7, "max_steps": 1000}
    move = Passes.move
    with mock.patch.object(Passes, "move", lambda *given: trials.append(1) or move(*given)):
        here, _ = flow.train(x, y, net, **how)
    with gpu() as counting:
        device = torch.device("cuda")
        there, state = flow.train(x.to(device), y.to(device), net.to(device), **how)
        steps = len(state.history)
        if counting:
            assert counting.waits.total() <= steps + 1  # the one before the first
            assert len(trials) > 1.3 * steps  # on the CPU
            for ours, theirs in zip(vars(there).values(), vars(here).values(), strict=True):
                assert torch.equal(ours.cpu(), theirs)


# --- Bugs that only a device would have shown


def test_convolutions_and_products_are_float32_and_not_tf32() -> None:
    torch.backends.cudnn.allow_tf32 = True
    with gpu():
        devices.pick("cuda")
        assert not torch.backends.cudnn.allow_tf32
        assert torch.get_float32_matmul_precision() == "highest"
        torch.use_deterministic_algorithms(False)


def test_training_on_pictures_resumes_on_a_device_to_the_same_weights() -> None:
    """Momentum comes back in the layout of its weights, without which fused SGD refuses it."""
    plan = ImagePlan(epochs=2, batch=4, lr=0.1, momentum=0.9, weight_decay=0.0)
    with gpu():
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2)
        )
        net = net.to("cuda", memory_format=torch.channels_last)
        x = torch.arange(8 * 8 * 8 * 3, dtype=torch.uint8).view(8, 8, 8, 3).to("cuda")
        y = torch.tensor([0, 1] * 4, device="cuda")
        seen = []
        image_sgd.train(net, x, y, plan, 0, each_epoch=lambda now: seen.append(now()))
        ended = flat(net)
        image_sgd.train(net, x, y, plan, 0, start=seen[0])
        assert all((ended[name] == array).all() for name, array in flat(net).items())


def test_a_gpu_that_was_promised_and_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` must not silently mean the CPU where a worker was given a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(BadInput, match="CUDA_VISIBLE_DEVICES = 7: torch finds no such CUDA device"):
        devices.pick("auto")
    for hidden in ("", "-1", "NoDevFiles"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert devices.pick("auto").type == "cpu"


def test_metrics_say_which_device_computed_them_unless_it_was_the_cpu(tmp_path: Path) -> None:
    model, metrics = tmp_path / "model.safetensors", tmp_path / "metrics.json"

    def measured(device: str) -> dict[str, object]:
        store.computed_on(device)
        store.save_tensors(model, {"w": np.ones(3)})
        store.computed_on("")  # another process, on the CPU
        store.load_tensors(model, {"w": "n"})
        store.save_metrics(metrics, {"c": 1.5})
        return store.load_metrics(metrics)

    assert measured("") == {"c": 1.5}
    assert measured("cuda, Some GPU") == {"c": 1.5, "device": "cuda, Some GPU"}
    store.computed_on("")
