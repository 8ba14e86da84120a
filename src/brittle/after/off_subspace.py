"""Train on data in a subspace, and measure the weights, the gradient and the boundary off it (A1–A4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.after.off_subspace_params import OffSubspace, OffSubspaceParams
from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.fixed_output import FixedOutput
from brittle.nets.two_layer import TwoLayer
from brittle.probes.off_subspace import flip_sizes, gradients, off, predicted_gradient, shrunk
from brittle.train.sgd import Member, SgdPlan, SgdState, train
from brittle.worlds import subspace


@dataclass(frozen=True)
class Case:
    """One network: the codimension ℓ of its data, the scale β of its initial weights, its weight decay λ, its seed."""

    codimension: int
    scale: float
    decay: float
    seed: int

    def data(self, p: OffSubspace) -> tuple[Tensor, Tensor, Tensor]:
        draws = rng(self.seed, f"off subspace data {self.codimension}")
        return tuple(torch.from_numpy(a) for a in subspace.sample(p.d, p.m, self.codimension, draws))

    def initial(self, p: OffSubspace) -> Tensor:
        """w ~ N(0, β²/d), other draws for every codimension."""  # (k d,)
        draws = rng(self.seed, f"off subspace init {self.codimension}")
        return torch.from_numpy(self.scale / math.sqrt(p.d) * draws.standard_normal(p.width * p.d))


def main(params: OffSubspaceParams) -> None:
    p = params.off_subspace
    rows = [row for group in tracked(groups(p), "training") for row in trained(p, group)]
    store.save_table("plots/off_subspace.csv", pd.DataFrame(rows))


def groups(p: OffSubspace) -> list[list[Case]]:
    """First those that stop at the target loss: all ℓ at scale 1, all scales at the middle ℓ. Then weight decay there.

    The middle ℓ is the one nearest to d/2.
    """
    middle = min(p.codimensions, key=lambda each: abs(each - p.d / 2))
    plain = [(each, 1.0) for each in p.codimensions] + [(middle, scale) for scale in p.scales if scale != 1.0]
    decayed = [(middle, 1.0, decay) for decay in p.decays]
    return [
        [Case(*cell, 0.0, seed) for cell, seed in product(plain, p.seeds)],
        [Case(*cell, seed) for cell, seed in product(decayed, p.seeds)],
    ]


def trained(p: OffSubspace, cases: list[Case]) -> list[dict[str, float]]:
    """SGD without momentum on the first layer alone, all networks side by side, in float64."""
    x, y, bases = zip(*(case.data(p) for case in cases), strict=True)
    decayed = cases[0].decay > 0  # the loss of these stays above the target
    epochs, target = (p.decayed_epochs, 0.0) if decayed else (p.epochs, p.target)
    members = [Member(case.seed, i, p.lr, weight_decay=case.decay) for i, case in enumerate(cases)]
    family, start = FixedOutput(p.d, p.width), torch.stack([case.initial(p) for case in cases])
    plan = SgdPlan(epochs=epochs, batch=p.batch, target=target)
    state = train(family, members, torch.stack(x), torch.stack(y), plan, state=SgdState.start(start.clone()))
    updates = (~state.losses.isnan()).sum(0) * (p.m // min(p.batch, p.m))
    nets = [as_two_layer(family, theta) for theta in state.theta]
    before = [as_two_layer(family, theta) for theta in start]
    each = zip(cases, nets, before, x, y, bases, updates.tolist(), strict=True)
    return [measured(p, case, *rest) for case, *rest in each]


def as_two_layer(family: FixedOutput, theta: Tensor) -> TwoLayer:
    v = torch.full((1, family.units), 1 / math.sqrt(family.units), dtype=theta.dtype)
    v[:, family.units // 2 :] *= -1
    return TwoLayer(family.weights(theta[None]), torch.zeros_like(v), v)


def measured(
    p: OffSubspace, case: Case, net: TwoLayer, before: TwoLayer, x: Tensor, y: Tensor, basis: Tensor, updates: int
) -> dict[str, float]:
    """Medians over the training samples."""
    kept = shrunk(p.lr, case.decay, updates)
    w, w0 = off(net.w[0], basis), off(before.w[0], basis)
    gradient, active = gradients(net, x)
    size = off(gradient, basis).norm(dim=1)
    predicted = kept * predicted_gradient(active, p.width, case.codimension, p.d, case.scale)
    outputs, flips = y * net(x[None])[0], flip_sizes(net, x, y, basis)
    row = {"d": p.d, "m": p.m, "width": p.width} | vars(case)
    return row | {
        "updates": updates,
        "accuracy": float((outputs > 0).double().mean()),
        "output": float(outputs.median()),
        "predicted_left": kept,
        "left": float(w.norm() / w0.norm()),  # of the weights off the subspace
        "moved": float((w - kept * w0).norm() / w0.norm()),  # what is not explained by weight decay
        "gradient": float(size.median()),
        "ratio": float((size / predicted).median()),
        "flip": float(flips.median()),
        "flip_over_output": float((flips / outputs).median()),
        "norm": float(np.median(x.norm(dim=1))),
    }


if __name__ == "__main__":
    run(main, OffSubspaceParams)
