"""The bracket [certified, attacked] of every sample: the trained network beside Thm 3.1's on the same data."""

from __future__ import annotations

import pandas as pd
import torch

from brittle.attacks.nearest_boundary import NAMES, best
from brittle.attacks.universal import z_direction
from brittle.core import store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.margin.certify_params import CertifyParams
from brittle.margin.variants import headline
from brittle.margin.variants_params import VariantsParams
from brittle.nets.robust_construction import thm31
from brittle.nets.two_layer import shapes, single
from brittle.probes.certify import certified


class Params(CertifyParams, VariantsParams):
    """The sections on the certificates and on the networks."""


def main(params: Params) -> None:
    p, samples = params.variants, params.certify.samples
    variant = headline(p)[0]  # the headline experiment itself
    prefix = f"{variant.name}."
    nets = store.load_tensors("models/variants.safetensors", shapes(prefix=prefix), s=len(p.seeds), d=p.d)
    tables = []
    for i in tracked(range(min(params.certify.nets, len(p.seeds))), "certifying"):
        x, y = (torch.from_numpy(a).double() for a in variant.draw(p, p.seeds[i]))
        for kind, net in (("trained", single(nets, i, prefix)), ("thm31", thm31(x, y))):
            xs, ys = x[:samples], y[:samples]
            lower, upper = certified(net, xs, ys), best(net, xs, ys, z_direction(x, y))
            columns = {"crown": lower.crown, "quadratic": lower.quadratic, "certified": lower.radius}
            columns |= dict(zip(NAMES, upper.sizes, strict=True)) | {"attacked": upper.size}
            table = pd.DataFrame({name: tensor.numpy() for name, tensor in columns.items()})
            table["beaten"] = (upper.size < lower.radius).int().numpy()  # before the table rounds them
            table.insert(0, "sample", range(len(ys)))
            table.insert(0, "seed", p.seeds[i])
            table.insert(0, "d", p.d)
            table.insert(0, "network", kind)
            tables.append(table.assign(exact=lower.exact.int().numpy()))
    store.save_table("plots/certify.csv", pd.concat(tables))


if __name__ == "__main__":
    run(main, Params)
