"""Draw the sparse coding model of FP §2: the dictionary, the labelling, and samples to test on.

Training draws fresh samples of its own in every step: the population's limit of the paper's N = poly(d).
"""

from __future__ import annotations

from brittle import store
from brittle.params.sparse import SparseParams
from brittle.rng import rng
from brittle.stages import sparse
from brittle.stages.run import run


def main(params: SparseParams) -> None:
    p = params.sparse
    world = sparse.draw_world(p)
    x, y = world.draw(p.test, rng(p.seed, "sparse test"))
    store.save_tensors(sparse.DATA, {"dictionary": world.dictionary, "w_star": world.w_star, "x": x, "y": y})


if __name__ == "__main__":
    run(main, SparseParams)
