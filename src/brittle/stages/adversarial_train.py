"""Train FCNs on the samples that PGD makes of their batches (SB Appendix B, E.2)."""

from __future__ import annotations

from brittle import device
from brittle.params.slabs import AdversarialParams
from brittle.stages import groups, slabs
from brittle.stages.adversarial import hardened
from brittle.stages.run import run

STAGE = "adversarial_train"


def main(params: AdversarialParams) -> None:
    p = params.adversarial
    sample = slabs.load("adversarial", p.world, params.slabs.d, device.pick(params.device))
    groups.train_all(STAGE, "models/adversarial.safetensors", hardened(params, sample))


if __name__ == "__main__":
    run(main, AdversarialParams)
