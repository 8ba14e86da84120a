"""SGD on pictures: against a plain loop of torch.optim, its data, and training that is stopped and goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from brittle.attacks.image_pgd import Attacker
from brittle.core import progress as progress_module
from brittle.core import store
from brittle.core.device import check_bfloat16
from brittle.core.errors import BadInput
from brittle.core.progress import Checkpoint, Checkpoints
from brittle.core.rng import rng
from brittle.nets import weights
from brittle.nets.alexnet import AlexNet
from brittle.nets.image_layers import Layered
from brittle.nets.pre_resnet import PreResNet
from brittle.nets.weights import flat
from brittle.pictures import fitting
from brittle.pictures.params import Images
from brittle.train.batch_norm import recalibrate
from brittle.train.image_sgd import ImagePlan, Progress, augmented, loss_of, train
from brittle.worlds.pixels import shown

SIDE, CLASSES = 8, 4
PLAN = ImagePlan(epochs=4, batch=8, lr=0.05, momentum=0.9, weight_decay=1e-2, drops=(2, 3), factor=0.3)
Weights = dict[str, np.ndarray]


class Tiny(nn.Module):
    """With batch normalisation; and dropout, where it is asked for."""

    def __init__(self, outputs: int = CLASSES, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.bn = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.second, self.last = nn.Conv2d(6, 6, 3, stride=2), nn.Linear(6 * 9, outputs)
        self.dropout = nn.Dropout(dropout)
        random = rng(0, "tiny")
        for p in self.parameters():
            p.data = torch.from_numpy(0.3 * random.standard_normal(p.shape, dtype=np.float32))
        self.to(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(torch.relu(self.bn(self.first(x - 0.5)))).relu()
        y = self.last(self.dropout(y.flatten(1)))
        return y[:, 0] if y.shape[1] == 1 else y


def data(n: int = 28, side: int = SIDE) -> tuple[Tensor, Tensor]:
    """Random pictures, brighter for larger labels."""
    random = rng(0, "pictures")
    y = random.integers(0, CLASSES, n)
    x = random.integers(0, 128, (n, side, side, 3)) + 32 * y[:, None, None, None]
    return torch.from_numpy(x.astype(np.uint8)), torch.from_numpy(y)


def equal(one: Weights, other: Weights) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(array, other[name]) for name, array in one.items())


@dataclass
class Recorder:
    """An attack that changes nothing and remembers all."""

    batches: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def __call__(
        self, net: nn.Module, x: Tensor, y: Tensor, epoch: float, noise: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        assert net.training
        assert x.is_contiguous(memory_format=torch.channels_last)
        self.batches.append((x.clone(), y.clone()))
        self.times.append(epoch)
        return x, y


# A plain loop


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("outputs", [1, CLASSES])
def test_training_is_that_of_torch_optim(outputs: int, momentum: float) -> None:
    x, y = data()
    if outputs == 1:
        y = torch.where(y > 1, 1.0, -1.0)
    net, seen = Tiny(outputs).double(), Recorder()
    plan = replace(PLAN, momentum=momentum)
    other = deepcopy(net).to(memory_format=torch.contiguous_format).train()
    casting: Callable = lambda net, x, y, epoch, noise: (seen(net, x, y, epoch, noise)[0].double(), y)  # noqa: E731
    losses = train(net, x, y, plan, seed=3, attack=casting)

    optimiser = torch.optim.SGD(other.parameters(), lr=0.0, momentum=momentum, weight_decay=1e-2)
    rates, expected = [0.05, 0.05, 0.015, 0.0045], []
    for epoch, rate in enumerate(rates):
        optimiser.param_groups[0]["lr"] = rate
        total = 0.0
        for some, truth in seen.batches[3 * epoch : 3 * epoch + 3]:
            logits = other(some.contiguous().double())
            if outputs == 1:
                loss = softplus(-truth * logits).mean()
            else:
                loss = (logits.exp().sum(1).log() - logits[range(8), truth]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() / 3
        expected.append(total)
    assert losses == pytest.approx(expected, rel=1e-6)
    for name, value in other.state_dict().items():
        torch.testing.assert_close(net.state_dict()[name], value, rtol=1e-6, atol=1e-9)
    assert not equal(flat(net), flat(Tiny(outputs).double()))
    assert seen.times == pytest.approx([epoch + i / 3 for epoch in range(4) for i in range(3)])


def test_the_learning_rate_falls_after_the_epochs_of_drops() -> None:
    plan = replace(PLAN, lr=0.5, drops=(1, 3), factor=0.1)
    assert [plan.rate(epoch) for epoch in range(5)] == pytest.approx([0.5, 0.05, 0.05, 0.005, 0.005])
    assert replace(plan, drops=()).rate(99) == 0.5


def test_learning_stops_where_the_rate_is_tiny() -> None:
    """A drop after epoch 2 to nearly 0: two epochs learn, the others do not."""
    x, y = data()
    plan, paths = replace(PLAN, momentum=0.0, drops=(2,), factor=1e-12), []
    train(Tiny(), x, y, plan, 0, each_epoch=lambda now: paths.append(now().weights["first.weight"]))
    moved = [float(np.abs(a - b).max()) for a, b in pairwise([flat(Tiny())["first.weight"], *paths])]
    assert min(moved[:2]) > 1e-3
    assert max(moved[2:]) < 1e-6


def test_losses_are_cross_entropies() -> None:
    logits, y = torch.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, 3.0]]), torch.tensor([0, 2])
    by_hand = [np.log(np.exp(row).sum()) - row[label] for row, label in zip(logits.numpy(), y, strict=True)]
    assert float(loss_of(logits, y)) == pytest.approx(np.mean(by_hand))
    f, signs = torch.tensor([2.0, -1.0, 0.3, 500.0]), torch.tensor([1.0, 1.0, -1.0, -1.0])
    assert float(loss_of(f, signs)) == pytest.approx(float(np.logaddexp(0, -(signs * f).double().numpy()).mean()))
    both = torch.stack([torch.zeros(4), f], 1)  # one logit is the difference of two
    assert float(loss_of(both, (signs > 0).long())) == pytest.approx(float(loss_of(f, signs)))


def test_weight_decay_and_momentum_leave_frozen_layers_alone() -> None:
    x, y = data(16, side=32)
    for net, before in ((AlexNet(CLASSES, width=0.1), 2), (PreResNet(10, classes=CLASSES), 3)):
        net.draw(rng(0, "weights"))
        net.freeze(before)
        first = flat(net)
        train(net, x, y, replace(PLAN, epochs=1, weight_decay=0.1), 0, Attacker("l2", 0.5, 1))
        frozen = {
            name
            for name, part in net.named_modules()
            if any(part is other for layer in net.layers[:before] for other in layer)
        }
        for name, array in flat(net).items():
            assert np.array_equal(array, first[name]) == (name.rpartition(".")[0] in frozen), name


# The data


def test_bytes_become_pixels_with_the_channels_last() -> None:
    x, _ = data(5)
    some = shown(x)
    assert some.shape == (5, 3, SIDE, SIDE)
    assert some.dtype == torch.float32
    assert some.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(some.numpy(), np.moveaxis(x.numpy(), 3, 1) / 255, rtol=1e-6)
    assert float(shown(torch.full((1, 2, 2, 3), 255, dtype=torch.uint8)).max()) == 1


def key(picture: Tensor) -> bytes:
    return (picture * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy().tobytes()


def test_an_epoch_shows_each_picture_once_in_a_new_order_with_its_label() -> None:
    x, y = data()
    labels = {picture.numpy().tobytes(): int(label) for picture, label in zip(x, y, strict=True)}
    assert len(labels) == 28
    seen = Recorder()
    train(Tiny(), x, y, PLAN, 0, seen)
    orders = []
    for epoch in range(4):
        batches = seen.batches[3 * epoch : 3 * epoch + 3]
        assert [len(some) for some, _ in batches] == [8, 8, 8]  # the last four are left out
        order = [key(picture) for some, _ in batches for picture in some]
        assert len(set(order)) == 24
        assert [labels[picture] for picture in order] == torch.cat([truth for _, truth in batches]).tolist()
        orders.append(order)
    assert len(set(map(tuple, orders))) == 4
    assert len({picture for order in orders for picture in order}) == 28  # others are left out in other epochs


def test_fewer_pictures_than_a_batch_are_one_batch() -> None:
    x, y = data(5)
    seen = Recorder()
    losses = train(Tiny(), x, y, replace(PLAN, epochs=2), 0, seen)
    assert [len(some) for some, _ in seen.batches] == [5, 5]
    assert np.isfinite(losses).all()


def test_seeds_and_epochs_have_their_own_orders() -> None:
    x, y = data()
    orders = set()
    for seed in (0, 1):
        seen = Recorder()
        train(Tiny(), x, y, replace(PLAN, epochs=2), seed, seen)
        orders |= {key(seen.batches[0][0][0]), key(seen.batches[3][0][0])}
    assert len(orders) > 2


def crop_of(picture: Tensor, original: Tensor, reach: int = 4) -> tuple[int, int, bool]:
    """How far it was shifted, and whether it was mirrored; by trying all."""  # (h, w, 3)
    h, w, _ = original.shape
    padded = np.zeros((h + 2 * reach, w + 2 * reach, 3), np.uint8)
    padded[reach : reach + h, reach : reach + w] = original.numpy()
    found = []
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            crop = padded[i : i + h, j : j + w]
            found += [(i - reach, j - reach, False)] if np.array_equal(picture, crop) else []
            found += [(i - reach, j - reach, True)] if np.array_equal(picture, crop[:, ::-1]) else []
    assert len(found) == 1
    return found[0]


def test_augmented_pictures_are_crops_of_padded_ones_half_of_them_mirrored() -> None:
    n = 600
    x = torch.from_numpy(rng(0, "x").integers(1, 256, (n, 9, 7, 3), dtype=np.uint8))
    given = x.clone()
    y = augmented(x, rng(0, "draws"))
    assert torch.equal(x, given)
    assert y.dtype == torch.uint8
    assert y.shape == x.shape
    assert y.is_contiguous()
    crops = [crop_of(after, before) for after, before in zip(y, x, strict=True)]
    rows, columns, mirrored = zip(*crops, strict=True)
    assert abs(sum(mirrored) - n / 2) < 4 * np.sqrt(n) / 2
    for shifts in (rows, columns):
        counts = Counter(shifts)
        assert set(counts) == set(range(-4, 5))
        assert all(abs(count - n / 9) < 5 * np.sqrt(n / 9) for count in counts.values())
    assert abs(np.corrcoef([rows, columns, mirrored]) - np.eye(3)).max() < 0.2  # drawn one by one
    assert torch.equal(augmented(x, rng(0, "draws")), y)
    assert not torch.equal(augmented(x, rng(1, "draws")), y)


def test_training_shows_augmented_pictures_and_other_ones_each_time() -> None:
    x = torch.from_numpy(rng(0, "x").integers(1, 256, (8, SIDE, SIDE, 3), dtype=np.uint8))
    y = torch.arange(8)
    seen = Recorder()
    train(Tiny(8), x, y, replace(PLAN, epochs=3, augment=True), 0, seen)
    crops = {}
    for some, truth in seen.batches:
        for picture, label in zip(some, truth, strict=True):
            bytes_ = (picture * 255).round().to(torch.uint8).permute(1, 2, 0)
            crops.setdefault(int(label), []).append(crop_of(bytes_, x[label]))
    assert len(crops) == 8
    assert all(len(set(found)) > 1 for found in crops.values())


# Stopping and going on

ATTACKS = {
    "clean": None,
    "l2 with noise": Attacker("l2", 0.5, 2, sigma=0.1, copies=2, warmup=2.0),
    "linf": Attacker("linf", 0.05, 2, warmup=1.5),
}


def kept_in(found: list[Progress]) -> Callable[[Callable[[], Progress]], None]:
    return lambda now: found.append(now())


def whole(net: nn.Module, plan: ImagePlan, attack: Attacker | None, side: int = SIDE) -> tuple[Weights, list[Progress]]:
    found: list[Progress] = []

    train(net, *data(side=side), plan, 5, attack, each_epoch=kept_in(found))
    return flat(net), found


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_stopped_after_any_epoch_training_goes_on_to_the_same_weights(momentum: float, attack: str) -> None:
    plan = replace(PLAN, momentum=momentum, augment=True)
    last, states = whole(Tiny(), plan, ATTACKS[attack])
    assert [state.epoch for state in states] == [1, 2, 3, 4]
    for state in states:
        net = Tiny()
        seen: list[Progress] = []
        losses = train(net, *data(), plan, 5, ATTACKS[attack], start=state, each_epoch=kept_in(seen))
        assert equal(flat(net), last)
        assert losses == states[-1].losses
        assert [progress.epoch for progress in seen] == list(range(state.epoch + 1, 5))


@pytest.mark.parametrize("kind", ["alexnet", "resnet"])
def test_real_networks_go_on_to_the_same_weights(kind: str) -> None:
    def build() -> Layered:
        net = AlexNet(CLASSES, 0.1) if kind == "alexnet" else PreResNet(10, classes=CLASSES)
        net.draw(rng(0, "weights"))
        net.freeze(1)
        return net.to(memory_format=torch.channels_last)

    plan = replace(PLAN, epochs=2, augment=True)
    attack = Attacker("l2", 0.5, 1, sigma=0.1, copies=2)
    last, (first, _) = whole(build(), plan, attack, side=32)
    net = build()
    train(net, *data(side=32), plan, 5, attack, start=first)
    assert equal(flat(net), last)


@pytest.mark.parametrize("attack", ATTACKS)
def test_lower_precision_is_near_goes_on_too_and_leaves_weights_in_full(attack: str) -> None:
    try:
        check_bfloat16(torch.device("cpu"))
    except BadInput as refused:
        pytest.skip(str(refused))

    def build() -> Layered:
        net = AlexNet(CLASSES, 0.1)
        net.draw(rng(0, "weights"))
        return net.to(memory_format=torch.channels_last)

    plan = replace(PLAN, epochs=3, lr=0.01)
    full, exact = whole(build(), plan, ATTACKS[attack], side=32)
    half, rough = whole(build(), replace(plan, precision="bfloat16"), ATTACKS[attack], side=32)
    assert not equal(half, full)
    assert {array.dtype for array in half.values()} == {np.dtype(np.float32)}
    assert rough[0].losses == pytest.approx(exact[0].losses, rel=0.05)
    net = build()
    train(net, *data(side=32), replace(plan, precision="bfloat16"), 5, ATTACKS[attack], start=rough[0])
    assert equal(flat(net), half)


def test_a_progress_that_was_kept_stays_as_it_was() -> None:
    found: list[Progress] = []
    train(Tiny(), *data(), PLAN, 0, each_epoch=lambda now: found.append(now()))
    assert [len(progress.losses) for progress in found] == [1, 2, 3, 4]
    assert len({progress.weights["first.weight"].tobytes() for progress in found}) == 4
    assert len({progress.momenta["first.weight"].tobytes() for progress in found}) == 4


def test_dropout_too_comes_from_the_number_of_the_epoch() -> None:
    """MobileNet and GoogLeNet have it: what they learn must not depend on what was drawn before, nor on a stop."""
    weights, states = [], []
    for seed in (1, 2):
        torch.manual_seed(seed)
        last, states = whole(Tiny(dropout=0.5), PLAN, None)
        weights.append(last)
    assert equal(*weights)
    net = Tiny(dropout=0.5)
    train(net, *data(), PLAN, 5, start=states[1])
    assert equal(flat(net), weights[0])


def test_training_stops_after_the_first_epoch_below_the_target() -> None:
    losses = train(Tiny(), *data(), replace(PLAN, epochs=12, drops=()), 0)
    assert len(losses) == 12
    target = float(np.quantile(losses, 0.5))
    first = next(i for i, loss in enumerate(losses) if loss < target)
    found: list[Progress] = []
    plan = replace(PLAN, epochs=12, drops=(), target=target)
    net = Tiny()
    assert train(net, *data(), plan, 0, each_epoch=lambda now: found.append(now())) == losses[: first + 1]
    assert len(found) == first + 1
    again = Tiny()
    assert train(again, *data(), plan, 0, start=found[-1]) == losses[: first + 1]  # and does not go on
    assert equal(flat(again), flat(net))


def test_training_stops_when_the_loss_is_not_finite() -> None:
    losses = train(Tiny(), *data(), replace(PLAN, lr=1e25), 0)
    assert len(losses) < 4
    assert not np.isfinite(losses[-1])


# As stages train: with a file


class Killed(Exception):
    pass


class Silent:
    """A bar that notes where it was; and a kill, after some batches."""

    def __init__(self, batches: float = np.inf) -> None:
        self.n, self.left, self.reached = 0.0, batches, []

    def reach(self, done: float) -> None:
        self.n = done
        self.reached.append(done)
        self.left -= 1
        if self.left < 0:
            raise Killed


def looked(net: nn.Module) -> dict[str, np.ndarray]:
    with torch.no_grad():
        net.eval()
        return {
            "logits": net(shown(data(3)[0])).numpy().copy(),
            "mean": np.array(float(net.bn.running_mean.mean())),
            "filters": net.first.weight.detach().numpy().copy(),
        }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For checkpoints, one after each epoch."""
    monkeypatch.setattr(progress_module, "FOLDER", tmp_path)
    monkeypatch.setattr(progress_module, "SECONDS", 0.0)
    return tmp_path


