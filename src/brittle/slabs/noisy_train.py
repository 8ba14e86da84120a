"""Grid search over SGD's hyper-parameters on noisy LMS data, to be chosen by validation accuracy (SB Table 2)."""

from __future__ import annotations

from brittle.core import device
from brittle.core.stage import run
from brittle.slabs import draws, groups
from brittle.slabs.noisy import searches
from brittle.slabs.noisy_params import NoisyParams

STAGE = "noisy_train"


def main(params: NoisyParams) -> None:
    where = device.pick(params.device)
    every = searches(params, lambda world, d: draws.load_sample("noisy", world, d, where))
    groups.train_all(STAGE, "models/noisy.safetensors", every)


if __name__ == "__main__":
    run(main, NoisyParams)
