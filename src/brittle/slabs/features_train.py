"""Train wide networks on worlds with a growing number of complex features beside the simple one (SB Fig 3(b))."""

from __future__ import annotations

from brittle.core import device
from brittle.core.stage import run
from brittle.nets.parse import family
from brittle.slabs import draws, groups
from brittle.slabs.features_params import FeaturesParams
from brittle.train.sgd import Member, SgdPlan

STAGE = "features_train"


def main(params: FeaturesParams) -> None:
    p, training = params.features, params.slabs.training
    where = device.pick(params.device)
    plan = SgdPlan(
        epochs=training.epochs, batch=training.batch, optimiser=training.fcn.optimiser, target=training.target
    )
    every = []
    for complex in p.complex:
        d = 1 + complex
        members = [Member(seed, 0, p.lr, training.fcn.momentum, training.weight_decay) for seed in p.seeds]
        sample = draws.load_sample("features", p.world, d, where)
        every.append(groups.Group(f"{complex}", family(p.model, d), members, [sample], plan, size=d))
    groups.train_all(STAGE, "models/features.safetensors", every)


if __name__ == "__main__":
    run(main, FeaturesParams)
