"""A verdict is computed from two sets of tables by one rule; the commands and pages show both."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from brittle import long_runs
from brittle.claims import shown
from brittle.probes.summary import resampled
from brittle.report.papers import PAPERS
from brittle.report.scoreboard import BEGIN, END, counts, page
from brittle.verdicts import (
    Finding,
    Found,
    at_least,
    at_most,
    best,
    disagree,
    every,
    exactly,
    judged,
    of_auc,
    of_mean,
    of_share,
    over_seeds,
    said,
    slopes,
    spread_of,
    within,
)
from claim_cases import CLAIMS
from conftest import ENV
from tables_clusters import CONFIRM as CLUSTERS
from tables_geometry import CONFIRM as GEOMETRY
from tables_margin import CONFIRM as MARGIN
from tables_networks import CONFIRM as NETWORKS
from tables_off_subspace import CONFIRM as OFF_SUBSPACE
from tables_purification import CONFIRM as PURIFICATION
from tables_slabs import CONFIRM as SLABS

CONFIRM = {**MARGIN, **SLABS, **PURIFICATION, **CLUSTERS, **NETWORKS, **GEOMETRY, **OFF_SUBSPACE}
NOTHING = Found({})


# --- Verdicts


def finding(*checks: object, premises: tuple = (), needs: tuple = ()) -> str:
    return Finding(0.0, "", "", checks, premises, needs).verdict


def test_a_verdict_is_what_its_checks_say() -> None:
    yes, no = at_least("a", 2.0, 1.0, 0.1), at_least("b", 0.0, 1.0, 0.1)
    barely, hardly = at_least("c", 1.05, 1.0, 0.1), at_least("d", 0.95, 1.0, 0.1)
    alone = at_least("e", 2.0, 1.0, math.nan)
    assert finding(yes) == "reproduced"
    assert finding(yes, no) == "differs"
    assert finding(no, hardly) == "differs"  # one that fails for sure is enough
    for unsure in (barely, hardly, alone):
        assert finding(yes, unsure) == "undecided"
    assert finding(yes, premises=(no,)) == finding(no, premises=(hardly,)) == "premise not met"
    assert finding(yes, premises=(barely,)) == "undecided"
    assert finding(yes, needs=("a cell",)) == finding(no, premises=(no,), needs=("a cell",)) == "not run"
    assert finding() == "explored"


def test_a_check_knows_its_distance_in_spreads() -> None:
    assert at_most("a", 3.0, 1.0, 0.5).distance == -4
    assert at_least("a", 3.0, 1.0, 0.5).distance == 4
    assert within("a", 0.3, 0.4, 0.6, 0.05).distance == pytest.approx(-2)
    assert within("a", 0.58, 0.4, 0.6, 0.01).distance == pytest.approx(2)
    assert at_most("a", math.inf, 1.0, math.nan).distance == -math.inf
    assert not at_least("a", math.nan, 1.0, 0.1).holds  # no number is no success
    assert exactly("a", True).distance == math.inf
    assert at_most("a", 1.0, 1.0, 0.0).certain  # equal, and without a spread
    assert said(at_most("slope", 0.3, 0.4, 0.05)) == "slope = 0.3, asked for ≤ 0.4; spread 0.05: 2.0 spreads inside"
    assert said(at_most("slope", 0.5, 0.4, math.nan)).endswith("spread not known: fewer than 3 seeds")


def test_the_deciding_check_is_the_one_that_the_verdict_hangs_on() -> None:
    sure, near, bad = at_most("sure", 0, 9, 1.0), at_most("near", 0.5, 1, 0.9), at_most("bad", 5, 1, 1.0)
    worse = at_most("worse", 5, 1, 0.1)
    assert Finding(0, "", "", [sure, at_most("less", 0, 3, 1.0)]).deciding.name == "less"
    assert Finding(0, "", "", [sure, near]).deciding.name == "near"
    assert Finding(0, "", "", [sure, bad, worse]).deciding.name == "worse"
    assert Finding(0, "", "", [sure, near, bad]).deciding.name == "bad"  # what is unsure does not decide
    alone = at_most("alone", 0, 9, math.nan)
    assert Finding(0, "", "", [sure, near, alone]).deciding.name == "alone"
    assert Finding(0, "", "", [sure], premises=[bad]).deciding.name == "bad"
    assert Finding(0, "", "").deciding is None


def test_the_worst_row_decides_with_the_spread_of_its_own_cell() -> None:
    t = pd.DataFrame({"cell": list("aaabbb"), "x": [1.0, 1.1, 1.2, 5.0, 6.0, 7.0]})
    check = every(t, "x", at_most, 6.5, cells=["cell"])
    assert (check.value, check.spread, check.holds) == (7.0, 1.0, False)
    assert check.rows["x"].tolist() == [7.0]


def test_seeds_too_few_in_a_cell_are_pooled_over_cells_if_there_are_enough() -> None:
    t = pd.DataFrame({"cell": list("aabbc"), "x": [0.0, 2.0, 10.0, 14.0, 3.0]})
    assert over_seeds(t, "x", ["cell"], t.iloc[4]) == pytest.approx(math.sqrt((2.0 + 8.0) / 2))
    assert math.isnan(over_seeds(t.iloc[[0, 1, 4]], "x", ["cell"], t.iloc[4]))  # one degree of freedom
    assert math.isnan(spread_of([1.0, 2.0]))
    assert spread_of([1.0, 2.0, 3.0]) == 1.0
    assert of_mean([1.0, 2.0, 3.0]) == pytest.approx(1 / math.sqrt(3))


@given(share=st.integers(0, 40).map(lambda k: k / 40))
def test_the_spread_of_a_share_is_about_that_of_resampling(share: float) -> None:
    sample = np.arange(40) < share * 40
    assert of_share(share, 40) == pytest.approx(resampled(sample, np.mean), abs=0.045)
    assert of_share(share, 40) > 0


def test_the_spread_of_an_area_is_about_that_of_drawing_again() -> None:
    rng, label = np.random.default_rng(0), np.repeat([0, 1], 100)
    for shift in (0.0, 0.5, 1.5):
        areas = [roc_auc_score(label, rng.normal(size=200) + shift * label) for _ in range(400)]
        assert of_auc(float(np.mean(areas)), 200) == pytest.approx(np.std(areas), rel=0.15)


def test_a_slope_has_the_spread_of_the_seeds_mean() -> None:
    t = pd.DataFrame([{"d": d, "seed": s, "c": d ** (0.3 + 0.1 * s)} for d in (10, 100, 1000) for s in range(3)])
    rate, spread = slopes(t, "d", "c")
    assert rate == pytest.approx(0.4)
    assert spread == pytest.approx(0.1 / math.sqrt(3))


# --- Two scales, one rule


def test_the_evidence_counts_where_it_has_what_the_rule_asks_for() -> None:
    claims = judged(PAPERS, Found(CONFIRM), NOTHING).set_index("id")
    assert set(claims["evidence_verdict"]) == {"not run"}
    assert set(claims["by"]) == {"run"}
    spoiled = {**CONFIRM, "plots/sweep.csv": CONFIRM["plots/sweep.csv"].assign(on_margin=0.5)}
    both = judged(PAPERS, Found(CONFIRM), Found(spoiled)).set_index("id")
    assert (both.loc["M7", "verdict"], both.loc["M7", "by"]) == ("differs", "evidence")
    assert (both.loc["M7", "run_verdict"], both.loc["M6", "verdict"]) == ("reproduced", "reproduced")
    assert best("differs", "premise not met") == "evidence"
    assert best("differs", "not run") == "run"


def test_a_disagreement_of_the_two_scales_is_shown() -> None:
    assert disagree("reproduced", "differs")
    assert not any(disagree("reproduced", other) for other in ("reproduced", "not run", "undecided", "premise not met"))
    spoiled = {**CONFIRM, "plots/sweep.csv": CONFIRM["plots/sweep.csv"].assign(on_margin=0.5)}
    claims = judged(PAPERS, Found(CONFIRM), Found(spoiled))
    text = shown(claims[claims["id"] == "M7"], 100)
    assert "the two scales disagree" in text
    assert re.search(r"this run  reproduced: .*\n.*evidence  differs: ", text, re.DOTALL)
    assert "the two scales disagree on M7." in counts(claims)


def test_questions_are_never_counted_with_the_claims() -> None:
    claims = judged(PAPERS, Found(CONFIRM), NOTHING)
    assert set(claims.loc[claims["question"] == 1, "verdict"]) == {"explored"}
    assert "explored" not in set(claims.loc[claims["question"] == 0, "verdict"])
    numbers = [int(n) for line in counts(claims).splitlines()[2:6] for n in re.findall(r"\| (\d+) ", line)]
    assert sum(numbers) == (claims["question"] == 0).sum()
    assert f"{(claims['question'] == 1).sum()} questions that the papers leave open" in counts(claims)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_a_claim_says_all_that_a_referee_asks_for(claim: object) -> None:
    for words in (claim.says, claim.paper, claim.rule, claim.source):
        assert words.strip()
    assert all(path.startswith("plots/") and path.endswith(".csv") for path in claim.reads)
    assert not claim.judged(NOTHING).checks


def test_every_claim_is_there_once() -> None:
    numbers = {"M": range(1, 20), "S": range(1, 19), "P": range(1, 21)}
    numbers |= {"F": range(1, 4), "V": range(1, 5), "A": range(1, 5)}
    numbers |= {letter: range(1, 3) for letter in "OKHT"} | {"X": range(1, 4)}
    names = [f"{letter}{i}" for letter, those in numbers.items() for i in those]
    names[names.index("S12") : names.index("S12") + 1] = ["S12a", "S12b"]
    assert list(CLAIMS) == names
    assert sum(len(paper.claims) for paper in PAPERS) == len(CLAIMS)


def test_the_committed_verdicts_are_what_the_rules_say_of_the_committed_tables(committed: Path) -> None:
    verdicts = json.loads((committed / "metrics/claims.json").read_text())
    paths = {path for claim in CLAIMS.values() for path in claim.reads}
    run = Found({path: pd.read_csv(committed / path) for path in paths})
    for row in judged(PAPERS, run, Found(long_runs.tables(paths, committed / "evidence"))).to_dict("records"):
        assert verdicts[f"{row['id']}.verdict"] == row["verdict"]
        for name in ("run", "evidence"):
            assert verdicts[f"{row['id']}.{name}.verdict"] == row[f"{name}_verdict"]
            value, kept = row[f"{name}_value"], verdicts[f"{row['id']}.{name}.value"]
            assert kept == pytest.approx(value, rel=1e-4) if math.isfinite(value) else kept is None


def test_verdicts_are_read_without_the_libraries_that_training_needs() -> None:
    """They take seconds to load."""
    slow = {"torch", "scipy.stats", "sklearn", "matplotlib"}
    code = f"import sys, brittle.claims; print(sorted({slow} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_the_command_prints_every_claim_with_its_verdicts_and_their_scale(committed: Path) -> None:
    command = [sys.executable, "-m", "brittle.claims"]
    env = ENV | {"COLUMNS": "100"}
    out = subprocess.run(command, cwd=committed, env=env, capture_output=True, text=True, check=True).stdout
    *blocks, counts = re.split(r"^(?=[A-Z]\d+[ab]? )|\n\n", out.strip(), flags=re.MULTILINE)[1:]
    table = pd.read_csv(committed / "plots/claims.csv", keep_default_na=False)
    for claim, block in zip(table.to_dict("records"), blocks, strict=True):
        first, run, evidence, *apart = block.splitlines()
        assert first.split(maxsplit=1)[0] == claim["id"]
        assert first.removeprefix(f"{claim['id']:5}") == f"{claim['verdict']:16} {claim['says']}"
        assert run.startswith(f"     this run  {claim['run_verdict']}")
        assert evidence.startswith(f"     evidence  {claim['evidence_verdict']}")
        assert apart == ["     !         the two scales disagree"] * disagree(
            claim["run_verdict"], claim["evidence_verdict"]
        )
        assert all(
            line.endswith((" …", claim[f"{name}_scale"])) for name, line in (("run", run), ("evidence", evidence))
        )
        assert max(len(run), len(evidence)) <= 100
    command.append("--count")
    assert (
        subprocess.run(command, cwd=committed, env=env, capture_output=True, text=True).stdout.strip() == counts.strip()
    )


def test_the_command_prints_a_claim_in_full_with_what_it_rests_on(committed: Path) -> None:
    command = [sys.executable, "-m", "brittle.claims", *CLAIMS]
    out = subprocess.run(command, cwd=committed, env=ENV, capture_output=True, text=True, check=True).stdout
    parts = re.split(r"^(?=[A-Z]\d+[ab]? )", out, flags=re.MULTILINE)
    blocks = {part.split()[0]: " ".join(part.split()) for part in parts if part.strip()}
    for claim in CLAIMS.values():
        for words in (f"({claim.source}; by the ", f"rule {claim.rule} rests on {' '.join(claim.reads)}", claim.says):
            assert " ".join(words.split()) in blocks[claim.id]
        assert " this run " in blocks[claim.id]
        assert " evidence " in blocks[claim.id]
    assert out.splitlines()[-2].startswith("claims of the papers: ")
    assert out.splitlines()[-1].startswith("questions that they leave open: ")


def test_the_readme_shows_what_the_command_prints(committed: Path) -> None:
    readme = (committed / "README.md").read_text()
    ((id, block),) = re.findall(r"```\n\$ python -m brittle.claims (\w+)\n(.*?)```", readme, re.DOTALL)
    command = [sys.executable, "-m", "brittle.claims", id]
    env = ENV | {"COLUMNS": "120"}
    out = subprocess.run(command, cwd=committed, env=env, capture_output=True, text=True, check=True).stdout
    assert out.startswith(block)


def test_the_numbers_of_the_readme_are_those_of_the_committed_run(committed: Path) -> None:
    readme, run = (committed / "README.md").read_text(), json.loads((committed / "metrics/margin.json").read_text())
    (c,) = re.findall(r"margin\.json  margin\.c\.mean +([\d.]+)", readme)  # what `dvc metrics diff` prints of HEAD
    assert float(c) == pytest.approx(run["margin.c.mean"], abs=1e-5)
    (size, share) = re.findall(r"At size\s+c = ([\d.]+) .* \((\d+) % of all samples\)", readme)[0]
    assert float(size) == round(run["margin.c.mean"], 1)
    assert int(share) == round(100 * run["margin.on_margin.mean"])


def test_the_command_without_a_run_says_so_in_one_line(tmp_path: object) -> None:
    command = [sys.executable, "-m", "brittle.claims"]
    done = subprocess.run(command, cwd=str(tmp_path), env=ENV, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "plots/claims.csv: is missing; `dvc repro` makes it, `dvc pull` fetches it\n"


def test_the_scoreboard_wraps_to_the_terminal() -> None:
    board = shown(judged(PAPERS, Found(CONFIRM), NOTHING), 80)
    assert max(len(line) for line in board.splitlines() if line.startswith("     ")) <= 80


def write_readme(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "brittle.claims", *(arguments or ["--write"])]
    return subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True)


@pytest.fixture
def copied(tmp_path: Path, committed: Path) -> Path:
    """README.md, docs/claims.md and plots/claims.csv, to be changed."""
    for name in ("README.md", "docs/claims.md", "plots/claims.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(committed / name, tmp_path / name)
    return tmp_path


def test_readme_and_docs_have_the_verdicts_of_the_table(copied: Path) -> None:
    def written() -> list[bytes]:
        return [(copied / name).read_bytes() for name in ("README.md", "docs/claims.md")]

    before = written()
    assert (write_readme(copied).returncode, written()) == (0, before), "make scoreboard"
    table = copied / "plots/claims.csv"
    table.write_text(table.read_text().replace("M1,0,reproduced,", "M1,0,differs,"))
    write_readme(copied)
    readme, docs = (text.decode() for text in written())
    assert "| differs |" in re.search(r"^\| M1 \|.*$", docs, re.MULTILINE)[0]
    for text in (readme, docs):
        assert re.search(r"^\| VYS \|.*\| M1.*$", text, re.MULTILINE)
    outside = [re.sub(f"{BEGIN}.*{END}", "", text, flags=re.DOTALL) for text in (readme, before[0].decode())]
    assert outside[0] == outside[1]


def test_one_claim_is_printed_alone(committed: Path) -> None:
    command = [sys.executable, "-m", "brittle.claims", "M6", "S2"]
    out = subprocess.run(command, cwd=committed, env=ENV, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^([MSP]\d+) ", out, re.MULTILINE) == ["M6", "S2"]


def test_the_scoreboard_counts_each_paper_and_shows_text_as_text() -> None:
    claims = judged(PAPERS, Found(CONFIRM), NOTHING).head(20)  # 19 of VYS, five of them questions, and one of SB
    claims.loc[1:2, "verdict"] = "differs"
    claims.loc[3, "verdict"] = "not run"
    claims.loc[0, "says"] = "|x| <img> w_i *\n`y`"
    assert counts(claims).splitlines()[2:4] == [
        "| VYS | 11 | 2 | 0 | 0 | 1 | M2, M3 |",
        "| SB | 1 | 0 | 0 | 0 | 0 |  |",
    ]
    (first,) = [line for line in page(claims).splitlines() if line.startswith("| M1 |")]
    assert first.startswith(r"| M1 | \|x\| &lt;img> w\_i \* \`y\` |")


@pytest.mark.parametrize("readme", ["", BEGIN, f"{END} {BEGIN}", f"{BEGIN}{BEGIN}{END}", f"{BEGIN}{END}{END}"])
def test_a_readme_without_its_two_markers_is_left_as_it_is(readme: str, copied: Path) -> None:
    (copied / "README.md").write_text(readme)
    done = write_readme(copied)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"README.md: must have {BEGIN} and, after it, {END}, each once\n"
    assert (copied / "README.md").read_text() == readme


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder: (folder / "plots/claims.csv").unlink(), "plots/claims.csv: is missing; "),
        (lambda folder: (folder / "plots/claims.csv").write_text("id\nM1\n"), "plots/claims.csv: has no column "),
        (lambda folder: (folder / "README.md").write_bytes(b"\xff"), "README.md: cannot be read: "),
        (lambda folder: (folder / "README.md").unlink(), "README.md: cannot be read: "),
    ],
    ids=["no table", "another table", "not text", "no readme"],
)
def test_a_spoiled_scoreboard_is_said_in_one_line(spoil: Callable, says: str, copied: Path) -> None:
    spoil(copied)
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    done = write_readme(copied)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before


def test_an_argument_that_means_nothing_is_said_in_one_line(copied: Path) -> None:
    done = write_readme(copied, "--writ")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "--writ: is not a claim; give some of M1 … X3 (also with --why), --count, --write, or nothing\n"
    )


def test_why_shows_every_number_and_the_rows_that_decided(committed: Path) -> None:
    command = [sys.executable, "-m", "brittle.claims", "M7", "--why"]
    out = subprocess.run(command, cwd=committed, env=ENV, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^M7 on (the tables of this run|the evidence): ", out, re.MULTILINE) == [
        "the tables of this run",
        "the evidence",
    ]
    assert out.count("rule: share on the margin at α = 0.5") == 2
    assert "on_margin" in out
    done = write_readme(committed, "--why")
    assert (done.returncode, done.stderr) == (2, "--why: say of which claims, for example M6 --why\n")
