"""Train FCNs on batches perturbed by PGD (SB Appendix B, E.2)."""

from __future__ import annotations

from brittle.core import device
from brittle.core.stage import run
from brittle.slabs import draws, groups
from brittle.slabs.adversarial import hardened
from brittle.slabs.adversarial_params import AdversarialParams

STAGE = "adversarial_train"


def main(params: AdversarialParams) -> None:
    p = params.adversarial
    sample = draws.load_sample("adversarial", p.world, params.slabs.d, device.pick(params.device))
    groups.train_all(STAGE, "models/adversarial.safetensors", hardened(params, sample))


if __name__ == "__main__":
    run(main, AdversarialParams)
