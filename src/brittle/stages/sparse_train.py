"""FP's Algorithms 1 and 2 from one kind of start: clean training, then adversarial training, and how neurons change."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from brittle import device, store
from brittle.attacks.fgm import Attack
from brittle.params.base import BadInput
from brittle.params.sparse import STARTS, SparseParams
from brittle.probes.mixture import decompose, mixture
from brittle.stages import sparse
from brittle.stages.progress import Bar, Checkpoint, bar, fingerprint
from brittle.stages.run import run
from brittle.stages.sparse import Job, Setting
from brittle.train import purify
from brittle.train.purify import BLOCK, Rules, Training

STAGE = "sparse_train"
RECORDS = 16  # looks at the neurons along a stretch
PROBED = 1000  # test samples of a look
SHOWN = ("neurons", "alpha", "beta", "agreement", "runaway", "covered")
COLUMNS = ("step", "b", *SHOWN, "second", "rest", "accuracy", "dense")


def main(params: SparseParams, start: str) -> None:
    p = params.sparse
    if start not in STARTS:
        raise BadInput(f"{start}: is not a start; must be one of {', '.join(STARTS)}")
    setting = sparse.load(p, device.pick(params.device))
    every = sparse.jobs(p, start, Attack("l2", p.tau))
    seeds = getattr(p, start).seeds
    arrays, rows, growth, checkpoints = {}, [], [], []
    with bar(len(seeds) * sum(effort(job) for job in every), f"training from {start} weights") as shown:
        for seed in seeds:
            done: dict[str, Training] = {}
            for job in every:
                if job.source:
                    begin = done[job.source].then()
                else:
                    begin = sparse.begin(p, setting.world, start, seed, setting.x.device)
                state, seen, checkpoint = train(setting, p.tau, job, begin, sparse.rules(p, p.d), seed, shown)
                checkpoints.append(checkpoint)
                if len(state.w) == 0:
                    raise BadInput(f"params.yaml: sparse.{start}: every neuron died ({job.name}); use a smaller growth")
                done[job.name] = state
                w = state.w.cpu().numpy()
                arrays |= {f"{seed}.{job.name}.w": w, f"{seed}.{job.name}.b": np.array([state.b])}
                growth.append(pd.DataFrame(seen, columns=COLUMNS).assign(seed=seed, network=job.name))
                # In Git, and with a digest of the weights: what depends on this table depends on the networks.
                row = {"start": start, "seed": seed, "network": job.name, "neurons": len(w), "b": state.b}
                rows.append(row | {"weights": hashlib.sha256(w.tobytes()).hexdigest()})
            arrays[f"{seed}.start"] = done["clean"].start.cpu().numpy()
    store.save_tensors(f"models/sparse/{start}.safetensors", arrays)
    store.save_table(f"plots/sparse/{start}.csv", pd.DataFrame(rows))
    store.save_table(f"plots/sparse_growth/{start}.csv", pd.concat(growth))
    for checkpoint in checkpoints:
        checkpoint.forget()


def effort(job: Job) -> float:
    """In products of matrices: what a job's share of the progress bar is."""
    attack = job.stretch.attack
    return job.stretch.steps * job.stretch.batch * (1 + 2 * attack.steps if attack else 1)


def train(
    setting: Setting, tau: float, job: Job, state: Training, rules: Rules, seed: int, shown: Bar
) -> tuple[Training, list[list[float]], Checkpoint]:
    """The state after the job, and what was seen of its neurons on the way; resumed if it was stopped before."""
    before, seen, device = shown.n, [], state.w.device
    world = setting.world
    arrays = (state.w.cpu().numpy(), world.dictionary, world.w_star, setting.x.cpu().numpy(), setting.y.cpu().numpy())
    shape = replace(world, dictionary=None, w_star=None)
    checkpoint = Checkpoint(STAGE, fingerprint(*arrays, shape, state.b, job, rules, seed, tau, str(device)))
    saved = checkpoint.load(("w", "start", "velocity", "numbers", "seen"))
    if saved:
        tensors = (torch.tensor(saved[name], device=device) for name in ("w", "start", "velocity"))
        state = Training(*tensors, b=float(saved["numbers"][0]), step=int(saved["numbers"][1]))
        seen = saved["seen"].tolist()
    every = BLOCK * max(1, job.stretch.steps // (RECORDS * BLOCK))

    def watch(state: Training) -> None:
        if (state.step % every == 0 or state.step == job.stretch.steps) and state.step not in [row[0] for row in seen]:
            seen.append([float(state.step), state.b, *look(setting.first(PROBED), tau, state, rules).values()])
        shown.reach(before + effort(job) * state.step / job.stretch.steps)
        if checkpoint.due() or state.step == job.stretch.steps:
            tensors = {name: getattr(state, name).cpu().numpy() for name in ("w", "start", "velocity")}
            checkpoint.save(tensors | {"numbers": np.array([state.b, state.step]), "seen": np.array(seen)})

    purify.run(state, setting.world, job.stretch, rules, seed, f"sparse {job.name}", watch)
    return state, seen, checkpoint


def look(setting: Setting, tau: float, state: Training, rules: Rules) -> dict[str, float]:
    """What the neurons consist of now; the largest coefficient, the second, and the root mean square of all others."""
    neurons, net = decompose(state.w, setting.dictionary, setting.w_star), state.net(rules)
    found = mixture(neurons, state.w, setting.dictionary, setting.w_star)
    top = neurons.coefficients.abs().topk(2, dim=1).values
    others = (neurons.coefficients.square().sum(1) - top.square().sum(1)).clamp(min=0) / (
        neurons.coefficients.shape[1] - 2
    )
    right = [
        float((setting.y * net(x) > 0).double().mean())
        for x in (setting.x, setting.x - tau * setting.y[:, None] * setting.dense)
    ]
    return {name: found[name] for name in SHOWN} | {
        "second": float(top[:, 1].median()),
        "rest": float(others.sqrt().median()),
        "accuracy": right[0],
        "dense": right[1],
    }


if __name__ == "__main__":
    run(main, SparseParams)