IMAGES = Images(root="nowhere", precision="float32", compile=False)


def fitted(
    bar: Silent,
    attack: Attacker | None = None,
    plan: ImagePlan = PLAN,
    look: fitting.Look | None = looked,
    net: nn.Module | None = None,
) -> fitting.Fit:
    x, y = data()
    options = {} if look is None else {"look": look}
    net = Tiny() if net is None else net
    stage = Checkpoints("some_stage")  # not resumable(): what is kept is to be there for the next run
    return fitting.fit(stage, IMAGES, net, x, y, plan=plan, seed=5, bar=bar, attack=attack, **options)


def forget(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def same(one: fitting.Fit, other: fitting.Fit) -> None:
    assert equal(flat(one.net), flat(other.net))
    assert one.losses == other.losses
    assert one.seen.keys() == other.seen.keys() == {"logits", "mean", "filters"}
    for name, rows in one.seen.items():
        assert np.array_equal(rows, other.seen[name])
        assert rows.dtype == other.seen[name].dtype


@pytest.mark.parametrize("attack", ["clean", "l2 with noise"])
@pytest.mark.parametrize("batches", [0, 2, 4, 7, 11])
def test_a_stage_that_is_killed_goes_on_to_the_same_end(folder: Path, batches: int, attack: str) -> None:
    plan = replace(PLAN, augment=True)
    expected = fitted(Silent(), ATTACKS[attack], plan)
    assert len(list(folder.iterdir())) == 1
    forget(folder)
    assert expected.seen["filters"].shape == (5, 6, 3, 3, 3)
    assert np.array_equal(expected.seen["filters"][0], Tiny().first.weight.detach())
    assert np.array_equal(expected.seen["filters"][-1], flat(expected.net)["first.weight"])
    with pytest.raises(Killed):
        fitted(Silent(batches), ATTACKS[attack], plan)
    assert len(list(folder.iterdir())) == (batches >= 3)
    bar = Silent()
    same(fitted(bar, ATTACKS[attack], plan), expected)
    assert len(bar.reached) == 12 - batches // 3 * 3 + 1
    assert bar.reached == sorted(bar.reached)
    assert bar.n == pytest.approx(fitting.effort(plan, 28, ATTACKS[attack]))


def test_a_stage_may_be_killed_many_times_and_while_it_looks(folder: Path) -> None:
    expected = fitted(Silent())
    forget(folder)
    calls = 0

    def nervous(net: nn.Module) -> dict[str, np.ndarray]:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise Killed
        return looked(net)

    for _ in range(20):
        try:
            result = fitted(Silent(), look=nervous)
            break
        except Killed:
            pass
    same(result, expected)
    assert calls == 7


def test_a_network_that_is_done_is_not_trained_again_until_it_is_forgotten(folder: Path) -> None:
    for plan in (PLAN, replace(PLAN, target=100.0)):  # the second stops after an epoch
        done = fitted(Silent(), plan=plan)
        bar = Silent()
        again = fitted(bar, plan=plan)
        same(again, done)
        assert len(bar.reached) == 1  # at the end
        forget(folder)
    assert len(done.losses) == 1
    assert len(done.seen["mean"]) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"plan": replace(PLAN, lr=0.06)},
        {"plan": replace(PLAN, augment=True)},
        {"attack": Attacker("l2", 0.5, 1)},
        {"attack": Attacker("l2", 0.6, 1)},
    ],
)
def test_another_training_does_not_go_on_from_this_one_s_file(folder: Path, change: dict) -> None:
    fitted(Silent(), plan=PLAN, attack=Attacker("l2", 0.5, 2))
    bar = Silent()
    fitted(bar, **change)
    assert len(bar.reached) == 13
    assert len(list(folder.iterdir())) == 2


