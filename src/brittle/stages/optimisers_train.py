"""Train networks with other optimisers, at depth 2 and deeper (VYS §7)."""

from __future__ import annotations

import math

import pandas as pd
import torch

from brittle import device, store
from brittle.params.base import BadInput
from brittle.params.optimisers import OptimisersParams
from brittle.stages.draws import draws
from brittle.stages.optimisers import runs
from brittle.stages.progress import Checkpoint, bar, fingerprint
from brittle.stages.run import run
from brittle.train.optimisers import OPTIMISERS, OptimiserState, train
from brittle.train.state import NotReached

STAGE = "optimisers_train"


def main(params: OptimisersParams) -> None:
    p = params.optimisers
    where = device.pick(params.device)
    x, y = draws(p.d, p.m, p.seeds)
    xs, ys = (torch.from_numpy(a).to(where) for a in (x, y))
    ln_target = p.log10_target * math.log(10)
    every = runs(p)
    tensors, rows, checkpoints = {}, [], []
    with bar(len(every), "training") as shown:
        for n, each in enumerate(every):
            key = fingerprint(x, y, p.seeds, each, ln_target, p.max_steps, where)
            checkpoint = Checkpoint(STAGE, key)
            saved = checkpoint.load(OptimiserState.names())

            def watch(state: OptimiserState, n: int = n, checkpoint: Checkpoint = checkpoint) -> None:
                shown.reach(n + float((state.ln_loss / ln_target).clamp(0, 1).mean()))
                if checkpoint.due():
                    checkpoint.save(state.arrays())

            try:
                net, state = train(
                    xs,
                    ys,
                    each.start(p.d, p.seeds).to(where),
                    optimiser=OPTIMISERS[each.rule],
                    loss="exponential",
                    ln_target=ln_target,
                    max_steps=p.max_steps,
                    state=OptimiserState.restore(saved, where) if saved else None,
                    watch=watch,
                )
            except NotReached as short:
                raise BadInput(f"{STAGE}: {each.name}: stopped at {short}; try a larger optimisers.max_steps") from None
            checkpoint.save(state.arrays())
            checkpoints.append(checkpoint)
            tensors |= each.arrays(net)
            history = torch.stack([*state.history, state.ln_loss], dim=1)
            steps = (history > ln_target).sum(1).tolist()
            rows += [
                {"rule": each.rule, "depth": each.depth, "seed": seed, "steps": taken}
                for seed, taken in zip(p.seeds, steps, strict=True)
            ]
    store.save_tensors("models/optimisers.safetensors", tensors)
    store.save_table("plots/optimisers_steps.csv", pd.DataFrame(rows))
    for checkpoint in checkpoints:
        checkpoint.forget()


if __name__ == "__main__":
    run(main, OptimisersParams, threads=2)
