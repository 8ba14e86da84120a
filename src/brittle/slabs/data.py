"""Draw the slab worlds that the networks of SB are trained on (§3.1, Appendix B)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from brittle.core import store
from brittle.core.stage import run
from brittle.slabs import draws
from brittle.slabs.all_params import AllSlabsParams

SHOWN = 1000  # samples of each world in the figures


def main(params: AllSlabsParams) -> None:
    p = params.slabs
    shown = {}
    for part, worlds in needed(params).items():
        drawn = {(name, d): draws.draw(p, name, d, n) for (name, d), n in worlds.items()}
        draws.save_worlds(part, drawn)
        shown |= {name: some(name, arrays) for (name, d), arrays in drawn.items() if d == p.d}
    store.save_table("plots/slabs_samples.csv", pd.concat(shown.values()))


def needed(params: AllSlabsParams) -> dict[str, dict[tuple[str, int], int]]:
    """The worlds that each part of the pipeline trains on, by name and dimension, with the number of samples.

    Each part has a file of its own, so that it is retrained only if its own data have changed.
    """
    p, features, recipes, noisy, hard = (
        params.slabs,
        params.features,
        params.recipes,
        params.noisy,
        params.adversarial,
    )
    return {
        "slabs": {(name, p.d): p.samples for name in p.worlds},
        "features": {(features.world, 1 + complex): features.samples for complex in features.complex},
        "recipes": {(name, p.d): p.samples for name in (*recipes.worlds, recipes.regularised.world)},
        "noisy": {(f"noisy-lms-{noisy.k}", p.d): noisy.samples}
        | {(name, p.d - 1): noisy.samples for name in noisy.alone.worlds},
        "adversarial": {(hard.world, p.d): hard.samples},
    }


def some(name: str, arrays: dict[str, np.ndarray]) -> pd.DataFrame:
    """A few test samples: the simple feature and one of the others."""
    u = arrays["x_test"][:SHOWN] @ arrays["q"][:2].T
    columns = {"world": name, "label": arrays["y_test"][:SHOWN], "simple": u[:, 0], "complex": u[:, 1]}
    return pd.DataFrame(columns)


if __name__ == "__main__":
    run(main, AllSlabsParams)
