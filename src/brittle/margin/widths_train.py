"""Train the networks of VYS Figure 1(b) at one width: m = d, every d, every seed."""

from __future__ import annotations

from brittle.core import device
from brittle.core.stage import run
from brittle.margin.draws import draws
from brittle.margin.networks import NetworkJob, flow_method, train_all
from brittle.margin.sweep_params import SweepParams


def main(params: SweepParams, width: int) -> None:
    p, seeds = params.sweep, params.sweep.seeds
    method = flow_method(loss=p.loss, log10_target=p.log10_target, momentum=0.0, max_steps=p.max_steps)
    jobs = [NetworkJob(f"{d}", lambda d=d: draws(d, d, seeds), seeds, width, method, size=d) for d in p.width_ds]
    advise = "a larger sweep.max_steps or width may help, or a less extreme sweep.log10_target"
    train_all("widths_train", f"models/widths/{width}.safetensors", jobs, device.pick(params.device), advise)


if __name__ == "__main__":
    run(main, SweepParams)
