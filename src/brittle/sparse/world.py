"""The sparse coding model that the parameters describe."""

from __future__ import annotations

from brittle.core.rng import rng
from brittle.sparse.params import Sparse
from brittle.worlds.sparse_coding import DICTIONARIES, SparseCoding, labelling


def draw_world(p: Sparse) -> SparseCoding:
    """Draw the dictionary and labelling of the distribution that the parameters describe."""
    return SparseCoding(
        dictionary=DICTIONARIES[p.dictionary](p.d, p.words, rng(p.seed, "dictionary")),
        w_star=labelling(p.words, p.spread, rng(p.seed, "labelling")),
        **shape(p),
    )


def shape(p: Sparse) -> dict[str, float]:
    """The parameters of the distribution besides its dictionary and labelling."""
    return {name: getattr(p, name) for name in ("k", "c1", "c2", "sigma_x", "spikes", "spike_size", "margin")}
