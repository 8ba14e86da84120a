"""How near to a KKT point the networks are along training, with σ' fixed and with σ' free at the kinks."""

from __future__ import annotations

import pandas as pd
import torch

from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.margin.draws import draws
from brittle.margin.kkt_params import KKTParams
from brittle.margin.params import MarginParams
from brittle.nets.two_layer import single
from brittle.probes.kkt import residuals
from brittle.probes.margin import probe


class Params(KKTParams, MarginParams):
    """The sections on the networks and on the margin."""


def main(params: Params) -> None:
    p, slack = params.kkt, params.margin.slack
    levels = sorted(p.log10_levels, reverse=True)
    sizes = {"r": len(p.init_scales), "s": len(p.seeds), "k": p.width, "d": p.d}
    shapes = {f"{level}.{n}": "r s k d" if n == "w" else "r s k" for level in levels for n in ("w", "b", "v")}
    stored = store.load_tensors("models/kkt.safetensors", shapes, **sizes)
    data = [torch.from_numpy(a).double() for a in draws(p.d, p.m, p.seeds)]
    cells = [(level, r, i) for level in levels for r in range(len(p.init_scales)) for i in range(len(p.seeds))]
    rows = []
    for level, r, i in tracked(cells, "measuring"):
        net = single({name: stored[f"{level}.{name}"][r] for name in ("w", "b", "v")}, i)
        x, y = data[0][i], data[1][i]
        fixed, free, found = residuals(net, x, y), residuals(net, x, y, p.kink), probe(net, x, y, slack)
        rows.append(
            {
                "log10_loss": level,
                "init_scale": p.init_scales[r],
                "seed": p.seeds[i],
                "d": p.d,
                "m": p.m,
                "width": p.width,
                "fixed": fixed.stationarity,
                "free": free.stationarity,
                "kink": p.kink,
                "slackness": free.slackness,
                "kinks": free.kinks,
                "c": found.c,
                "on_margin": float(found.margin.double().mean()),
            }
        )
    store.save_table("plots/kkt.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    run(main, Params)
