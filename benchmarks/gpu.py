"""What each training loop asks of a GPU, counted on a pretended one, and how long a step would take on three real ones.

    python benchmarks/gpu.py           # some 2 minutes on 2 cores
    python benchmarks/gpu.py --tiny    # small networks

    python benchmarks/gpu.py --paper   # presets/paper.yaml by chapter, some 5 minutes (with --tiny: presets/tiny.yaml)

Nothing here is a measured time: no GPU is used. Counted are, for one step, the operators launched, how often the
program waits for the device, the bytes that each operator reads and writes, and its additions and multiplications;
gpu_counts.py says what these are taken to cost. The small loops are counted with CUDA graphs (BRITTLE_GRAPHS=1), too.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import brittle  # noqa: F401, first: it tells the numerical libraries which kernels to take

# isort: split
import numpy as np
import torch

import gpu_paper
from bars import bar
from brittle.attacks.fgm import Attack
from brittle.attacks.image_pgd import Attacker, strongest
from brittle.attacks.reconstruct import Search, from_kkt
from brittle.core.rng import rng
from brittle.nets import symmetric
from brittle.nets.alexnet import AlexNet
from brittle.nets.fcn import Fcn
from brittle.nets.two_layer import initial
from brittle.train import flow, image_sgd, protocol, purify, sgd
from brittle.train.image_sgd import ImagePlan
from brittle.train.state import NotReached
from brittle.worlds import sphere
from brittle.worlds.sparse_coding import SparseCoding, labelling, orthogonal
from command import Command
from gpu_counts import GPUS, Counted, count
from pretend_cuda import COMPILER


@dataclass(frozen=True)
class Size:
    m: int  # samples and dimension of the margin
    width: int
    nets: int  # side by side
    steps: int  # counted, after as many
    batch: int
    d: int  # of the sparse world
    pictures: int  # in a batch


FULL = Size(m=100, width=1000, nets=5, steps=40, batch=256, d=256, pictures=64)
TINY = Size(m=10, width=20, nets=2, steps=10, batch=8, d=16, pictures=4)


# --- The loops: each a function that takes n steps on the device


def by_flow(size: Size) -> Iterator[tuple[str, Callable[[int], None], int]]:
    def margin(train: Callable[..., object], nets: int, n: int, **how: float) -> None:
        drawn = [sphere.sample(size.m, size.m, rng(seed, "benchmark data")) for seed in range(nets)]
        x, y = (torch.from_numpy(np.stack(part)).float().to("cuda") for part in zip(*drawn, strict=True))
        net = initial(size.m, size.width, 1.0, [rng(seed, "benchmark init") for seed in range(nets)])
        with contextlib.suppress(NotReached):  # expected: only the first steps are counted
            train(x, y, net.to(torch.device("cuda")), loss="exponential", ln_target=-1e9, max_steps=n, **how)

    for nets in (1, size.nets):
        yield (
            f"flow, networks: {nets}",
            lambda n, nets=nets: margin(flow.train, nets, n, momentum=0.7, search=flow.BACKTRACKING),
            size.steps,
        )
    slow = {"batch": 5000, "lr": 1e-5, "growth": 1.1, "every": 100}
    yield "protocol", lambda n: margin(protocol.train, size.nets, n, **slow), size.steps


def by_sgd(size: Size) -> Iterator[tuple[str, Callable[[int], None], int]]:
    members = [sgd.Member(seed, momentum=0.9) for seed in range(size.nets)]

    def run(n: int) -> None:
        x = torch.randn(1, n * size.batch, 50).to("cuda")
        y = torch.ones(1, n * size.batch).to("cuda")
        sgd.train(Fcn(50, size.width // 10, 1), members, x, y, sgd.SgdPlan(epochs=1, batch=size.batch))

    yield "sgd (one epoch)", run, size.steps


def by_purify(size: Size) -> Iterator[tuple[str, Callable[[int], None], int]]:
    draws, d = np.random.default_rng(0), size.d
    world = SparseCoding(orthogonal(d, d, draws), labelling(d, 0.0, draws), k=min(8, d // 4), sigma_x=0.3, margin=1.0)
    w = symmetric.pure(world.dictionary, world.w_star, 8 * d, 0.5, 3e-3, draws)
    rules = purify.Rules(momentum=0.9, decay=0.1 / d, rho=0.05)
    attacks = {"clean": None, "FGM": Attack("l2", 0.3), "PGD of 5": Attack("l2", 0.3, 5)}
    for name, attack in attacks.items():

        def run(n: int, attack: Attack | None = attack) -> None:
            state = purify.Training.begin(w.to("cuda"), 0.07)
            purify.run(state, world, purify.Stretch(n, size.batch, 0.1, attack=attack, slow=0.0), rules, 0, "benchmark")

        yield f"purify, {name}", run, 16


def by_pictures(size: Size) -> Iterator[tuple[str, Callable[[int], None], int]]:
    def net() -> torch.nn.Module:
        return AlexNet().to("cuda", memory_format=torch.channels_last)

    def pictures(n: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.randint(0, 256, (n, 32, 32, 3), dtype=torch.uint8)
        return x.to("cuda"), (torch.arange(n) % 10).to("cuda")

    for name, attack in {"clean": None, "PGD of 3": Attacker("l2", 1.0, 3, sigma=0.25)}.items():

        def run(n: int, attack: Attacker | None = attack) -> None:
            plan = ImagePlan(epochs=1, batch=size.pictures, lr=0.1, momentum=0.9, weight_decay=5e-4)
            image_sgd.train(net(), *pictures(n * size.pictures), plan, 0, attack)

        yield f"AlexNet, {name} (one epoch)", run, 2

    def attack_them(n: int) -> None:
        x, _ = pictures(size.pictures)
        few, target = x.permute(0, 3, 1, 2).float() / 255, net()
        y = target(few).argmax(1).detach()  # those that it has wrong would be left alone
        # Too small a radius to win: an attack that has won ends early.
        strongest(target, few, y, "l2", 1e-6, n, 1, torch.Generator("cuda").manual_seed(0))

    yield "the strongest attack, a step", attack_them, 4


def by_reconstruction(size: Size) -> Iterator[tuple[str, Callable[[int], None], int]]:
    def run(n: int) -> None:
        rngs = [rng(seed, "benchmark") for seed in range(size.nets)]
        net = initial(size.m, size.width, 1.0, rngs).to(torch.device("cuda"))
        from_kkt(net, Search(candidates=size.m, steps=n, lr=0.1, sharpness=(10.0, 100.0)), rngs)

    yield "samples in weights, a step", run, 8


GRAPHS = ("flow", "sgd", "purify")  # the loops that CUDA graphs can record
BARS = {"flow": 1, "protocol": 1, "purify": 1, "sgd": 0, "AlexNet": 0, "the strongest attack": 0, "samples": 0}


def line(name: str, found: Counted) -> None:
    times = [found.seconds(*gpu) for gpu in GPUS.values()]
    shown = "".join(f"{1e3 * seconds:>10.3f} ms, {bound:<15}" for seconds, bound in times)
    print(f"{name:<32}{found.launches:>9.1f}{found.waits:>7.2f}  {shown}", flush=True)


def main(size: Size) -> None:
    print(f"{'':<32}{'launches':>9}{'waits':>7}" + "".join(f"{name:>15}{'':<15}" for name in GPUS))
    for loops in (by_flow, by_sgd, by_purify, by_pictures, by_reconstruction):
        for name, run, steps in loops(size):
            found = count(run, steps)
            line(name, found)
            if name.startswith(GRAPHS):
                line("  with graphs", recorded := count(run, steps, with_graphs=True))
                bar(f"{name}: launches with graphs", recorded.launches / found.launches, at_most=1)
            most = next(most for begin, most in BARS.items() if name.startswith(begin))
            bar(f"{name}: waits for the device a step", found.waits, at_most=most, unit="")
            assert math.isfinite(found.launches)


if __name__ == "__main__":
    command = Command(__doc__)
    command.add_argument("--paper", action="store_true", help="how long the paper's preset would take, by chapter")
    chosen = command.parse_args()
    if COMPILER is None:
        print("no C++ compiler to pretend a device with: nothing is counted")
        bar("loops counted", 0, unit="")
    elif chosen.paper:
        gpu_paper.main("tiny" if chosen.tiny else "paper")
    else:
        main(TINY if chosen.tiny else FULL)
