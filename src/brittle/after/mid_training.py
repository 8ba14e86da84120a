"""Are complex features learnt on the way, and lost again? A linear probe of Sᶜ in hidden features, along training."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.after.xor_params import MidTraining, MidTrainingParams
from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.fcn import Fcn
from brittle.probes.linear_probe import decodable
from brittle.train import sgd
from brittle.train.sgd import Member, SgdPlan, SgdState
from brittle.worlds import slabs


def main(params: MidTrainingParams) -> None:
    p, where = params.mid_training, device.pick(params.device)
    rows = [row for d in tracked(p.ds, "training and probing") for row in probed(p, d, where)]
    store.save_table("plots/mid_training.csv", pd.DataFrame(rows))


def probed(p: MidTraining, d: int, where: torch.device) -> list[dict[str, float]]:
    """One row a seed and epoch: what can be read of the label where S, or Sᶜ, comes from other samples."""
    family, world = Fcn(d, p.width, p.depth), slabs.world(p.world, d)
    drawn = zip(*(world.sample(p.samples, rng(seed, f"mid training {d}")) for seed in p.seeds), strict=True)
    x, y = (torch.from_numpy(np.stack(part)).to(where) for part in drawn)
    # Fresh samples, the first half for the probe to learn from.
    fresh_x, fresh_y = (torch.from_numpy(each).to(where) for each in world.sample(2 * p.probed, rng(d, "mid training")))
    order = torch.from_numpy(rng(d, "mid training donors").permutation(2 * p.probed)).to(where)
    only = {"rest": fresh_x.clone(), "simple": fresh_x[order]}  # the features that still belong to the label
    only["rest"][:, 0], only["simple"][:, 0] = fresh_x[order, 0], fresh_x[:, 0]
    rows: list[dict[str, float]] = []

    def watch(state: SgdState) -> None:
        if (epoch := len(state.losses)) not in p.epochs:
            return
        for i, seed in enumerate(p.seeds):
            theta = state.theta[i : i + 1]
            right = float((family(theta, fresh_x[None])[0] * fresh_y > 0).double().mean())
            loss = float(state.losses[-1, i]) if epoch else float("nan")
            row = {"world": p.world, "d": d, "width": p.width, "depth": p.depth, "seed": seed, "epoch": epoch}
            row |= {"loss": loss, "accuracy": right}
            rows.append(
                row | {name: _read(family.features(theta, each[None])[0], fresh_y) for name, each in only.items()}
            )

    members = [Member(seed, data, lr=p.lr) for data, seed in enumerate(p.seeds)]
    sgd.train(family, members, x, y, SgdPlan(epochs=max(p.epochs), batch=p.batch), watch=watch)
    return rows


def _read(h: Tensor, y: Tensor) -> float:
    half = len(y) // 2
    return decodable(h[:half], y[:half], h[half:], y[half:])


if __name__ == "__main__":
    run(main, MidTrainingParams)
