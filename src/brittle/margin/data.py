"""Draw one dataset per seed for the headline experiment."""

from __future__ import annotations

import numpy as np

from brittle.core import store
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.margin.params import MarginParams
from brittle.worlds import clusters, gaussian, orthogonal, sphere


def main(params: MarginParams) -> None:
    d, m, size, spread = params.d, params.m, params.margin.clusters.size, params.margin.clusters.spread
    sample = {
        "sphere": lambda g: sphere.sample(d, m, g),
        "gaussian": lambda g: gaussian.sample(d, m, g),
        "orthogonal": lambda g: orthogonal.sample(d, m),
        "clusters": lambda g: clusters.sample(d, m, size, spread, g),
    }[params.margin.world]
    x, y = zip(*(sample(rng(seed, "margin data")) for seed in params.seeds), strict=True)
    store.save_tensors("data/margin.safetensors", {"x": np.stack(x).astype("f4"), "y": np.stack(y).astype("f4")})


if __name__ == "__main__":
    run(main, MarginParams)
