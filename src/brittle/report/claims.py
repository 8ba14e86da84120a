"""Judge every claim by its rule, on the tables of this run and on those of long runs (evidence/)."""

from __future__ import annotations

from brittle import long_runs
from brittle.core import store
from brittle.core.params import TopLevel
from brittle.core.stage import run
from brittle.report.papers import PAPERS
from brittle.verdicts import SETS, VERDICTS, Found, judged


def read_tables() -> tuple[Found, Found]:
    """The tables that the claims read: this run's, and those of long runs."""
    paths = sorted({path for paper in PAPERS for claim in paper.claims for path in claim.reads})
    return Found({path: store.load_table(path, []) for path in paths}), Found(long_runs.tables(paths))


def main(params: TopLevel) -> None:
    claims = judged(PAPERS, *read_tables())
    store.save_table("plots/claims.csv", claims)
    flat = {}
    for claim in claims.to_dict("records"):
        flat |= {f"{claim['id']}.{key}": claim[key] for key in ("verdict", "by")}
        for name in SETS:
            verdict, value = claim[f"{name}_verdict"], claim[f"{name}_value"]
            flat |= {f"{claim['id']}.{name}.verdict": verdict, f"{claim['id']}.{name}.value": float(value)}
            flat[f"{claim['id']}.{name}.distance"] = float(claim[f"{name}_distance"])
    # Hundreds of numbers would hide the others in `dvc exp show`: the metric is how many claims have each verdict.
    store.save_metrics("metrics/claims.json", flat)
    papers = claims[claims["question"] == 0]
    names = [verdict for verdict in VERDICTS if verdict != "explored"]
    counts = {f"claims.{name.replace(' ', '_')}": int((papers["verdict"] == name).sum()) for name in names}
    counts["questions.explored"] = int((claims["verdict"] == "explored").sum())
    for name in SETS:
        counts[f"claims.{name}.reproduced"] = int((papers[f"{name}_verdict"] == "reproduced").sum())
    store.save_metrics("metrics/scoreboard.json", counts)


if __name__ == "__main__":
    run(main, TopLevel)
