"""Train every one of our own remedies in one world."""

from __future__ import annotations

from brittle import device, machine, plugins
from brittle.params.base import BadInput
from brittle.params.cross import CrossParams
from brittle.stages import cross
from brittle.stages.progress import tracked
from brittle.stages.run import run


def main(params: CrossParams, world: str) -> None:
    p = params.cross
    there = cross.load(world, device.pick(params.device))
    machine.use_threads(2 if len(there.input_shape) > 1 else 1)  # steps on vectors are short
    net = plugins.named("net", there.net)
    jobs = [(remedy, seed) for remedy in p.remedies for seed in p.seeds]
    kept, trained = cross.Kept("cross_train", there), []
    for remedy, seed in tracked(jobs, f"training in {world}"):
        each = cross.train(p, world, there, net, plugins.named("remedy", remedy), seed, kept)
        if each is None:
            raise BadInput(f"{net.name}: is not a network for inputs of the shape {there.input_shape}")
        _ = each.net  # is trained now
        trained.append(each)
    cross.save_networks(world, trained)
    kept.forget()


if __name__ == "__main__":
    run(main, CrossParams)
