"""Train a network with each built-in remedy in one world."""

from __future__ import annotations

from brittle import plugins
from brittle.core import device
from brittle.core.errors import BadInput
from brittle.core.progress import resumable, tracked
from brittle.core.stage import run
from brittle.cross import networks, worlds
from brittle.cross.kept import Kept
from brittle.cross.params import CrossParams


def main(params: CrossParams, world: str) -> None:
    p = params.cross
    there = worlds.load_world(world, device.pick(params.device))
    net = plugins.named("net", there.net)
    jobs = [(remedy, seed) for remedy in p.remedies for seed in p.seeds]
    with resumable("cross_train") as checkpoints:
        kept, trained = Kept(checkpoints, there), []
        for remedy, seed in tracked(jobs, f"training in {world}"):
            each = networks.train(p, world, there, net, plugins.named("remedy", remedy), seed, kept)
            if each is None:
                raise BadInput(f"{net.name}: is not a network for inputs of the shape {there.input_shape}")
            _ = each.net  # this trains it
            trained.append(each)
        networks.save_networks(world, trained)


if __name__ == "__main__":
    run(main, CrossParams)
