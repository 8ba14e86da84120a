"""Networks for pictures: small maps as matrices, AlexNet, residual networks, torchvision's; drawing and freezing."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, conv2d, interpolate, linear, relu

from brittle.core.rng import rng
from brittle.nets import imagenet
from brittle.nets.alexnet import AlexNet
from brittle.nets.image_layers import MEAN, STD, Layered
from brittle.nets.pre_resnet import Block, PreResNet
from brittle.nets.small_map import PIXELS, QuickConv, StridedConv, bilinear, quicken
from brittle.nets.weights import flat, restore
from brittle.pictures import cifar10_nets, cifar10_probe
from brittle.pictures.cifar10_params import deepest_layer
from brittle.pictures.mnist_cifar_params import MODELS, STEMS

CPU = torch.device("cpu")


def numbers(purpose: str, *shape: int) -> Tensor:
    return torch.from_numpy(rng(0, purpose).standard_normal(shape))


def pixels(n: int, side: int = 32) -> Tensor:
    return torch.from_numpy(rng(0, "pixels").random((n, 3, side, side), dtype=np.float32))


def drawn(net: Layered, seed: int = 0) -> Layered:
    net.draw(rng(seed, "weights"))
    return net


# Small maps

SHAPES = [  # in, out, kernel, height, width
    (1, 1, (1, 1), 1, 1),
    (3, 5, (5, 5), 1, 1),
    (3, 5, (3, 3), 2, 2),
    (2, 4, (5, 5), 4, 4),
    (4, 2, (3, 3), 4, 4),
    (2, 3, (3, 3), 1, 4),
    (2, 3, (3, 5), 3, 2),
    (2, 3, (1, 3), 3, 3),
    (2, 3, (9, 9), 3, 4),
    (2, 3, (3, 3), 5, 4),  # larger than what is computed as a matrix
]


def both(into: int, out: int, kernel: tuple[int, int], bias: bool) -> tuple[QuickConv, nn.Conv2d]:
    """The same convolution in two ways, in float64."""
    padding = (kernel[0] // 2, kernel[1] // 2)
    ours = QuickConv(into, out, kernel, padding=padding, bias=bias).double()
    plain = nn.Conv2d(into, out, kernel, padding=padding, bias=bias).double()
    plain.load_state_dict(ours.state_dict())
    return ours, plain


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize(("into", "out", "kernel", "h", "w"), SHAPES)
def test_a_small_map_s_convolution_is_the_convolution(
    into: int, out: int, kernel: tuple[int, int], h: int, w: int, learning: bool, bias: bool
) -> None:
    ours, plain = both(into, out, kernel, bias)
    results = []
    for conv in (ours, plain):
        conv.requires_grad_(learning)
        x = numbers("x", 3, into, h, w).requires_grad_()
        y = conv(x)
        (y * numbers("weights", *y.shape)).sum().backward()
        results.append([y.detach(), x.grad, *(p.grad for p in conv.parameters() if learning)])
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), plain(x), rtol=0, atol=1e-12)


OPTIONS = [  # in, out, groups, kernel, stride, padding, height, width
    (6, 4, 1, 1, 1, 0, 7, 5),
    (6, 4, 1, 1, 2, 0, 7, 5),
    (4, 6, 1, 3, 2, 1, 4, 2),
    (4, 6, 1, 3, 1, 1, 8, 4),
    (4, 6, 1, 3, 1, 0, 6, 4),
    (4, 6, 1, 3, 3, 2, 4, 3),
    (6, 6, 6, 3, 1, 1, 2, 1),
    (6, 6, 6, 3, 2, 1, 2, 1),
    (6, 6, 6, 3, 1, 1, 4, 2),
    (6, 4, 2, 3, 1, 1, 2, 1),
]


@pytest.mark.parametrize(("into", "out", "groups", "size", "stride", "padding", "h", "w"), OPTIONS)
def test_a_quickened_convolution_is_the_convolution(
    into: int, out: int, groups: int, size: int, stride: int, padding: int, h: int, w: int
) -> None:
    conv = nn.Conv2d(into, out, size, stride=stride, padding=padding, groups=groups).double()
    x, found = numbers("x", 3, into, h, w).requires_grad_(), []
    for each in (deepcopy(conv), quicken(conv)):
        y = each(x)
        found.append([y, *torch.autograd.grad((y * numbers("weights", *y.shape)).sum(), [x, *each.parameters()])])
    for plain, quick in zip(*found, strict=True):
        torch.testing.assert_close(quick, plain, rtol=0, atol=1e-12)


def test_a_small_map_takes_fewer_products_than_pairs_of_pixels() -> None:
    """Karatsuba: 3 for 2 pixels, 9 for 4. Winograd: 4 for 2 outputs. A stride takes each pair that is connected."""

    def products(n: int, size: int, stride: int = 1) -> int:
        return len(bilinear((n, 1), (size, size), (stride, 1), (size // 2, size // 2))[0].b)

    assert [products(2, 3), products(4, 5), products(4, 3), products(8, 3), products(4, 3, 2)] == [3, 9, 8, 16, 5]


@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet50"])
def test_a_quickened_network_is_torchvision_s(name: str) -> None:
    net = imagenet.build(name, 0).double()
    plain = deepcopy(net)
    for part in plain.modules():
        if type(part) is QuickConv:
            part.__class__ = nn.Conv2d
    x = torch.rand(3, 3, 64, 32, dtype=torch.float64)
    found = []
    for each in (net, plain):
        torch.manual_seed(0)  # dropout's
        y = each(x)
        found.append([y, *torch.autograd.grad(y.sum(), list(each.parameters()))])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-9)


def test_a_small_map_s_convolution_takes_and_gives_channels_last() -> None:
    conv = QuickConv(4, 6, 3, padding=1).to(memory_format=torch.channels_last)
    x = numbers("x", 5, 4, 2, 2).float()
    last = x.contiguous(memory_format=torch.channels_last)
    assert conv(last).is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(conv(last), conv(x))
    assert conv(x[:1]).shape == (1, 6, 2, 2)
    assert conv(x[:0]).shape == (0, 6, 2, 2)


def step(conv: nn.Conv2d, **options: object) -> None:
    """One of SGD, forward and backward through another map."""
    optimiser = torch.optim.SGD(conv.parameters(), lr=0.1, momentum=0.9, **options)
    conv(numbers("other", 2, conv.in_channels, 2, 2)).square().sum().backward()
    optimiser.step()


def in_place(conv: nn.Conv2d) -> None:
    with torch.no_grad():
        conv.weight.mul_(1.5)


def one_entry(conv: nn.Conv2d) -> None:
    with torch.no_grad():
        conv.weight[0, 0, 1, 1] += 1


def loaded(conv: nn.Conv2d) -> None:
    conv.load_state_dict({name: value + 1 for name, value in conv.state_dict().items()})


def assigned(conv: nn.Conv2d) -> None:
    conv.load_state_dict({name: value + 1 for name, value in conv.state_dict().items()}, assign=True)


def replaced(conv: nn.Conv2d) -> None:
    conv.weight = nn.Parameter(conv.weight.detach() + 1)


def replaced_twice(conv: nn.Conv2d) -> None:
    """The memory of the first weights may be that of the third."""
    values = conv.weight.detach().clone()
    for _ in range(8):
        values = values + 1
        conv.weight = nn.Parameter(values.clone())


def step_one_by_one(conv: nn.Conv2d) -> None:
    step(conv, foreach=False)


CHANGES = [
    step,
    step_one_by_one,
    in_place,
    one_entry,
    loaded,
    assigned,
    replaced,
    replaced_twice,
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_kept_matrix_is_renewed_when_weights_change(change: Callable[[nn.Conv2d], None]) -> None:
    ours, plain = both(3, 4, (3, 3), bias=True)
    x = numbers("x", 2, 3, 2, 2)
    for _ in range(3):
        with torch.no_grad():
            torch.testing.assert_close(ours(x), plain(x), rtol=0, atol=1e-12)
        for conv in (ours, plain):
            change(conv)
        ours.requires_grad_(False)
        torch.testing.assert_close(ours(x), plain(x), rtol=0, atol=1e-12)
        ours.requires_grad_(True)
        torch.testing.assert_close(ours(x), plain(x), rtol=0, atol=1e-12)


def test_a_kept_matrix_is_for_one_size_of_map_and_dies_with_a_change_of_type() -> None:
    ours, plain = both(3, 4, (3, 3), bias=False)
    with torch.no_grad():
        for h, w in ((2, 2), (4, 4), (2, 2), (1, 4), (4, 1)):
            x = numbers("x", 2, 3, h, w)
            torch.testing.assert_close(ours(x), plain(x), rtol=0, atol=1e-12)
        x = numbers("x", 2, 3, 2, 2).float()
        torch.testing.assert_close(ours.float()(x), plain.float()(x))


def test_looking_between_steps_changes_nothing_of_training() -> None:
    """no_grad, then training, then frozen: each sees the weights of its moment, and gradients arrive."""
    ours, plain = both(3, 4, (3, 3), bias=True)
    optimisers = [torch.optim.SGD(conv.parameters(), lr=0.05, momentum=0.9) for conv in (ours, plain)]
    for number in range(5):
        x = numbers(f"x {number}", 4, 3, 2, 2)
        for conv, optimiser in zip((ours, plain), optimisers, strict=True):
            optimiser.zero_grad()
            conv(x).square().mean().backward()
            assert all(p.grad.any() for p in conv.parameters())
            optimiser.step()
        with torch.no_grad():
            torch.testing.assert_close(ours(x), plain(x), rtol=0, atol=1e-12)
    twin = deepcopy(ours)
    in_place(twin)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), plain(x), rtol=0, atol=1e-12)
        assert not torch.equal(twin(x), plain(x))


# Layers, shapes, and numbers of parameters


def maps(net: nn.Module, x: Tensor) -> list[tuple[str, tuple[int, ...]]]:
    """The convolutions in the order in which they are called, with their outputs' shapes."""
    found: list[tuple[str, tuple[int, ...]]] = []
    for name, part in net.named_modules():
        if isinstance(part, nn.Conv2d):
            part.register_forward_hook(lambda _, __, out, name=name: found.append((name, tuple(out.shape[1:]))))
    with torch.no_grad():
        net(x)
    return found


