"""Train networks where VYS Thm 4.1 applies, close to a KKT point: from small weights, to a loss far below 1e-30."""

from __future__ import annotations

from brittle.core import device
from brittle.core.stage import run
from brittle.margin.networks import NetworkJob, flow_method, train_all
from brittle.margin.regime import settings
from brittle.margin.theory_params import TheoryParams


def main(params: TheoryParams) -> None:
    p = params.theory.regime
    method = flow_method(loss="exponential", log10_target=p.log10_target, momentum=p.momentum, max_steps=p.max_steps)
    jobs = [
        NetworkJob(
            name=each.name,
            draw=lambda each=each: each.draws(p.seeds),
            seeds=[each.start(seed) for seed in p.seeds],
            width=each.width,
            method=method,
            init_scale=each.init_scale,
        )
        for each in settings(p)
    ]
    advise = "a larger theory.regime.max_steps may help, or a less extreme theory.regime.log10_target"
    train_all("regime_train", "models/regime.safetensors", jobs, device.pick(params.device), advise)


if __name__ == "__main__":
    run(main, TheoryParams)
