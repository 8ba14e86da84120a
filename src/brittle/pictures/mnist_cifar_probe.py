"""What networks trained on MNIST-CIFAR look at: the digit (S) or the picture below it (SB §4.2, §4.3)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from brittle.attacks.image_pgd import accuracy, strongest
from brittle.core import device, store
from brittle.core.progress import bar
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets import weights
from brittle.pictures import mnist_cifar, mnist_cifar_data
from brittle.pictures.mnist_cifar import PictureJob
from brittle.pictures.mnist_cifar_data import Source
from brittle.pictures.mnist_cifar_params import MnistCifar, MnistCifarParams, Uap
from brittle.probes.image_uap import Ascent, universal
from brittle.probes.randomised import Drawn, ks, randomised
from brittle.worlds.pixels import shown

DIGIT = torch.tensor([[1.0, 0.0]])  # S: the first number of a pair
VERSIONS = ("s", "rest")
EDGES = np.linspace(-12, 12, 49)  # of the histograms; values beyond count in the outermost bins
ATTACKED, STEPS = 200, 20  # samples, and steps of PGD, where a robust accuracy is measured
EXAMPLES = 4  # pictures of each label in the figures


def main(params: MnistCifarParams) -> None:
    p = params.mnist_cifar
    where = device.pick(params.device)
    test = mnist_cifar_data.load_sources(where)["test"]
    rows, logits, moves, images = [], [], [], examples(p, test)
    with bar(len(p.models), "probing MNIST-CIFAR") as progress:
        for model in p.models:
            nets = load_nets(p, model, where)
            about = store.load_table(mnist_cifar.table(model), ["seed", "samples", "epochs"], text=["kind", "world"])
            about = about.set_index(["kind", "world", "seed"])[["samples", "epochs"]]
            for jobs in [[job] for job in nets] + ensembles(list(nets)):
                row, drawn = measured(p, model, {job: nets[job] for job in jobs}, test)
                rows.append(row | about.loc[(row["kind"], row["world"], row["seed"])].to_dict())
                if row["kind"] == "standard" and row["world"] == p.worlds[0] and len(jobs) == 1:
                    logits += [{"model": model, "seed": jobs[0].seed} | bin for bin in histograms(p, drawn, test)]
            for job, net in nets.items():
                if job.kind == "standard" and job.seed == p.seeds[0]:
                    pairs, y = test.draw(job.world, p.test)
                    row, delta = universal(net, shown(test.blocks.show(pairs)), y, ascent(p.uap), job.seed)
                    moves.append({"model": model, "world": job.world, "seed": job.seed} | row)
                    images[f"uap.{model}.{job.world}"] = delta.cpu().numpy()
            progress.update(1)
    networks, moves = pd.DataFrame(rows), pd.DataFrame(moves)
    store.save_table("plots/mnist_cifar_networks.csv", networks)
    store.save_table("plots/mnist_cifar_logits.csv", pd.DataFrame(logits))
    store.save_table("plots/mnist_cifar_uap.csv", moves)
    store.save_tensors("data/mnist_cifar_shown.safetensors", images)
    one = networks[(networks["kind"] == "standard") & (networks["members"] == 1)]
    store.save_metrics(
        "metrics/mnist_cifar.json",
        {
            "mnist_cifar.auc": float(one["auc"].mean()),
            "mnist_cifar.auc_digit_randomised": float(one["s_auc"].mean()),
            "mnist_cifar.auc_picture_randomised": float(one["rest_auc"].mean()),
            "mnist_cifar.uap_share": float(moves["share"].mean()),
        },
    )


def load_nets(p: MnistCifar, model: str, where: torch.device) -> dict[PictureJob, nn.Module]:
    path = mnist_cifar.path(model)
    arrays = store.load_tensors(path, {})
    return {
        job: weights.take(mnist_cifar.build(p, model, job.seed, where), arrays, job.name, path)
        for job in mnist_cifar.jobs(p, model)
    }


def ensembles(jobs: list[PictureJob]) -> list[list[PictureJob]]:
    """The groups of several networks that differ only in their seed."""
    groups: dict[tuple[str, str], list[PictureJob]] = {}
    for job in jobs:
        groups.setdefault((job.kind, job.world), []).append(job)
    return [group for group in groups.values() if len(group) > 1]


def measured(
    p: MnistCifar, model: str, nets: dict[PictureJob, nn.Module], test: Source
) -> tuple[dict[str, object], dict[str, Drawn]]:
    """The AUCs of a network, or of the mean of several, on samples as they are and with either part randomised."""
    first = next(iter(nets))
    pairs, y = test.draw(first.world, p.test)

    def f(some: Tensor) -> Tensor:
        return torch.stack([mnist_cifar.scores(net, first.kind, test.blocks, some) for net in nets.values()]).mean(0)

    draws = rng(0, f"donors {first.world}")
    drawn = randomised(f, pairs, y, DIGIT.to(y.device), draws, p.permutations, VERSIONS)
    row = {
        "model": model,
        "kind": first.kind,
        "world": first.world,
        "seed": first.seed,
        "members": len(nets),
        "test": p.test,
        "permutations": p.permutations,
        "accuracy": drawn["standard"].mean.accuracy,
        "auc": drawn["standard"].mean.auc_roc,
    }
    for version in VERSIONS:
        found = drawn[version]
        row |= {f"{version}_auc": found.mean.auc_roc, f"{version}_error": found.error.auc_roc}
        row[f"{version}_ks"] = ks(drawn["standard"].values[y > 0], found.values[y > 0])
    if first.kind == "adversarial":
        x, truth = shown(test.blocks.show(pairs[:ATTACKED])), y[:ATTACKED]
        (net,) = nets.values()
        delta = strongest(net, x, truth, "linf", p.adversarial.eps, STEPS, 1, torch.Generator(x.device).manual_seed(0))
        row |= {"robust": accuracy(net, x, truth, delta), "attacked": len(x), "eps": p.adversarial.eps}
    return row, drawn


def histograms(p: MnistCifar, drawn: dict[str, Drawn], test: Source) -> Iterator[dict[str, object]]:
    """Histograms of the logits of positive samples, as in SB's Fig 3(a)."""
    _, y = test.draw(p.worlds[0], p.test)
    for version, found in drawn.items():
        values = found.values[y > 0].cpu().numpy().clip(EDGES[0], EDGES[-1] - 1e-6)
        counts, _ = np.histogram(values, EDGES)
        for low, high, count in zip(EDGES, EDGES[1:], counts, strict=False):
            yield {"version": version, "low": low, "high": high, "share": count / len(values)}


def ascent(p: Uap) -> Ascent:
    return Ascent(p.eps, p.step, p.steps, p.epochs, p.samples)


def examples(p: MnistCifar, test: Source) -> dict[str, np.ndarray]:
    """Some samples of each label of each world."""
    found = {}
    for world in p.worlds:
        pairs, y = test.draw(world, p.test)
        chosen = torch.cat([(y < 0).nonzero()[:EXAMPLES, 0], (y > 0).nonzero()[:EXAMPLES, 0]])
        found[f"examples.{world}"] = test.blocks.show(pairs[chosen]).cpu().numpy()
    return found


if __name__ == "__main__":
    run(main, MnistCifarParams)
