"""Train two-layer networks with powers of ReLU on clusters, from tiny weights, by mini-batches (Min and Vidal 2024)."""

from __future__ import annotations

import numpy as np
import torch

from brittle.after.powers import Cell, cells, family
from brittle.after.powers_params import PowersParams, PowersSection
from brittle.core import device, store
from brittle.core.progress import Checkpoints, bar, resumable
from brittle.core.stage import run
from brittle.train.sgd import Member, SgdPlan, SgdState, train

STAGE = "powers_train"


def main(params: PowersParams) -> None:
    p, where = params.powers, device.pick(params.device)
    every, tensors = cells(p), {}
    with resumable(STAGE) as checkpoints, bar(len(every), "training") as shown:
        for i, cell in enumerate(every):
            state = trained(checkpoints, p, cell, where)
            w, v = family(p, cell).weights(state.theta)
            # Each network's loss in its last epoch: it has none after it has reached the target.
            last = [losses[~losses.isnan()][-1] for losses in state.losses.cpu().T]
            tensors |= {f"{cell.name}.w": w.cpu().numpy(), f"{cell.name}.v": v.cpu().numpy()}
            tensors[f"{cell.name}.loss"] = torch.stack(last).numpy()
            shown.reach(i + 1)
        store.save_tensors("models/powers.safetensors", tensors)


def trained(checkpoints: Checkpoints, p: PowersSection, cell: Cell, where: torch.device) -> SgdState:
    """One network for each seed, on its own samples."""
    checkpoint = checkpoints.of(p, cell, where)
    saved = checkpoint.load(SgdState.__annotations__)
    data = (cell.draw(p, seed, p.n, "training") for seed in p.seeds)
    x, y = (torch.from_numpy(np.stack(part).astype("f4")).to(where) for part in zip(*data, strict=True))

    def watch(state: SgdState) -> None:
        if checkpoint.due():
            checkpoint.save(state.arrays())

    return train(
        family(p, cell),
        [Member(seed, i, lr=p.lr) for i, seed in enumerate(p.seeds)],
        x,
        y,
        SgdPlan(epochs=p.epochs, batch=p.batch, loss="exponential", target=p.target),
        state=SgdState.restore(saved, where) if saved else None,
        watch=watch,
    )


if __name__ == "__main__":
    run(main, PowersParams)