def count(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


def test_alexnet_is_the_one_for_small_pictures() -> None:
    net = AlexNet()
    assert count(net) == 2_472_266
    sizes = [(64, 8, 8), (192, 4, 4), (384, 2, 2), (256, 2, 2), (256, 2, 2)]
    assert [size for _, size in maps(net, pixels(2))] == sizes
    assert net(pixels(2)).shape == (2, 10)
    assert net.convolutions[0].weight.shape == (64, 3, 11, 11)
    assert len(net.convolutions) == 5 == len(net.layers) - 1
    narrow = AlexNet(classes=3, width=0.1)
    assert [conv.out_channels for conv in narrow.convolutions] == [64, 19, 38, 26, 26]
    assert narrow(pixels(2)).shape == (2, 3)


def by_hand(depth: int, widen: int, classes: int = 10) -> int:
    """Parameters of a wide residual network with pre-activation."""
    n, widths = (depth - 4) // 6, [16, 16 * widen, 32 * widen, 64 * widen]
    total = 3 * 9 * 16 + 2 * widths[3] + (widths[3] + 1) * classes
    for before, after in pairwise(widths):
        total += 9 * before * after + 9 * (2 * n - 1) * after**2  # 3 × 3
        total += 2 * before + 2 * (2 * n - 1) * after  # batch normalisation
        total += before * after if before != after else 0  # the shortcut
    return total


@pytest.mark.parametrize(("depth", "widen", "in_line"), [(34, 1, 31), (16, 1, 13), (10, 1, 7), (16, 4, 13)])
def test_residual_networks_have_the_paper_s_layers(depth: int, widen: int, in_line: int) -> None:
    net = PreResNet(depth, widen)
    assert count(net) == by_hand(depth, widen)
    assert len(net.convolutions) == in_line == len(net.layers) - 1
    names = {id(part): name for name, part in net.named_modules()}
    called = [(name, size) for name, size in maps(net.eval(), pixels(1)) if "project" not in name]
    assert [names[id(conv)] for conv in net.convolutions] == [name for name, _ in called]
    per_group = in_line // 3
    sizes = [(16, 32, 32)] + [(16 * widen << g, 32 >> g, 32 >> g) for g in range(3) for _ in range(per_group)]
    assert [size for _, size in called] == sizes
    assert net(pixels(1)).shape == (1, 10)


def test_the_widest_networks_have_as_many_parameters_as_published() -> None:
    with torch.device("meta"):
        assert count(PreResNet(28, 10)) == 36_479_194  # Zagoruyko and Komodakis 2016: 36.5 M
        assert count(PreResNet(16, 8)) == 10_961_370  # 11.0 M
        assert count(PreResNet(40, 4)) == by_hand(40, 4)  # 8.9 M


@pytest.mark.parametrize(
    "name", ["alexnet", "resnet-10", "resnet-16", "resnet-22", "resnet-28-2", "resnet-34", "resnet-40"]
)
def test_the_deepest_layer_that_params_allow_is_the_last_convolution(name: str) -> None:
    net = cifar10_nets.build(name, CPU)
    assert len(net.convolutions) == deepest_layer(name)
    assert net.convolutions[-1].weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("net", [AlexNet(width=0.1), PreResNet(16), PreResNet(10, 2)], ids=["alexnet", "16", "10-2"])
def test_every_parameter_and_statistic_belongs_to_one_layer(net: Layered) -> None:
    inside = [p for layer in net.layers for part in layer for p in (*part.parameters(), *part.buffers())]
    assert len({id(p) for p in inside}) == len(inside)
    assert {id(p) for p in inside} == {id(p) for p in (*net.parameters(), *net.buffers())}


def test_pixels_are_normalised_with_cifar10_s_mean_and_deviation() -> None:
    # of all pixels, from the well-known means and deviations of the three colours
    means, deviations = np.array([0.49140, 0.48216, 0.44653]), np.array([0.24703, 0.24349, 0.26159])
    assert pytest.approx(means.mean(), abs=1e-4) == MEAN
    assert pytest.approx(math.sqrt((deviations**2 + means**2).mean() - means.mean() ** 2), abs=1e-4) == STD
    x = pixels(2)
    given = x.clone()
    net = AlexNet(width=0.1)
    torch.testing.assert_close(net.normalise(x), (given - MEAN) / STD)
    net(x)
    assert torch.equal(x, given)


# Against a plain functional version


def plainly(state: dict[str, Tensor], depth: int, x: Tensor, training: bool) -> Tensor:
    """A residual network with pre-activation from its weights, nothing in place; statistics are left as they are."""

    def normalised(x: Tensor, name: str) -> Tensor:
        mean, var = (state[f"{name}.running_{of}"].detach().clone() for of in ("mean", "var"))
        return relu(batch_norm(x, mean, var, state[f"{name}.weight"], state[f"{name}.bias"], training))

    n = (depth - 4) // 6
    x = conv2d((x - MEAN) / STD, state["stem.weight"], padding=1)
    for number in range(3 * n):
        at, stride = f"blocks.{number}", 2 if number in (n, 2 * n) else 1
        active = normalised(x, f"{at}.bn1")
        inner = normalised(conv2d(active, state[f"{at}.conv1.weight"], stride=stride, padding=1), f"{at}.bn2")
        project = state.get(f"{at}.project.weight")
        shortcut = x if project is None else conv2d(active, project, stride=stride)
        x = shortcut + conv2d(inner, state[f"{at}.conv2.weight"], padding=1)
    x = normalised(x, "bn").mean(3).mean(2)
    return linear(x, state["classifier.weight"], state["classifier.bias"])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("depth", "widen"), [(16, 1), (10, 2)])
