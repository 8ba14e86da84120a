"""FP's Algorithms 1 and 2 from one kind of start: clean training, then adversarial training, and how neurons change."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from brittle.attacks.fgm import Attack
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import Bar, Checkpoints, bar, resumable
from brittle.core.stage import run
from brittle.probes.mixture import decompose, mixture
from brittle.sparse import schedules, settings
from brittle.sparse.params import STARTS, SparseParams
from brittle.sparse.schedules import Phase
from brittle.sparse.settings import Setting
from brittle.train import purify
from brittle.train.purify import BLOCK, Rules, Training

STAGE = "sparse_train"
RECORDS = 16  # how often the neurons are measured along a stretch
PROBED = 1000  # test samples used each time
SHOWN = ("neurons", "alpha", "beta", "agreement", "runaway", "covered")
COLUMNS = ("step", "b", *SHOWN, "second", "rest", "accuracy", "dense")


def main(params: SparseParams, start: str) -> None:
    p = params.sparse
    if start not in STARTS:
        raise BadInput(f"{start}: is not a start; must be one of {', '.join(STARTS)}")
    setting = settings.load_setting(p, device.pick(params.device))
    seeds = getattr(p, start).seeds
    jobs = {seed: schedules.jobs(p, start, Attack("l2", p.tau), seed) for seed in seeds}
    arrays, rows, growth = {}, [], []
    work = sum(effort(job) for every in jobs.values() for job in every)
    with resumable(STAGE) as checkpoints, bar(work, f"training from {start} weights") as shown:
        for seed in seeds:
            done: dict[str, Training] = {}
            for job in jobs[seed]:
                if job.source:
                    begin = done[job.source].then()
                else:
                    begin = schedules.begin(p, setting.world, start, seed, setting.x.device)
                rules = schedules.rules(p, p.d)
                state, seen = train(checkpoints, setting, p.tau, job, begin, rules, seed, shown)
                if len(state.w) == 0:
                    raise BadInput(f"params.yaml: sparse.{start}: every neuron died ({job.name}); use a smaller growth")
                done[job.name] = state
                w = state.w.cpu().numpy()
                arrays |= {f"{seed}.{job.name}.w": w, f"{seed}.{job.name}.b": np.array([state.b])}
                growth.append(pd.DataFrame(seen, columns=COLUMNS).assign(seed=seed, network=job.name))
                # In Git, with a digest of the weights: stages that depend on this table depend on the networks.
                row = {"start": start, "seed": seed, "network": job.name, "neurons": len(w), "b": state.b}
                rows.append(row | {"weights": hashlib.sha256(w.tobytes()).hexdigest()})
            arrays[f"{seed}.start"] = done["clean"].start.cpu().numpy()
        store.save_tensors(f"models/sparse/{start}.safetensors", arrays)
        store.save_table(f"plots/sparse/{start}.csv", pd.DataFrame(rows))
        store.save_table(f"plots/sparse_growth/{start}.csv", pd.concat(growth))


def effort(job: Phase) -> float:
    """A job's share of the progress bar, counted in matrix products."""
    attack = job.stretch.attack
    return job.stretch.steps * job.stretch.batch * (1 + 2 * attack.steps if attack else 1)


def train(
    checkpoints: Checkpoints,
    setting: Setting,
    tau: float,
    job: Phase,
    state: Training,
    rules: Rules,
    seed: int,
    shown: Bar,
) -> tuple[Training, list[list[float]]]:
    """Train, resuming if stopped before; return the final state and the measurements of the neurons on the way."""
    before, seen, device = shown.n, [], state.w.device
    world = setting.world
    arrays = (state.w.cpu().numpy(), world.dictionary, world.w_star, setting.x.cpu().numpy(), setting.y.cpu().numpy())
    shape = replace(world, dictionary=None, w_star=None)
    checkpoint = checkpoints.of(*arrays, shape, state.b, job, rules, seed, tau, str(device))
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
    return state, seen


def look(setting: Setting, tau: float, state: Training, rules: Rules) -> dict[str, float]:
    """What neurons consist of: the mixture, the second largest coefficient and the RMS of the rest; the accuracy."""
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
