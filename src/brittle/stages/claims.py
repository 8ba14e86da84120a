"""Judge every claim by its rule, from the tables that the other stages wrote."""

from __future__ import annotations

from brittle import store
from brittle.claims.all import PAPERS
from brittle.claims.base import judged
from brittle.params.headline import Headline
from brittle.stages.run import run


def main(params: Headline) -> None:
    paths = sorted({path for paper in PAPERS for claim in paper.claims for path in claim.reads})
    claims = judged(PAPERS, {path: store.load_table(path, []) for path in paths})
    store.save_table("plots/claims.csv", claims)
    flat = {}
    for claim in claims.itertuples():
        flat |= {f"{claim.id}.verdict": claim.verdict, f"{claim.id}.value": float(claim.value)}
    store.save_metrics("metrics/claims.json", flat)


if __name__ == "__main__":
    run(main, Headline)
