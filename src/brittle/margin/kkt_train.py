"""Train networks from several initial scales far past the paper's stopping point; store them at several losses."""

from __future__ import annotations

import math

import numpy as np
import torch

from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import Checkpoint, Pace, bar, resumable
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.margin.draws import draws
from brittle.margin.kkt_params import KKTParams
from brittle.nets.two_layer import TwoLayer, initial
from brittle.train import flow
from brittle.train.state import NotReached

STAGE = "kkt_train"


def main(params: KKTParams) -> None:
    p = params.kkt
    where = device.pick(params.device)
    levels = sorted(p.log10_levels, reverse=True)
    x, y = (np.concatenate([a] * len(p.init_scales)) for a in draws(p.d, p.m, p.seeds))
    starts = [initial(p.d, p.width, s, [rng(seed, "margin init") for seed in p.seeds]) for s in p.init_scales]
    start = TwoLayer(*(torch.cat([getattr(net, name) for net in starts]) for name in ("w", "b", "v")))
    xs, ys = (torch.from_numpy(a).to(where) for a in (x, y))
    tensors, state, pace = {}, None, Pace()
    with resumable(STAGE) as checkpoints, bar(-levels[-1], "training") as shown:
        for level in levels:
            settings = (p.seeds, p.width, p.init_scales, p.momentum, p.max_steps, levels, level, where)
            checkpoint = checkpoints.of(x, y, *settings)
            saved = checkpoint.load(flow.FlowState.names())

            def watch(now: flow.FlowState, checkpoint: Checkpoint = checkpoint) -> None:
                if pace.due():
                    shown.reach(min(-float(now.ln_loss.max()) / math.log(10), shown.total))
                if checkpoint.due():
                    checkpoint.save(now.arrays())

            try:
                net, state = flow.train(
                    xs,
                    ys,
                    start.to(where),
                    loss="exponential",
                    ln_target=level * math.log(10),
                    momentum=p.momentum,
                    max_steps=p.max_steps,
                    state=flow.FlowState.restore(saved, where) if saved else state,
                    watch=watch,
                )
            except NotReached as short:
                raise BadInput(f"{STAGE}: stopped at {short}; a larger kkt.max_steps may help") from None
            shown.reach(-level)
            checkpoint.save(state.arrays())
            for name, tensor in vars(net).items():
                shape = (len(p.init_scales), len(p.seeds), *tensor.shape[1:])
                tensors[f"{level}.{name}"] = tensor.cpu().numpy().reshape(shape)
        store.save_tensors("models/kkt.safetensors", tensors)


if __name__ == "__main__":
    run(main, KKTParams)