def test_what_is_frozen_and_where_it_begins_are_part_of_a_training_s_name(folder: Path) -> None:
    bars = [Silent() for _ in range(3)]
    nets = [Tiny(), Tiny(), Tiny()]
    nets[1].first.requires_grad_(False)
    with torch.no_grad():
        nets[2].first.weight.mul_(2)
    for net, bar in zip(nets, bars, strict=True):
        fitted(bar, net=net)
    assert [len(bar.reached) for bar in bars] == [13, 13, 13]


def test_without_a_look_nothing_is_seen(folder: Path) -> None:
    with pytest.raises(Killed):
        fitted(Silent(7), look=None)
    assert fitted(Silent(), look=None).seen == {}


def test_a_loss_that_is_not_finite_gives_one_line(folder: Path) -> None:
    for _ in range(2):  # the same when it is run again
        with pytest.raises(
            BadInput, match=r"^params.yaml: some_stage: the loss is no longer finite after .* lower lr$"
        ):
            fitted(Silent(), plan=replace(PLAN, lr=1e25))


def test_no_file_is_written_while_none_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "FOLDER", tmp_path)
    saved = []
    monkeypatch.setattr(Checkpoint, "save", lambda self, arrays: saved.append(len(arrays["losses"])))
    fitted(Silent())
    assert saved == [4]


