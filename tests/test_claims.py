"""A verdict is computed from the tables by its rule, and a spoiled table changes it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable

import pandas as pd
import pytest

from brittle.claims.__main__ import scoreboard
from brittle.claims.all import PAPERS
from brittle.claims.base import judged
from conftest import ENV, ROOT

CLAIMS = {claim.id: claim for paper in PAPERS for claim in paper.claims}


def table(**columns: object) -> pd.DataFrame:
    return pd.DataFrame(columns)


# Small tables on which every rule holds.
CONFIRM: dict[str, pd.DataFrame] = {
    "plots/theory_robust.csv": table(
        d=100, m=10, seed=[0, 1], bound=2.0, certified=[4.0, 4.1], smallest_output=1.0, beaten=0
    ),
    "plots/theory_lemma.csv": table(d=100, m=10, draw=[0, 1], largest=[0.2, 0.3], half=0.5, log=0.46),
    "plots/theory_example.csv": table(d=[16, 64], certified_error=1e-9, z_norm_error=0.0, twin_error=1e-12),
    "plots/regime.csv": table(
        world=["orthogonal", "orthogonal", "sphere"],
        d=[60, 60, 100],
        m=[20, 5, 2],
        seed=0,
        applies=1,
        z_norm=[8.0, 18.0, 40.0],
        z_bound=[88.0, 220.0, 360.0],
        largest_after=[-2.5, -2.2, -3.0],
        c=[1.75, 3.5, 7.0],
        kkt=0.02,
    ),
    "plots/kkt.csv": table(
        log10_loss=[-2, -30, -2, -30],
        init_scale=[1.0, 1.0, 0.1, 0.1],
        seed=0,
        d=50,
        m=50,
        width=300,
        kink=1e-3,
        fixed=[0.9, 0.5, 0.6, 0.4],
        free=[0.9, 0.08, 0.5, 0.05],
        slackness=0.01,
    ),
    "plots/sweep.csv": table(
        alpha=[0.5, 0.5, 1.0, 1.0],
        d=[100, 200, 100, 200],
        m=[10, 14, 100, 200],
        width=1000,
        seed=0,
        c=[4.5, 5.4, 2.3, 2.4],
        sqrt_d=[10.0, 14.1, 10.0, 14.1],
        on_margin=[1.0, 1.0, 0.96, 0.95],
    ),
    "docs/paper-scale/grid.csv": table(
        figure=["1a", "1a", "1b", "1b"],
        alpha=[0.5, 1.0, 1.0, 1.0],
        d=100,
        width=[1000, 1000, 100, 8000],
        c=[4.5, 2.3, 2.3, 2.4],
        sqrt_d=10.0,
        on_margin=[1.0, 0.96, 0.96, 0.95],
    ),
    "plots/widths.csv": table(d=100, width=[100, 1000], seed=0, c=[2.3, 2.4]),
    "plots/variants.csv": table(
        world=["sphere", "sphere", "gaussian", "clusters"],
        loss=["exponential", "logistic", "exponential", "exponential"],
        seed=0,
        d=100,
        m=100,
        c=[2.3, 2.3, 0.23, 4.5],
        c_over_norm=[0.23, 0.231, 0.228, 0.45],
        on_margin=[0.96, 0.96, 0.95, 0.1],
        margin_size=[96, 96, 95, 10],
    ),
    "plots/transfer.csv": table(
        width=[200, 1000],
        loss=["exponential", "logistic"],
        init=[0, 1],
        own_c=[2.3, 2.4],
        shared_c=[2.3, 2.5],
        flipped=[1.0, 0.97],
    ),
    "plots/certify.csv": table(
        network=["trained", "thm31"], d=100, seed=0, certified=[1.49, 3.27], attacked=[1.5, 3.27], beaten=0
    ),
    "plots/optimisers.csv": table(
        rule=["gd", "muon", "gd"],
        depth=[2, 2, 3],
        seed=0,
        d=100,
        m=100,
        c=[2.3, 4.8, 2.5],
        on_margin=[0.96, 1.0, 0.95],
        kkt=[0.7, 0.9, float("nan")],
    ),
}


def scaled(column: str, factor: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda t: t.assign(**{column: t[column] * factor})


def one(column: str, value: float, row: int = -1) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """One row changed: enough to refute a rule that says "every"."""

    def change(t: pd.DataFrame) -> pd.DataFrame:
        t = t.copy()
        t[column] = t[column].astype(float)
        t.loc[t.index[row], column] = value
        return t

    return change


INF = float("inf")
REFUTE = [
    ("M1", one("certified", 1.9)),
    ("M1", one("smallest_output", 0.5)),
    ("M1", one("beaten", 1)),
    ("M2", one("largest", 0.47)),
    ("M2", one("largest", 0.6)),
    ("M3", one("largest_after", -0.9)),
    ("M3", one("z_norm", 1000)),
    ("M4", one("certified_error", 2e-5)),
    ("M4", one("z_norm_error", 2e-5)),
    ("M4", one("twin_error", 2e-5)),
    ("M5", one("free", 0.11)),
    ("M5", one("free", 0.06, row=0)),  # it rises
    ("M6", one("c", 14.2)),
    ("M6", one("c", INF)),
    ("M7", one("on_margin", 0.99, row=0)),
    ("M7", one("on_margin", 0.91)),
    ("M8", one("c", 2.6)),
    ("M8", one("c", INF)),
    ("M9", one("c_over_norm", 0.26, row=1)),
    ("M9", one("on_margin", 0.8, row=2)),
    ("M9", scaled("c_over_norm", INF)),
    ("M10", one("flipped", 0.94)),
    ("M10", one("own_c", INF)),
    ("M11", one("margin_size", 100)),
    ("M11", one("c", 10.5)),
    ("M12", lambda t: t.assign(c=t["d"] / t["m"])),
    ("M12", one("c", INF, row=0)),
    ("M13", one("beaten", 1)),
    ("M13", one("certified", 3.3)),
    ("M14", one("c", 11.0, row=1)),
    ("M15", one("c", INF)),
]


def verdict(id: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> str:
    path = CLAIMS[id].reads[0]
    return CLAIMS[id].judge(CONFIRM | {path: change(CONFIRM[path])}).verdict


@pytest.mark.parametrize("id", CLAIMS)
def test_numbers_that_confirm_a_claim_are_seen(id: str) -> None:
    assert verdict(id, lambda t: t) == "reproduced"


@pytest.mark.parametrize(("id", "change"), REFUTE)
def test_numbers_that_refute_a_claim_are_seen(id: str, change: Callable) -> None:
    assert verdict(id, change) == "differs"


@pytest.mark.parametrize(
    ("id", "cut"),
    [
        ("M2", lambda t: t.assign(d=50)),
        ("M3", lambda t: t.assign(applies=0)),
        ("M5", lambda t: t[t["log10_loss"] == -30]),
        ("M7", lambda t: t[t["alpha"] > 0.5]),
        ("M8", lambda t: t[:1]),
        ("M12", lambda t: t[:1]),
    ],
)
def test_a_scale_that_leaves_nothing_to_look_at_is_said(id: str, cut: Callable) -> None:
    assert verdict(id, cut) == "not run at this scale"


def test_every_claim_of_the_margin_paper_is_there_once() -> None:
    assert list(CLAIMS) == [f"M{i}" for i in range(1, 16)]
    assert sum(len(paper.claims) for paper in PAPERS) == len(CLAIMS)


def test_the_committed_verdicts_are_what_the_rules_say_of_the_committed_tables() -> None:
    committed = json.loads((ROOT / "metrics/claims.json").read_text())
    tables = {path: pd.read_csv(ROOT / path) for claim in CLAIMS.values() for path in claim.reads}
    for row in judged(PAPERS, tables).itertuples():
        assert committed[f"{row.id}.verdict"] == row.verdict
        assert committed[f"{row.id}.value"] == pytest.approx(row.value, rel=1e-5)


def test_the_command_prints_every_claim_with_what_it_rests_on() -> None:
    command = [sys.executable, "-m", "brittle.claims"]
    out = subprocess.run(command, cwd=ROOT, env=ENV, capture_output=True, text=True, check=True).stdout
    for claim in CLAIMS.values():
        (line,) = re.findall(rf"^{claim.id} .*$", out, re.MULTILINE)
        assert claim.source in line
        assert any(verdict in line for verdict in ("reproduced", "differs", "not run"))
        assert claim.rule.split()[0] in out
        assert claim.reads[0] in out
    assert out.splitlines()[-1].count("reproduced") == 1


def test_the_command_without_a_run_says_so_in_one_line(tmp_path: object) -> None:
    command = [sys.executable, "-m", "brittle.claims"]
    done = subprocess.run(command, cwd=str(tmp_path), env=ENV, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "plots/claims.csv: is missing; `dvc repro` makes it, `dvc pull` fetches it\n"


def test_the_scoreboard_wraps_to_the_terminal() -> None:
    board = scoreboard(judged(PAPERS, CONFIRM), 80)
    assert max(len(line) for line in board.splitlines() if line.startswith("     ")) <= 80