def test_a_residual_network_is_its_plain_functional_version(depth: int, widen: int, training: bool) -> None:
    net = drawn(PreResNet(depth, widen)).double().train(training)
    for name, value in net.named_buffers():  # statistics and scales that are not those of the beginning
        if value.ndim:
            value.copy_(numbers(name, *value.shape).abs() + 0.5)
    for name, p in net.named_parameters():
        if ".bn" in name or name.startswith("bn"):
            p.data.copy_(numbers(name, *p.shape) + 0.3)
    state = {name: value.detach().clone().requires_grad_() for name, value in net.state_dict().items() if value.ndim}
    x = pixels(3, side=16).double()
    weights = numbers("weights", 3, 10)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    expected = plainly(state, depth, theirs, training)
    torch.testing.assert_close(found := net(ours), expected, rtol=1e-9, atol=1e-9)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-7, atol=1e-9)
    for name, p in net.named_parameters():
        torch.testing.assert_close(p.grad, state[name].grad, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("after", "stride"), [(4, 1), (8, 1), (4, 2), (8, 2)])
def test_a_block_leaves_its_input_as_it_is(after: int, stride: int, training: bool) -> None:
    block = Block(4, after, stride).train(training)
    assert (block.project is None) == (after == 4 and stride == 1)
    x = numbers("x", 2, 4, 6, 6).float()
    given = x.clone()
    y = block(x)
    assert torch.equal(x, given)
    assert y.shape == (2, after, 6 // stride, 6 // stride)
    if block.project is None:  # with the branch cut, what comes out is what went in, negative numbers too
        nn.init.zeros_(block.conv2.weight)
        assert torch.equal(block(x), given)


def test_alexnet_is_its_plain_functional_version() -> None:
    net = drawn(AlexNet(width=0.2)).double()
    for name, p in net.named_parameters():
        if name.endswith("bias"):
            p.data.copy_(0.1 * numbers(name, *p.shape))
    x = pixels(3).double()
    y = (x - MEAN) / STD
    for number, conv in enumerate(net.convolutions):
        y = relu(conv2d(y, conv.weight, conv.bias, stride=4 if number == 0 else 1, padding=conv.kernel_size[0] // 2))
        if number in (0, 1, 4):
            y = y.unfold(2, 2, 2).unfold(3, 2, 2).amax((4, 5))
    expected = y.flatten(1) @ net.classifier.weight.T + net.classifier.bias
    torch.testing.assert_close(net(x), expected, rtol=0, atol=1e-10)
    with torch.no_grad():
        torch.testing.assert_close(net(x), expected, rtol=0, atol=1e-10)


# Drawing and freezing


@pytest.mark.parametrize("net", [AlexNet(), PreResNet(16, 4)], ids=["alexnet", "resnet"])
def test_random_weights_have_he_s_variance(net: Layered) -> None:
    net.draw(rng(0, "weights"), first=0.05)
    for name, part in net.named_modules():
        if isinstance(part, nn.Conv2d | nn.Linear):
            w = part.weight.detach()
            fan_in = part.in_features if isinstance(part, nn.Linear) else part.in_channels * math.prod(part.kernel_size)
            scale = 0.05 if name in ("stem", "features.0") else 1.0
            unit = w / (scale * math.sqrt(2 / fan_in))
            assert float(unit.square().mean()) == pytest.approx(1, abs=5 * math.sqrt(2 / w.numel())), name
            assert float(unit.mean()) == pytest.approx(0, abs=5 / math.sqrt(w.numel())), name
            assert float(unit.pow(4).mean()) == pytest.approx(3, abs=50 / math.sqrt(w.numel())), name  # normal
            assert part.bias is None or not part.bias.any()


def test_random_weights_are_those_that_pytorch_draws_by_itself() -> None:
    net = AlexNet()
    parts = [(part.weight, part.bias) for part in (*net.features, net.classifier)]
    own = [(weight.std().item(), weight.abs().max().item()) for weight, _ in parts]
    net.draw(rng(0, "weights"), initial="torch")
    for (weight, bias), (size, most) in zip(parts, own, strict=True):
        assert weight.std().item() == pytest.approx(size, rel=0.1)
        assert weight.abs().max().item() == pytest.approx(most, rel=0.01)
        assert 0 < bias.abs().max() <= weight[0].numel() ** -0.5
    net.draw(rng(0, "weights"), first=0.1, initial="torch")
    assert parts[0][0].std().item() == pytest.approx(0.1 * own[0][0], rel=0.1)


def test_he_s_variance_keeps_activity_alive_through_all_layers() -> None:
    net = drawn(AlexNet())
    x = STD * torch.from_numpy(rng(0, "noise").standard_normal((64, 3, 32, 32), dtype=np.float32)) + MEAN
    with torch.no_grad():
        assert 0.3 < float(net(x).std()) < 10


def test_drawing_since_a_layer_leaves_earlier_ones_and_is_reproducible() -> None:
    for net in (AlexNet(width=0.1), PreResNet(10)):
        drawn(net)
        net.train()
        net(pixels(4))  # so that statistics are not those of the beginning
        for since in (0, 1, 2, 3, len(net.layers) - 1):
            before = flat(net)
            others = deepcopy(net)
            net.draw(rng(1, f"since {since}"), since=since)
            others.draw(rng(1, f"since {since}"), since=since)
            after = flat(net)
            assert all(np.array_equal(after[name], array) for name, array in flat(others).items())
            early = {id(part) for layer in net.layers[:since] for part in layer}
            for name, part in net.named_modules():
                if isinstance(part, nn.Conv2d | nn.Linear):
                    same = np.array_equal(after[f"{name}.weight"], before[f"{name}.weight"])
                    assert same == (id(part) in early), name
                elif isinstance(part, nn.BatchNorm2d):
                    fresh = not after[f"{name}.running_mean"].any() and (after[f"{name}.running_var"] == 1).all()
                    assert fresh == (id(part) not in early), name
            net(pixels(4))


FROZEN = {  # of a residual network with one block a group: layer 2 begins in the middle of the first block
    0: (),
    1: ("stem.",),
    2: ("stem.", "blocks.0.conv1.", "blocks.0.bn1."),
    3: ("stem.", "blocks.0."),
    4: ("stem.", "blocks.0.", "blocks.1.conv1.", "blocks.1.bn1.", "blocks.1.project."),
    7: ("stem.", "blocks."),
}


def few_steps(net: Layered) -> None:
    learning = [p for p in net.parameters() if p.requires_grad]
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-2)
    for number in range(2):
        net.eval()
        net.train()
        optimiser.zero_grad()
        net(pixels(4, 8) + 0.1 * number).square().sum().backward()
        assert all(p.grad is not None for p in learning)
        optimiser.step()


@pytest.mark.parametrize("before", FROZEN)
def test_frozen_layers_keep_weights_and_statistics_and_all_others_learn(before: int) -> None:
    net = drawn(PreResNet(10))
    net.freeze(before)
    first = flat(net)
    few_steps(net)
    for name, array in flat(net).items():
        assert np.array_equal(array, first[name]) == name.startswith(FROZEN[before] or "nothing"), name
    net.freeze(0)
    assert all(p.requires_grad for p in net.parameters())
    assert all(part.training for part in net.modules())


@pytest.mark.parametrize("before", [1, 3])
def test_freezing_alexnet_freezes_its_first_layers(before: int) -> None:
    net = drawn(AlexNet(width=0.1))
    net.freeze(before)
    first = flat(net)
    optimiser = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1, weight_decay=1e-2)
    net(pixels(4)).square().sum().backward()
    optimiser.step()
    names = tuple(f"features.{number}." for number in range(before))
    for name, array in flat(net).items():
        assert np.array_equal(array, first[name]) == name.startswith(names), name


def test_what_a_frozen_layer_gives_does_not_depend_on_the_batch() -> None:
    net = drawn(PreResNet(10))
    net(pixels(8))  # some statistics
    net.freeze(3)
    net.train()
    x = pixels(8)
    with torch.no_grad():
        below = net.blocks[0](net.stem(net.normalise(x)))
        alone = net.blocks[0](net.stem(net.normalise(x[:1])))
    torch.testing.assert_close(below[:1], alone, rtol=1e-4, atol=1e-5)


def test_weights_come_back_as_they_were_stored() -> None:
    net = drawn(PreResNet(10))
    stored = flat(net)
    net(pixels(4))
    few_steps(net)
    assert all(np.array_equal(array, flat(drawn(PreResNet(10)))[name]) for name, array in stored.items())  # a copy
    restore(net, stored)
    assert all(np.array_equal(array, stored[name]) for name, array in flat(net).items())
    with torch.no_grad():
        net.stem.weight.zero_()
    assert stored["stem.weight"].any()


def test_a_neuron_that_is_off_is_visualised_too() -> None:
    """The ReLU after a convolution works in place: it must not reach what is excited."""
    p = SimpleNamespace(visualise=SimpleNamespace(neurons=4, steps=8, lr=0.5, decay=0.01))
    net = drawn(AlexNet(width=0.1)).eval()
    with torch.no_grad():
        net.convolutions[2].bias.fill_(-50.0)
    seen = cifar10_probe.visualised(p, net, 3)
    grey = torch.full_like(seen, 0.5)
    outs: list[Tensor] = []
    net.convolutions[2].register_forward_hook(lambda _, __, out: outs.append(out.clone()))
    with torch.no_grad():
        net(seen)
        net(grey)
    excited, rest = (out[range(4), range(4), 1, 1] for out in outs)
    assert (excited > rest + 0.1).all()


# torchvision's

# A module, and how many times smaller the maps that reach it are: with ImageNet's stem, and with CIFAR's.
REACHED = {
    "mobilenet_v2": {"features.2": (2, 1), "features.4": (4, 1), "features.7": (8, 2)},
    "googlenet": {"inception3a": (8, 1), "inception4a": (16, 2), "inception5a": (32, 4)},
    "resnet50": {"maxpool": (2, 1), "layer1": (4, 2), "layer4": (16, 8)},
    "densenet121": {"features.pool0": (2, 1), "features.denseblock1": (4, 2), "features.denseblock4": (32, 16)},
}
PARAMETERS = {  # of the networks for CIFAR, by hand: torchvision's, less its first layers, plus the 3 × 3 convolution
    "mobilenet_v2": 0,
    "googlenet": 3 * 192 * 9 + 2 * 192 - (3 * 64 * 49 + 2 * 64 + 64 * 64 + 2 * 64 + 64 * 192 * 9 + 2 * 192),
    "resnet50": 3 * 64 * (9 - 49),
    "densenet121": 3 * 64 * (9 - 49),
}


@pytest.mark.parametrize("name", MODELS)
def test_torchvision_s_networks_have_one_logit_and_either_stem(name: str) -> None:
    x = torch.from_numpy(rng(0, "x").random((2, 3, 64, 32), dtype=np.float32))
    nets = [imagenet.build(name, 0, stem).eval() for stem in STEMS]
    for i, net in enumerate(nets):
        seen: dict[str, Tensor] = {}
        for part in REACHED[name]:
            net.net.get_submodule(part).register_forward_pre_hook(
                lambda _, args, part=part, seen=seen: seen.update({part: args[0]})
            )
        with torch.no_grad():
            assert net(x).shape == (2,)
            shapes = {part: tensor.shape[2:] for part, tensor in seen.items()}
            assert net(x[:1]).shape == (1,)
        for part, factors in REACHED[name].items():
            assert shapes[part] == (64 // factors[i], 32 // factors[i])
        assert len({part for part in net.net.modules() if isinstance(part, nn.Linear)}) == 1  # no auxiliary outputs
    assert count(nets[1]) - count(nets[0]) == PARAMETERS[name]


@pytest.mark.parametrize("name", MODELS)
def test_the_first_convolution_for_cifar_is_3_by_3_without_a_stride(name: str) -> None:
    net = imagenet.build(name, 0, "cifar")
    first = next(part for part in net.modules() if isinstance(part, nn.Conv2d))
    assert (first.kernel_size, first.stride, first.padding) == ((3, 3), (1, 1), (1, 1))


def test_pictures_are_enlarged_as_often_as_said() -> None:
    small, large = imagenet.build("mobilenet_v2", 0).eval(), imagenet.build("mobilenet_v2", 0, size=3).eval()
    x = torch.from_numpy(rng(0, "x").random((2, 3, 64, 32), dtype=np.float32))
    seen: list[Tensor] = []
    large.net.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    with torch.no_grad():
        torch.testing.assert_close(large(x), small(interpolate(x, size=(192, 96), mode="bilinear")))
    assert seen[0].shape == (2, 3, 192, 96)
    torch.testing.assert_close(seen[0][:, :, 1::3, 1::3], x)  # the middle of each pixel


@pytest.mark.parametrize(("name", "stem"), [("mobilenet_v2", "imagenet"), ("googlenet", "cifar")])
def test_building_is_reproducible_and_leaves_the_random_numbers_of_others(name: str, stem: str) -> None:
    torch.manual_seed(5)
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    first = flat(imagenet.build(name, 3, stem))
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert random.getstate() == states[2]
    torch.manual_seed(6)
    again, other = flat(imagenet.build(name, 3, stem)), flat(imagenet.build(name, 4, stem))
    assert all(np.array_equal(again[key], array) for key, array in first.items())
    key = next(key for key, array in first.items() if array.ndim == 4)
    assert not np.array_equal(other[key], first[key])


def test_maps_of_alexnet_are_small_enough_to_be_matrices() -> None:
    sizes = [math.prod(size[1:]) for _, size in maps(AlexNet(width=0.1), pixels(1))]
    assert [size <= PIXELS for size in sizes] == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("size", "step", "margin", "side"), [(11, 4, 5, 32), (3, 2, 1, 9), (5, 3, 0, 17), (4, 4, 0, 8), (3, 1, 1, 6)]
)
def test_a_strided_convolution_over_blocks_is_the_ordinary_one(size: int, step: int, margin: int, side: int) -> None:
    plain = nn.Conv2d(3, 5, size, stride=step, padding=margin).double()
    blocks = StridedConv(3, 5, size, stride=step, padding=margin).double()
    blocks.load_state_dict(plain.state_dict())
    x = torch.rand(2, 3, side, side + step, dtype=torch.float64)
    results = []
    for conv in (plain, blocks):
        leaf = x.clone().requires_grad_()
        y = conv(leaf)
        y.square().sum().backward()
        results.append((y.detach(), leaf.grad, conv.weight.grad, conv.bias.grad))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
