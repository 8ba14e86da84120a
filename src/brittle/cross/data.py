"""Draw one world of the comparison across the papers, with the best classifier that is known there."""

from __future__ import annotations

import math

import numpy as np
import torch

from brittle.core import device
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.cross import worlds
from brittle.cross.params import CrossParams
from brittle.nets.robust_construction import thm31
from brittle.pictures import mnist_cifar_data
from brittle.pictures.mnist_cifar_params import MnistCifarParams
from brittle.probes import f_star, threshold
from brittle.probes.certify import certified
from brittle.slabs import draws
from brittle.slabs.params import SlabsParams
from brittle.sparse.params import SparseParams
from brittle.sparse.world import draw_world
from brittle.worlds import sphere
from brittle.worlds.common import World
from brittle.worlds.pixels import shown
from brittle.worlds.slabs import rotation

SEED = 0  # the seed of all draws


class Params(CrossParams, SlabsParams, SparseParams, MnistCifarParams):
    """The numbers of samples, and the parameters of each world as in the other chapters."""


def main(params: Params, world: str) -> None:
    worlds.save_world(world, draw(params, world))


def draw(params: Params, name: str) -> World:
    if name == "sphere":
        return on_the_sphere(params)
    if name == "sparse":
        return of_words(params)
    if name == "mnist-cifar":
        return of_pictures(params)
    return in_slabs(params, name)


def on_the_sphere(params: Params) -> World:
    """The data of VYS §6. Labels are random, so the training samples are also the test samples."""
    p = params.cross
    x, y = (torch.from_numpy(a) for a in sphere.sample(p.dimension, p.samples.sphere, rng(SEED, "cross sphere")))
    z, radius = y @ x, p.radius.sphere * math.sqrt(p.dimension)
    kept = certified(thm31(x, y), x, y).radius > radius
    x, y = x.float(), y.float()
    return World(
        x=x,
        y=y,
        x_test=x,
        y_test=y,
        radius=radius,
        simple=(z / z.norm())[None].float(),
        simple_is="the line of z = Σ y x",
        best="Thm 3.1's network",
        best_robust=float(kept.double().mean()),
    )


def in_slabs(params: Params, name: str) -> World:
    """A slab world of SB §3.1."""
    p, s = params.cross, params.slabs
    kind = draws.world(s, name, s.d)
    q = rotation(s.d, rng(SEED, f"cross {name} rotation")) if s.rotate else np.eye(s.d, dtype=np.float32)
    (u, y), (u_test, y_test) = (
        kind.sample(n, rng(SEED, f"cross {name} {part}"))
        for n, part in ((p.samples.slabs, "train"), (p.samples.test, "test"))
    )
    linear = kind.first.pieces == 1
    radius = {True: p.radius.linear, False: p.radius.slab}[linear]
    kept = f_star.smallest(kind, u_test, y_test).lower > radius
    return World(
        x=torch.from_numpy(u @ q),
        y=torch.from_numpy(y),
        x_test=torch.from_numpy(u_test @ q),
        y_test=torch.from_numpy(y_test),
        radius=radius,
        simple=torch.from_numpy(q[:1]),
        simple_is="the linear coordinate" if linear else f"the {kind.first.pieces + 1}-slab coordinate",
        basis=torch.from_numpy(q.T.copy()),
        best="f* of SB §4.3",
        best_robust=float(kept.mean()),
    )


def of_words(params: Params) -> World:
    """The sparse coding model of FP §2."""
    p, s = params.cross, params.sparse
    kind = draw_world(s)
    (x, y), (x_test, y_test) = (
        map(torch.from_numpy, kind.draw(n, rng(SEED, f"cross sparse {part}")))
        for n, part in ((p.samples.sparse, "train"), (p.samples.test, "test"))
    )
    dictionary, w_star = torch.from_numpy(kind.dictionary), torch.from_numpy(kind.w_star)
    kept = math.nan
    if s.dictionary != "incoherent":  # the certificate needs orthonormal words
        model = threshold.fitted(dictionary, w_star, x[:500], y[:500], s.tau, s.k)
        kept = float((threshold.certified(model, x_test, y_test) > s.tau).double().mean())
    return World(
        x=x,
        y=y,
        x_test=x_test,
        y_test=y_test,
        radius=s.tau,
        simple=torch.from_numpy(kind.dense)[None],
        simple_is="the line of M w*",
        basis=dictionary,
        best="the thresholded model of FP §3",
        best_robust=kept,
        net="symmetric",
    )


def of_pictures(params: Params) -> World:
    """SB's MNIST-CIFAR, the first pair of classes."""
    p, name = params.cross, params.mnist_cifar.worlds[0]
    sources = mnist_cifar_data.load_sources(device.pick("cpu"))
    drawn = []
    for split, n in (("train", p.samples.pictures), ("test", min(p.samples.test, p.samples.pictures))):
        pairs, y = sources[split].draw(name, n)
        drawn += [shown(sources[split].blocks.show(pairs)).contiguous(), y]
    x, y, x_test, y_test = drawn
    above = torch.zeros(x.shape[1:], dtype=torch.bool)
    above[:, : x.shape[2] // 2] = True
    return World(
        x=x.flatten(1),
        y=y,
        x_test=x_test.flatten(1),
        y_test=y_test,
        radius=p.radius.pictures,
        simple=above.flatten(),
        simple_is="the digit",
        net="cnn",
        shape=tuple(x.shape[1:]),
    )


if __name__ == "__main__":
    run(main, Params)
