"""Train one of torchvision's networks on MNIST-CIFAR, as SB does, against an attack, and on the pictures alone."""

from __future__ import annotations

import pandas as pd
from torch import nn

from brittle.attacks.image_pgd import Attacker
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import Bar, Checkpoints, bar, resumable
from brittle.core.stage import run
from brittle.nets import weights
from brittle.pictures import mnist_cifar, mnist_cifar_data
from brittle.pictures.fitting import Fit, effort, fit
from brittle.pictures.mnist_cifar import PictureJob
from brittle.pictures.mnist_cifar_data import Source
from brittle.pictures.mnist_cifar_params import MODELS, MnistCifar, MnistCifarParams
from brittle.train.batch_norm import recalibrate
from brittle.train.image_sgd import ImagePlan


def main(params: MnistCifarParams, model: str) -> None:
    p = params.mnist_cifar
    if model not in MODELS:
        raise BadInput(f"{model}: is not a model; must be one of {', '.join(MODELS)}")
    where = device.pick(params.device)
    train = mnist_cifar_data.load_sources(where)["train"]
    every = mnist_cifar.jobs(p, model)
    arrays, rows = {}, []
    work = sum(effort(*how(p, job)) for job in every)
    with resumable("mnist_cifar_train") as checkpoints, bar(work, f"training {model}") as shown:
        for job in every:
            done = trained(checkpoints, params, mnist_cifar.build(p, model, job.seed, where), job, train, shown)
            arrays |= weights.named(job.name, done.net)
            about = {"model": model, "kind": job.kind, "world": job.world, "seed": job.seed, "samples": how(p, job)[1]}
            rows.append(
                about | {"epochs": len(done.losses), "loss": done.losses[-1], "weights": weights.digest(done.net)}
            )
        store.save_tensors(mnist_cifar.path(model), arrays)
        store.save_table(mnist_cifar.table(model), pd.DataFrame(rows))


def how(p: MnistCifar, job: PictureJob) -> tuple[ImagePlan, int, Attacker | None]:
    """A job's plan, number of samples, and attack."""
    t = p.training
    n, epochs, lr, attack = p.samples, t.epochs, t.lr, None
    if job.kind == "alone":
        n, epochs, lr = p.alone.samples, p.alone.epochs, p.alone.lr
    if job.kind == "adversarial":
        a = p.adversarial
        n, epochs, attack = a.samples, a.epochs, Attacker("linf", a.eps, a.steps, warmup=a.warmup)
    plan = ImagePlan(epochs, t.batch, lr, t.momentum, t.weight_decay, tuple(t.drops), t.factor, t.target)
    return plan, n, attack


def trained(
    checkpoints: Checkpoints, params: MnistCifarParams, net: nn.Module, job: PictureJob, source: Source, shown: Bar
) -> Fit:
    plan, n, attack = how(params.mnist_cifar, job)
    pairs, y = source.draw(job.world, n)
    x = mnist_cifar.seen_by(job.kind, source.blocks.show(pairs))
    done = fit(checkpoints, params.images, net, x, y, plan, job.seed, shown, attack)
    if attack is not None and params.mnist_cifar.adversarial.recalibrate:
        recalibrate(done.net, x, plan.batch)
    return done


if __name__ == "__main__":
    run(main, MnistCifarParams)
