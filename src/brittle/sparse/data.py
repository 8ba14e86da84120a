"""Draw the sparse coding model of FP §2: the dictionary, the labelling, and samples to test on.

Training draws fresh samples in every step: the population limit of the paper's N = poly(d) samples.
"""

from __future__ import annotations

from brittle.core import store
from brittle.core.rng import rng
from brittle.core.stage import run
from brittle.sparse import settings
from brittle.sparse.params import SparseParams
from brittle.sparse.world import draw_world


def main(params: SparseParams) -> None:
    p = params.sparse
    world = draw_world(p)
    x, y = world.draw(p.test, rng(p.seed, "sparse test"))
    store.save_tensors(settings.DATA, {"dictionary": world.dictionary, "w_star": world.w_star, "x": x, "y": y})


if __name__ == "__main__":
    run(main, SparseParams)
