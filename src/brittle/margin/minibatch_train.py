"""Train a cell with more samples than a batch twice: by the paper's SGD in mini-batches, by flow on all samples."""

from __future__ import annotations

from brittle.core import device
from brittle.core.stage import run
from brittle.margin.draws import draws
from brittle.margin.minibatch_params import METHODS, MinibatchParams
from brittle.margin.networks import NetworkJob, flow_method, protocol_method, train_all
from brittle.margin.params import MarginParams


class Params(MinibatchParams, MarginParams):
    """The sections on the cell and on the paper's SGD."""


def main(params: Params) -> None:
    p, sgd, flow = params.minibatch, params.margin.protocol, params.margin.flow
    target = {"loss": "exponential", "log10_target": p.log10_target}
    growing = {"lr": sgd.lr, "growth": sgd.growth, "every": p.every, "max_steps": sgd.max_steps}
    methods = (
        protocol_method(batch=p.batch, **growing, **target),
        flow_method(momentum=0.0, max_steps=flow.max_steps, **target),
    )
    jobs = [
        NetworkJob(name, lambda: draws(p.d, p.m, p.seeds), p.seeds, p.width, method)
        for name, method in zip(METHODS, methods, strict=True)
    ]
    advise = "a larger margin.protocol.max_steps or minibatch.width may help, or a smaller minibatch.every"
    train_all("minibatch_train", "models/minibatch.safetensors", jobs, device.pick(params.device), advise)


if __name__ == "__main__":
    run(main, Params)
