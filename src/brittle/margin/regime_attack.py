"""VYS Thm 4.1 where it applies: the proof's own z, the proof line by line, and how c falls as samples are added."""

from __future__ import annotations

import pandas as pd
import torch

from brittle.attacks.universal import thm41
from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.margin.kkt_params import KKTParams
from brittle.margin.params import MarginParams
from brittle.margin.regime import settings
from brittle.margin.theory_params import TheoryParams
from brittle.nets.two_layer import shapes, single
from brittle.probes.kkt import residuals
from brittle.probes.margin import probe
from brittle.probes.proof import proof


class Params(TheoryParams, KKTParams, MarginParams):
    """The sections on the theorem's setting, the margin and the kinks."""


def main(params: Params) -> None:
    p, slack, kink = params.theory.regime, params.margin.slack, params.kkt.kink
    every = settings(p)
    axes = {}
    for s in every:
        axes |= shapes(f"k{s.width}", f"d{s.d}", f"{s.name}.")
    nets = store.load_tensors("models/regime.safetensors", axes, s=len(p.seeds), **{f"d{s.d}": s.d for s in every})
    rows, proofs = [], []
    for setting in tracked(every, "attacking"):
        for i, seed in enumerate(p.seeds):
            x, y = (torch.from_numpy(a).double() for a in setting.draw(seed))
            net = single(nets, i, f"{setting.name}.")
            found, theorem, fitted = probe(net, x, y, slack), thm41(x, y), residuals(net, x, y, kink)
            # For a network scaled to margin 1, the theorem says y_i N(x_i - y_i z) ≤ -1.
            after = y * net((x - y[:, None] * theorem.z)[None])[0] / found.outputs.min()
            cell = {
                "world": setting.world,
                "d": setting.d,
                "m": setting.m,
                "width": setting.width,
                "init_scale": setting.init_scale,
                "law": int(setting.law),
                "seed": seed,
            }
            rows.append(
                cell
                | {
                    "applies": int(theorem.applies),
                    "z_norm": float(theorem.z.norm()),
                    "z_bound": theorem.bound,
                    "largest_after": float(after.max()),
                    "flipped": float((after < 0).double().mean()),
                    "c": found.c,
                    "on_margin": float(found.margin.double().mean()),
                    "kkt": fitted.stationarity,
                }
            )
            if theorem.applies:
                lines = proof(net, x, y, fitted.pulls)
                proofs += [cell | {"kkt": fitted.stationarity} | row for row in lines.rows()]
    store.save_table("plots/regime.csv", pd.DataFrame(rows))
    store.save_table("plots/proof.csv", pd.DataFrame(proofs))


if __name__ == "__main__":
    run(main, Params)
