"""Train the headline networks with another loss and on other data, and many networks on one dataset."""

from __future__ import annotations

from brittle import device
from brittle.params.variants import VariantsParams
from brittle.stages.networks import Job, flow_method, train_all
from brittle.stages.run import run
from brittle.stages.variants import headline, transfer


def main(params: VariantsParams) -> None:
    p = params.variants
    settings = {"log10_target": p.log10_target, "momentum": p.momentum, "max_steps": p.max_steps}
    jobs = [
        Job(
            name=each.name,
            draw=lambda each=each: each.draws(p),
            seeds=each.init_seeds,
            width=each.width,
            method=flow_method(loss=each.loss, **settings),
            size=each.width,
        )
        for each in headline(p) + transfer(p)
    ]
    advise = "a larger variants.max_steps or width may help, or a less extreme variants.log10_target"
    train_all("variants_train", "models/variants.safetensors", jobs, device.pick(params.device), advise)


if __name__ == "__main__":
    run(main, VariantsParams)
