"""Judge every claim by its rule, from the tables that the other stages wrote."""

from __future__ import annotations

from brittle.core import store
from brittle.core.params import TopLevel
from brittle.core.stage import run
from brittle.report.papers import PAPERS
from brittle.verdicts import judged


def main(params: TopLevel) -> None:
    paths = sorted({path for paper in PAPERS for claim in paper.claims for path in claim.reads})
    claims = judged(PAPERS, {path: store.load_table(path, []) for path in paths})
    store.save_table("plots/claims.csv", claims)
    flat = {}
    for claim in claims.itertuples():
        flat |= {f"{claim.id}.verdict": claim.verdict, f"{claim.id}.value": float(claim.value)}
    # A hundred numbers would hide the others in `dvc exp show`: the metric is the number of claims with each verdict.
    store.save_metrics("metrics/claims.json", flat)
    counts = claims["verdict"].value_counts()
    names = {"reproduced": "reproduced", "differs": "differ", "not run at this scale": "not_run"}
    store.save_metrics("metrics/scoreboard.json", {f"claims.{n}": int(counts.get(v, 0)) for v, n in names.items()})


if __name__ == "__main__":
    run(main, TopLevel)
