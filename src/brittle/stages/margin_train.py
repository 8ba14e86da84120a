"""Train one depth-2 network per seed on its data, to the target loss."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch

from brittle import device, store
from brittle.nets.two_layer import initial
from brittle.params.base import BadInput
from brittle.params.margin import MarginParams
from brittle.rng import rng
from brittle.stages.progress import Checkpoint, bar, fingerprint
from brittle.stages.run import run
from brittle.train import flow, protocol
from brittle.train.state import NotReached, State

STAGE = "margin_train"
TOGETHER = 1 << 25  # samples × neurons of the networks that train side by side (128 MiB a tensor)
CURVE = 200  # points of a training curve


def main(params: MarginParams) -> None:
    p, seeds, width, scale = params.margin, params.seeds, params.width, params.margin.init_scale
    where = device.pick(params.device)
    method, state_type, settings = {
        "flow": (flow.train, flow.FlowState, _settings(p.flow, "momentum", "max_steps")),
        "protocol": (
            protocol.train,
            protocol.ProtocolState,
            _settings(p.protocol, "batch", "lr", "growth", "every", "max_steps"),
        ),
    }[p.method]
    ln_target = p.log10_target * math.log(10)
    settings |= {"loss": p.loss, "ln_target": ln_target}

    data = store.load_tensors("data/margin.safetensors", {"x": "s m d", "y": "s m"}, s=len(seeds))
    x, y = data["x"], data["y"]
    together = max(1, TOGETHER // (x.shape[1] * width))
    groups = [slice(i, i + together) for i in range(0, len(seeds), together)]
    nets, curves, checkpoints = [], [], []
    with bar(len(seeds), "training") as shown:
        for group in groups:
            start = initial(x.shape[2], width, scale, [rng(seed, "margin init") for seed in seeds[group]])
            key = fingerprint(x[group], y[group], seeds[group], width, scale, p.method, settings, where)
            checkpoint = Checkpoint(STAGE, key)
            saved = checkpoint.load(state_type.names())

            def watch(state: State, group: slice = group, checkpoint: Checkpoint = checkpoint) -> None:
                # ln loss falls ever faster; its square root keeps pace with the clock.
                done = float((state.ln_loss / ln_target).clamp(0, 1).sqrt().sum())
                shown.update(group.start + done - shown.n)
                if checkpoint.due():
                    checkpoint.save(state.arrays())

            try:
                net, state = method(
                    torch.from_numpy(x[group]).to(where),
                    torch.from_numpy(y[group]).to(where),
                    start.to(where),
                    state=state_type.restore(saved, where) if saved else None,
                    watch=watch,
                    **settings,
                )
            except NotReached as short:
                raise BadInput(
                    f"{STAGE}: stopped at {short}; a larger margin.{p.method}.max_steps or width may help, "
                    "or a less extreme margin.log10_target, margin.init_scale or margin.protocol.lr"
                ) from None
            if len(groups) > 1:
                checkpoint.save(state.arrays())
            checkpoints.append(checkpoint)
            nets.append({name: tensor.cpu().numpy() for name, tensor in vars(net).items()})
            history = torch.stack([*state.history, state.ln_loss], dim=1).cpu().numpy()
            curves += [_curve(seed, ln, ln_target) for seed, ln in zip(seeds[group], history, strict=True)]

    store.save_tensors("models/margin.safetensors", {n: np.concatenate([net[n] for net in nets]) for n in nets[0]})
    store.save_table("plots/margin_training.csv", pd.concat(curves))
    for checkpoint in checkpoints:
        checkpoint.forget()


def _settings(section: object, *names: str) -> dict[str, object]:
    return {name: getattr(section, name) for name in names}


def _curve(seed: int, ln_loss: np.ndarray, ln_target: float) -> pd.DataFrame:
    """ln loss against the step, at steps spaced evenly in their logarithm, as far as the network moved."""
    steps = 1 + int(np.argmax(ln_loss <= ln_target))
    at = np.unique(np.geomspace(1, steps, CURVE).astype(int)) - 1
    return pd.DataFrame({"seed": seed, "step": at, "ln_loss": ln_loss[at]})


if __name__ == "__main__":
    run(main, MarginParams)
