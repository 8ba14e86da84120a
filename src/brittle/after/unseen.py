"""Train networks on clusters and measure them on fresh samples: do they generalise, and does one vector flip them?"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch

from brittle.after.unseen_params import UnseenParams, UnseenSection
from brittle.after.unseen_settings import Setting, settings
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import Checkpoints, resumable, tracked
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.nets.two_layer import TwoLayer, initial, single
from brittle.probes.unseen import Samples, Unseen, unseen
from brittle.train import flow
from brittle.train.state import NotReached
from brittle.worlds.noisy_clusters import correlation

STAGE = "unseen"
ASSUMED = 0.1  # the most correlation that Frei and others allow
SIZES = np.linspace(0.0, 2.0, 81)  # of the curves, relative to √(d/k)


def main(params: UnseenParams) -> None:
    p, where = params.unseen, device.pick(params.device)
    device.keep_freed_memory()  # crossings of many samples, again and again
    rows, curves = [], []
    with resumable(STAGE) as checkpoints:
        for setting in tracked(settings(p), "training and measuring"):
            nets = trained(checkpoints, setting, p, where)
            unit = math.sqrt(setting.d / setting.k)
            cell = vars(setting) | {"n": setting.n, "width": p.width, "unit": unit}
            found = [measured(single(nets, i), setting, p, seed) for i, seed in enumerate(p.seeds)]
            for seed, each in zip(p.seeds, found, strict=True):
                close = correlation(setting.draw_centres(seed)[0], setting.sigma)
                row = cell | {"seed": seed, "correlation": close, "applies": int(close <= ASSUMED), "fresh": p.test}
                row |= vars(each)
                rows.append({key: value for key, value in row.items() if key != "curve"})
            shares = {name: np.mean([each.curve[name].numpy() for each in found], axis=0) for name in ("z", "random")}
            curves.append(pd.DataFrame(cell | {"size": SIZES} | shares))
        store.save_table("plots/unseen.csv", pd.DataFrame(rows))
        store.save_table("plots/unseen_curves.csv", pd.concat(curves))


def trained(checkpoints: Checkpoints, setting: Setting, p: UnseenSection, where: torch.device) -> dict[str, np.ndarray]:
    """One network for each seed, on its own samples, by gradient flow to the target loss."""
    checkpoint = checkpoints.of(setting, p, where)
    if saved := checkpoint.load(("w", "b", "v")):
        return saved
    data = (setting.draw(seed, setting.n, "training") for seed in p.seeds)
    x, y = (torch.from_numpy(np.stack(part).astype("f4")).to(where) for part in zip(*data, strict=True))
    start = initial(setting.d, p.width, p.init_scale, [rng(seed, "unseen init") for seed in p.seeds]).to(where)
    target = p.log10_target * math.log(10)
    try:
        net, _ = flow.train(x, y, start, loss="exponential", ln_target=target, momentum=0.0, max_steps=p.max_steps)
    except NotReached as short:
        raise BadInput(f"{STAGE}: stopped at {short}; a larger unseen.max_steps may help") from None
    arrays = {name: tensor.cpu().numpy() for name, tensor in vars(net).items()}
    if checkpoint.due():
        checkpoint.save(arrays)
    return arrays


def measured(net: TwoLayer, setting: Setting, p: UnseenSection, seed: int) -> Unseen:
    """What fresh samples say of one network."""

    def samples(drawn: tuple[np.ndarray, np.ndarray]) -> Samples:
        return Samples(*map(torch.from_numpy, drawn))

    u = torch.from_numpy(rng(seed, "unseen direction").standard_normal(setting.d))
    return unseen(
        net,
        samples(setting.draw(seed, setting.n, "training")),
        samples(setting.draw(seed, p.test, "fresh")),
        samples(setting.draw_centres(seed)),
        p.attacked,
        u,
        torch.from_numpy(math.sqrt(setting.d / setting.k) * SIZES),
    )


if __name__ == "__main__":
    run(main, UnseenParams)
