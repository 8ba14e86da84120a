"""Draw the slab worlds that the networks of SB are trained on (§3.1, Appendix B)."""

from __future__ import annotations

import pandas as pd

from brittle import store
from brittle.params.slabs import AllSlabsParams
from brittle.stages import slabs
from brittle.stages.run import run

SHOWN = 1000  # samples of each world in the figures


def main(params: AllSlabsParams) -> None:
    p = params.slabs
    shown = {}
    for part, worlds in slabs.needed(params).items():
        for (name, d), n in worlds.items():
            arrays = slabs.draw(p, name, d, n)
            store.save_tensors(slabs.path(part, name, d), arrays)
            if d == p.d:
                u = arrays["x_test"][:SHOWN] @ arrays["q"][:2].T  # the simple feature and one of the others
                columns = {"world": name, "label": arrays["y_test"][:SHOWN], "simple": u[:, 0], "complex": u[:, 1]}
                shown[name] = pd.DataFrame(columns)
    store.save_table("plots/slabs_samples.csv", pd.concat(shown.values()))


if __name__ == "__main__":
    run(main, AllSlabsParams)