def test_a_stored_network_comes_back_with_its_statistics(tmp_path: Path) -> None:
    net = Tiny()
    train(net, *data(), PLAN, 0)
    store.save_tensors(
        tmp_path / "nets.safetensors", weights.named("0.clean", net) | weights.named("0.cleaner", Tiny())
    )
    arrays = store.load_tensors(tmp_path / "nets.safetensors", {})
    back = weights.take(Tiny(), arrays, "0.clean", "nets")
    assert equal(flat(back), flat(net))
    assert not back.training
    assert weights.digest(back) == weights.digest(net) != weights.digest(Tiny())
    with pytest.raises(BadInput, match=r"has no network 0\.robust"):
        weights.take(Tiny(), arrays, "0.robust", "nets")


# Batch normalisation's running statistics


def test_recalibrated_statistics_are_those_of_the_pictures_at_the_weights_as_they_are() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Dropout(0.5), nn.LazyLinear(1)).eval()
    x, _ = data(28)
    net(shown(x))
    before = [p.clone() for p in net.parameters()]
    recalibrate(net, x, batch=8)
    seen = net[0](shown(x[:24])).detach().unflatten(0, (3, 8))  # three whole batches of 8
    torch.testing.assert_close(net[1].running_mean, seen.mean((0, 1, 3, 4)))
    variances = torch.stack([batch.transpose(0, 1).flatten(1).var(1) for batch in seen])
    torch.testing.assert_close(net[1].running_var, variances.mean(0))
    assert all(torch.equal(p, old) for p, old in zip(net.parameters(), before, strict=True))
    assert net[1].momentum == 0.1
    assert not any(part.training for part in net.modules())
    recalibrate(net, x, batch=100)  # fewer than a batch are one
    torch.testing.assert_close(net[1].running_mean, net[0](shown(x)).detach().mean((0, 2, 3)))


def test_recalibration_cures_a_network_that_answers_everything_alike() -> None:
    """Right in training, by each batch's own statistics; wrong afterwards, by running ones that lag behind."""
    x = torch.from_numpy(rng(0, "x").integers(0, 256, (64, 4, 4, 3), dtype=np.uint8))
    x[32:] = 255 - x[:32]  # brighter on one side of the label
    y = torch.where(shown(x).mean((1, 2, 3)) > 0.5, 1.0, -1.0)
    net = nn.Sequential(nn.Conv2d(3, 1, 4), nn.BatchNorm2d(1), nn.Flatten())
    with torch.no_grad():
        net[0].weight.fill_(100 / 48)  # larger than when the running statistics were made
        net[0].bias.zero_()

    def accuracy() -> float:
        with torch.no_grad():
            return float(((net.eval()(shown(x))[:, 0] * y) > 0).float().mean())

    assert accuracy() == 0.5
    recalibrate(net, x, batch=32)
    assert accuracy() > 0.95
