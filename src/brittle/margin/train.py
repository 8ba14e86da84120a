"""Train one depth-2 network per seed on its data, to the target loss."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from brittle.core import device, store
from brittle.core.progress import bar, resumable
from brittle.core.stage import run
from brittle.margin import networks
from brittle.margin.params import MarginParams

CURVE = 200  # points of a training curve


def main(params: MarginParams) -> None:
    p, seeds = params.margin, params.seeds
    where = device.pick(params.device)
    how, settings = {
        "flow": (networks.flow_method, _settings(p.flow, "momentum", "max_steps")),
        "protocol": (
            networks.protocol_method,
            _settings(p.protocol, "batch", "lr", "growth", "every", "max_steps"),
        ),
    }[p.method]
    method = how(loss=p.loss, log10_target=p.log10_target, **settings)
    data = store.load_tensors("data/margin.safetensors", {"x": "s m d", "y": "s m"}, s=len(seeds))
    with resumable("margin_train") as checkpoints, bar(len(seeds), "training") as shown:
        trained = networks.train(
            checkpoints,
            data["x"],
            data["y"],
            seeds,
            width=params.width,
            init_scale=p.init_scale,
            method=method,
            where=where,
            advise=f"a larger margin.{p.method}.max_steps or width may help, "
            "or a less extreme margin.log10_target, margin.init_scale or margin.protocol.lr",
            watch=shown.reach,
        )
        ln_target = p.log10_target * math.log(10)
        curves = [_curve(seed, ln, ln_target) for seed, ln in zip(seeds, trained.histories, strict=True)]
        store.save_tensors("models/margin.safetensors", trained.net)
        store.save_table("plots/margin_training.csv", pd.concat(curves))


def _settings(section: object, *names: str) -> dict[str, object]:
    return {name: getattr(section, name) for name in names}


def _curve(seed: int, ln_loss: np.ndarray, ln_target: float) -> pd.DataFrame:
    """ln loss against the step, at steps spaced evenly in their logarithm, until it reaches the target."""
    steps = 1 + int(np.argmax(ln_loss <= ln_target))
    at = np.unique(np.geomspace(1, steps, CURVE).astype(int)) - 1
    return pd.DataFrame({"seed": seed, "step": at, "ln_loss": ln_loss[at]})


if __name__ == "__main__":
    run(main, MarginParams)
