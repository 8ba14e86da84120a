"""Numbers about pictures, feature visualisation and activity (FP Fig 1, 5, 7 and 10)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.fft
import torch
from torch import Tensor, nn

from brittle.core.rng import rng
from brittle.probes.activity import activity
from brittle.probes.image_statistics import cosines, densities, haar, high_frequency, spread, total_variation
from brittle.probes.visualise import excite


def numbers(purpose: str, *shape: int) -> Tensor:
    return torch.from_numpy(rng(0, purpose).standard_normal(shape))


def wave(period: float, n: int = 3, side: int = 32) -> Tensor:
    """Waves across, the same in each colour."""
    return torch.cos(2 * math.pi * torch.arange(side, dtype=torch.float64) / period).expand(n, 3, side, side)


# How rough


def test_total_variation_of_what_we_know() -> None:
    noise = numbers("x", 20, 3, 32, 32)
    colours = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)[:, None, None].expand(2, 3, 32, 32)
    assert total_variation(colours) == 0
    assert total_variation(noise) == pytest.approx(math.sqrt(2), rel=0.02)
    places = torch.arange(32)
    chessboard = ((places[:, None] + places) % 2).double().expand(1, 3, 32, 32)
    assert total_variation(chessboard) == pytest.approx(2)
    assert total_variation(wave(32)) < 0.2 < total_variation(wave(8)) < total_variation(noise)
    assert total_variation(5 + 1e-3 * noise) == pytest.approx(total_variation(noise))
    mixed = torch.cat([colours, noise[:1]])  # the median, of 0, 0, √2
    assert total_variation(mixed) == 0


def test_total_variation_is_that_of_slow_loops() -> None:
    x = numbers("x", 1, 2, 3, 4)
    steps = [abs(x[0, c, i, j] - x[0, c, i, j + 1]) for c in range(2) for i in range(3) for j in range(3)]
    steps += [abs(x[0, c, i, j] - x[0, c, i + 1, j]) for c in range(2) for i in range(2) for j in range(4)]
    contrast = sum(float((x[0, c] - x[0, c].mean()).abs().sum()) for c in range(2)) / 24
    assert total_variation(x) == pytest.approx(float(sum(steps)) / len(steps) / contrast)


def test_high_frequencies_are_beyond_half_of_nyquist() -> None:
    for period, share in ((32, 0.0), (16 / 3, 0.0), (4, 0.0), (32 / 9, 1.0), (2, 1.0)):
        assert high_frequency(wave(period)) == pytest.approx(share, abs=1e-9)
        assert high_frequency(7 + wave(period).transpose(2, 3)) == pytest.approx(share, abs=1e-9)
    assert high_frequency(wave(16) + 0.5 * wave(2)) == pytest.approx(0.25 / (0.5 + 0.25))  # cos(πj)² = 1, not 1/2
    assert high_frequency(numbers("w", 200, 3, 32, 32)) == pytest.approx(1 - math.pi / 16, abs=0.01)
    # By hand: of the 120 frequencies of 11 × 11, those within 11/4 of 0 are (±1, 0), (±2, 0), (±1, ±1), … : 20
    assert high_frequency(numbers("w", 2000, 3, 11, 11)) == pytest.approx(100 / 120, abs=0.01)
    assert high_frequency(numbers("w", 5, 3, 3, 3)) == pytest.approx(1)
    assert high_frequency(torch.ones(2, 3, 5, 5)) == 0


# How dense


@pytest.mark.parametrize("n", [1, 2, 8, 32])
@pytest.mark.parametrize("basis", [cosines, haar])
def test_bases_are_orthonormal(basis: object, n: int) -> None:
    rows = basis(n)
    torch.testing.assert_close(rows @ rows.T, torch.eye(n, dtype=torch.float64), rtol=0, atol=1e-12)


def test_cosines_are_those_of_scipy() -> None:
    x = numbers("x", 2, 3, 8, 16)
    expected = scipy.fft.dctn(x.numpy(), axes=(2, 3), norm="ortho")
    torch.testing.assert_close(cosines(8) @ x @ cosines(16).T, torch.from_numpy(expected), rtol=0, atol=1e-12)
    assert densities(x)["dct"] == pytest.approx(float(spread(torch.from_numpy(expected)).median()))


def test_haar_wavelets_are_steps() -> None:
    h = 1 / math.sqrt(2)
    expected = [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, -0.5, -0.5], [h, -h, 0, 0], [0, 0, h, -h]]
    torch.testing.assert_close(haar(4), torch.tensor(expected, dtype=torch.float64))
    for n in (0, 6, 33):
        with pytest.raises(ValueError, match="power of 2"):
            haar(n)


def test_densities_tell_bases_apart() -> None:
    one = 1 / math.sqrt(3 * 32 * 32)
    noise = numbers("x", 10, 3, 32, 32)
    assert densities(noise) == {name: pytest.approx(math.sqrt(2 / math.pi), abs=0.01) for name in densities(noise)}
    dot = torch.zeros(2, 3, 32, 32, dtype=torch.float64)
    dot[:, 1, 7, 9] = -3.0
    assert densities(dot)["pixels"] == pytest.approx(one)
    assert densities(dot)["dct"] > 0.4
    assert one < densities(dot)["haar"] < 0.2
    flat = torch.full((2, 3, 32, 32), -0.01)
    assert densities(flat)["pixels"] == pytest.approx(1)
    assert densities(flat)["dct"] == pytest.approx(math.sqrt(3) * one, rel=1e-3)
    assert densities(flat)["haar"] == pytest.approx(math.sqrt(3) * one, rel=1e-3)
    cosine = cosines(32)[3].expand(2, 3, 32, 32)
    edge = torch.where(torch.arange(32) < 16, 1.0, -1.0).expand(2, 3, 32, 32)
    assert densities(cosine)["dct"] < densities(cosine)["haar"] < densities(cosine)["pixels"]
    assert densities(edge)["haar"] < densities(edge)["dct"] < densities(edge)["pixels"] == pytest.approx(1)
    assert densities(noise) == pytest.approx(densities(1e-4 * noise))
    assert densities(0 * noise) == {"pixels": 0, "dct": 0, "haar": 0}


# What excites a neuron


def test_a_linear_neuron_is_excited_by_its_own_direction() -> None:
    w = numbers("w", 4, 3, 8, 8).float() * torch.tensor([1e-3, 1.0, 1e3, -1.0])[:, None, None, None]
    found = excite(lambda x: (x * w).sum((1, 2, 3)), (4, 3, 8, 8), 500, 0.05, 0.05, rng(0, "start"))
    away = (found - 0.5).flatten(1)
    cosine = torch.cosine_similarity(away, w.flatten(1))
    assert (cosine > 0.999).all()
    torch.testing.assert_close(away.norm(dim=1), torch.ones(4), rtol=1e-3, atol=0)  # lr / decay


def test_pictures_stay_pictures_and_come_to_rest() -> None:
    w = numbers("w", 2, 3, 8, 8).float()
    bright = excite(lambda x: (x * w).sum((1, 2, 3)), (2, 3, 8, 8), 300, 1.0, 0.0, rng(0, "start"))
    assert torch.equal(bright[w.abs() > 0.1], (w > 0).float()[w.abs() > 0.1])
    start = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    before = start.clone()
    for rest in (0.5, 0.0):  # FP's Fig 6 goes to black
        dead = excite(lambda x: (x * 0).sum((1, 2, 3)), start.shape, 300, 1.0, 0.1, rng(0, "start"), rest, start)
        torch.testing.assert_close(dead, torch.full_like(dead, rest), rtol=0, atol=1e-6)
    assert torch.equal(start, before)
    assert not dead.requires_grad


def test_each_neuron_has_its_own_picture_and_weights_no_gradient() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(4 * 36, 5))
    units = torch.arange(5)

    def feature(x: Tensor) -> Tensor:
        return net(x)[units, units]

    with torch.no_grad():  # as callers may be
        start = excite(feature, (5, 3, 8, 8), 0, 0.1, 0.01, rng(0, "start"))
        found = excite(feature, (5, 3, 8, 8), 50, 0.1, 0.01, rng(0, "start"))
        assert (feature(found) > feature(start) + 0.05).all()
        assert (net(found).argmax(0) == units).all()  # each neuron likes its own picture best
    assert all(p.grad is None for p in net.parameters())
    alone = excite(lambda x: net(x)[:, 3], (1, 3, 8, 8), 50, 0.1, 0.01, rng(0, "x"), start=start[3:4])
    torch.testing.assert_close(alone[0], found[3], rtol=0, atol=1e-3)


# How many neurons are on


class Block(nn.Module):
    """One ReLU for both of its layers."""

    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(6, 5), nn.Linear(5, 4), nn.BatchNorm1d(4)
        self.relu = nn.ReLU(inplace=inplace)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.norm(self.second(self.relu(self.first(x)))))


@pytest.mark.parametrize("inplace", [False, True])
def test_activity_is_that_of_a_hand_count_and_leaves_no_trace(inplace: bool) -> None:
    torch.manual_seed(0)
    # The last layer works in place: it changes the last ReLU's output after that was counted.
    net = nn.Sequential(nn.ReLU(inplace=inplace), Block(inplace), nn.Hardtanh(-1, -0.5, inplace=True))
    net.train()
    net[1].norm.eval()  # frozen
    net[1].norm.running_mean[:] = 0.2
    x = numbers("x", 23, 6).float()
    before, state = x.clone(), {key: value.clone() for key, value in net.state_dict().items()}
    shares, mean = activity(net, x, batch=5)
    first = x.clamp(min=0)
    second = net[1].first(first).clamp(min=0)
    third = net[1].norm(net[1].second(second)).clamp(min=0)
    expected = {"0": first, "1.relu": second, "1.relu#2": third}
    assert list(shares) == list(expected)
    for name, values in expected.items():
        assert shares[name] == pytest.approx(int(np.count_nonzero(values.detach().numpy())) / values.numel())
    assert mean == pytest.approx(sum(shares.values()) / 3)
    assert 0 < mean < 1
    assert torch.equal(x, before)
    assert all(torch.equal(value, state[key]) for key, value in net.state_dict().items())
    assert not any(part._forward_hooks for part in net.modules())
    assert net.training
    assert net[1].relu.training
    assert not net[1].norm.training


def test_activity_cleans_up_after_an_error_and_wants_relus() -> None:
    net = nn.Sequential(nn.ReLU(), nn.Linear(3, 3))
    with pytest.raises(RuntimeError):
        activity(net, torch.zeros(2, 5))
    assert not net[0]._forward_hooks
    assert net.training
    with pytest.raises(ValueError, match="was called"):
        activity(nn.Linear(3, 3), torch.zeros(2, 3))
    assert activity(nn.ReLU(), torch.tensor([[1.0, -1.0, 0.0, 2.0]])) == ({"relu": 0.5}, 0.5)
