"""Train the headline networks with another loss and on other data, and many networks on one dataset."""

from __future__ import annotations

from brittle.core import device
from brittle.core.stage import run
from brittle.margin.networks import NetworkJob, flow_method, train_all
from brittle.margin.variants import headline, transfer
from brittle.margin.variants_params import VariantsParams


def main(params: VariantsParams) -> None:
    p = params.variants
    settings = {"log10_target": p.log10_target, "momentum": p.momentum, "max_steps": p.max_steps}
    jobs = [
        NetworkJob(
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
