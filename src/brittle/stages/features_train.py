"""Train wide networks on worlds with ever more complex features beside the one simple one (SB Fig 3(b))."""

from __future__ import annotations

from brittle import device
from brittle.nets.named import family
from brittle.params.slabs import FeaturesParams
from brittle.stages import groups, slabs
from brittle.stages.run import run
from brittle.train.sgd import Member, Plan

STAGE = "features_train"


def main(params: FeaturesParams) -> None:
    p, training = params.features, params.slabs.training
    where = device.pick(params.device)
    plan = Plan(epochs=training.epochs, batch=training.batch, optimiser=training.fcn.optimiser, target=training.target)
    every = []
    for complex in p.complex:
        d = 1 + complex
        members = [Member(seed, 0, p.lr, training.fcn.momentum, training.weight_decay) for seed in p.seeds]
        sample = slabs.load("features", p.world, d, where)
        every.append(groups.Group(f"{complex}", family(p.model, d), members, [sample], plan, size=d))
    groups.train_all(STAGE, "models/features.safetensors", every)


if __name__ == "__main__":
    run(main, FeaturesParams)
