"""Train one of torchvision's networks on MNIST-CIFAR, as SB does, against an attack, and on the pictures alone."""

from __future__ import annotations

import pandas as pd
from torch import nn

from brittle import device, store
from brittle.attacks.pictures import Attacker
from brittle.params.base import BadInput
from brittle.params.mnist_cifar import MODELS, MnistCifar, MnistCifarParams
from brittle.stages import mnist_cifar, pictures
from brittle.stages.mnist_cifar import Job, Source
from brittle.stages.pictures import Fit, effort, fit
from brittle.stages.progress import Bar, bar
from brittle.stages.run import run
from brittle.train.pictures import Plan

STAGE = "mnist_cifar_train"


def main(params: MnistCifarParams, model: str) -> None:
    p = params.mnist_cifar
    if model not in MODELS:
        raise BadInput(f"{model}: is not a model; must be one of {', '.join(MODELS)}")
    where = device.pick(params.device)
    train = mnist_cifar.load(where)["train"]
    every = mnist_cifar.jobs(p, model)
    arrays, rows, checkpoints = {}, [], []
    with bar(sum(effort(*how(p, job)) for job in every), f"training {model}") as shown:
        for job in every:
            done = trained(params, mnist_cifar.build(p, model, job.seed, where), job, train, shown)
            checkpoints.append(done.checkpoint)
            arrays |= pictures.named(job.name, done.net)
            about = {"model": model, "kind": job.kind, "world": job.world, "seed": job.seed, "samples": how(p, job)[1]}
            rows.append(
                about | {"epochs": len(done.losses), "loss": done.losses[-1], "weights": pictures.digest(done.net)}
            )
    store.save_tensors(mnist_cifar.path(model), arrays)
    store.save_table(mnist_cifar.table(model), pd.DataFrame(rows))
    for checkpoint in checkpoints:
        checkpoint.forget()


def how(p: MnistCifar, job: Job) -> tuple[Plan, int, Attacker | None]:
    """A job's plan, number of samples, and attack."""
    t = p.training
    n, epochs, lr, attack = p.samples, t.epochs, t.lr, None
    if job.kind == "alone":
        n, epochs, lr = p.alone.samples, p.alone.epochs, p.alone.lr
    if job.kind == "adversarial":
        a = p.adversarial
        n, epochs, attack = a.samples, a.epochs, Attacker("linf", a.eps, a.steps, warmup=a.warmup)
    plan = Plan(epochs, t.batch, lr, t.momentum, t.weight_decay, tuple(t.drops), t.factor, t.target)
    return plan, n, attack


def trained(params: MnistCifarParams, net: nn.Module, job: Job, source: Source, shown: Bar) -> Fit:
    plan, n, attack = how(params.mnist_cifar, job)
    pairs, y = source.draw(job.world, n)
    x = mnist_cifar.seen_by(job.kind, source.blocks.show(pairs))
    return fit(STAGE, params.images, net, x, y, plan, job.seed, shown, attack)


if __name__ == "__main__":
    run(main, MnistCifarParams, threads=2)
