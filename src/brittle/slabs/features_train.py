"""Train wide networks on worlds with a growing number of complex features, with S and without it (SB Fig 3(b))."""

from __future__ import annotations

from brittle.core import device
from brittle.core.stage import run
from brittle.slabs import groups
from brittle.slabs.features import wide
from brittle.slabs.features_params import FeaturesParams

STAGE = "features_train"


def main(params: FeaturesParams) -> None:
    groups.train_all(STAGE, "models/features.safetensors", wide(params, device.pick(params.device)))


if __name__ == "__main__":
    run(main, FeaturesParams)
