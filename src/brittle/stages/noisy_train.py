"""Grid search over SGD's hyper-parameters on noisy LMS data, picked on validation accuracy (SB Table 2)."""

from __future__ import annotations

from brittle import device
from brittle.params.slabs import NoisyParams
from brittle.stages import groups, slabs
from brittle.stages.noisy import searches
from brittle.stages.run import run

STAGE = "noisy_train"


def main(params: NoisyParams) -> None:
    where = device.pick(params.device)
    every = searches(params, lambda world, d: slabs.load("noisy", world, d, where))
    groups.train_all(STAGE, "models/noisy.safetensors", every)


if __name__ == "__main__":
    run(main, NoisyParams)
