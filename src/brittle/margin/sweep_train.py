"""Train the networks of VYS Figures 1(a) and 2 at one dimension: every α, every seed."""

from __future__ import annotations

from brittle.core import device
from brittle.core.stage import run
from brittle.margin.draws import draws
from brittle.margin.networks import NetworkJob, flow_method, train_all
from brittle.margin.sweep_params import SweepParams


def main(params: SweepParams, d: int) -> None:
    p = params.sweep
    settings = {"loss": p.loss, "log10_target": p.log10_target, "max_steps": p.max_steps}
    seeds, width = p.seeds, p.width
    jobs = [
        NetworkJob(
            name=f"{alpha}",
            draw=lambda alpha=alpha: draws(d, round(d**alpha), seeds),
            seeds=seeds,
            width=width,
            method=flow_method(momentum=momentum, **settings),
            size=d**alpha,
        )
        for alpha, momentum in zip(p.alphas, p.momentum, strict=True)
    ]
    advise = "a larger sweep.max_steps or sweep.width may help, or a less extreme sweep.log10_target"
    train_all("sweep_train", f"models/sweep/{d}.safetensors", jobs, device.pick(params.device), advise)


if __name__ == "__main__":
    run(main, SweepParams)
