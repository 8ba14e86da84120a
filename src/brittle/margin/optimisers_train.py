"""Train networks with other optimisers, at depth 2 and deeper (VYS §7)."""

from __future__ import annotations

import math

import pandas as pd
import torch

from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import Checkpoint, Pace, bar, resumable
from brittle.core.stage import run
from brittle.margin.draws import draws
from brittle.margin.optimisers import runs
from brittle.margin.optimisers_params import OptimisersParams
from brittle.train.optimisers import OPTIMISERS, OptimiserState, train
from brittle.train.state import NotReached

STAGE = "optimisers_train"


def main(params: OptimisersParams) -> None:
    p = params.optimisers
    where = device.pick(params.device)
    ln_target = p.log10_target * math.log(10)
    every = runs(p)
    tensors, rows, pace = {}, [], Pace()
    with resumable(STAGE) as checkpoints, bar(len(every), "training") as shown:
        for n, each in enumerate(every):
            x, y = draws(each.d, each.m, p.seeds)
            checkpoint = checkpoints.of(x, y, p.seeds, each, ln_target, p.max_steps, where)
            saved = checkpoint.load(OptimiserState.names())

            def watch(state: OptimiserState, n: int = n, checkpoint: Checkpoint = checkpoint) -> None:
                if pace.due():
                    shown.reach(n + float((state.ln_loss / ln_target).clamp(0, 1).mean()))
                if checkpoint.due():
                    checkpoint.save(state.arrays())

            try:
                net, state = train(
                    torch.from_numpy(x).to(where),
                    torch.from_numpy(y).to(where),
                    each.start(p.seeds).to(where),
                    optimiser=OPTIMISERS[each.rule],
                    loss="exponential",
                    ln_target=ln_target,
                    max_steps=p.max_steps,
                    state=OptimiserState.restore(saved, where) if saved else None,
                    watch=watch,
                )
            except NotReached as short:
                raise BadInput(f"{STAGE}: {each.name}: stopped at {short}; try a larger optimisers.max_steps") from None
            shown.reach(n + 1)
            checkpoint.save(state.arrays())
            tensors |= each.arrays(net)
            history = torch.stack([*state.history, state.ln_loss], dim=1)
            steps = (history > ln_target).sum(1).tolist()
            rows += [each.cell | {"seed": seed, "steps": taken} for seed, taken in zip(p.seeds, steps, strict=True)]
        store.save_tensors("models/optimisers.safetensors", tensors)
        store.save_table("plots/optimisers_steps.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    run(main, OptimisersParams)
