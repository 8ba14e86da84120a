"""Two runs side by side, in real repositories: branches, experiments, the workspace, and sides that lack files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from brittle.compare.__main__ import main
from brittle.core.errors import BadInput
from conftest import Repo

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 120"><rect width="{}" height="120"/></svg>\n'
CLAIMS = "id,verdict,by,says,rests_on,run_measured\n"
UNKNOWN = "nowhere: is not known to Git here; must be a branch, a tag, a commit, an experiment, or workspace"
SAYS = "one vector <b>flips</b> all"


def write(folder: Path, d: int, c: float, verdict: str, width: int) -> None:
    """A run's results."""
    for name in ("metrics", "plots"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "params.yaml").write_text(f"d: {d}\nmargin:\n  slack: 1.1\n  world: sphere\n")
    (folder / "metrics/margin.json").write_text(json.dumps({"margin.c": c, "margin.m": 8, "none": None}))
    (folder / "plots/seeds.csv").write_text(f"seed,c\n0,{c}\n1,5\n1,5\n")
    (folder / "plots/same.csv").write_text("a,b\n1,2\n")
    claims = (
        f'M1,reproduced,run,the same,plots/same.csv,\nM6,{verdict},run,"{SAYS}",plots/seeds.csv plots/same.csv,c {c}\n'
    )
    (folder / "plots/claims.csv").write_text(CLAIMS + claims)
    (folder / "plots/margin_flipped.svg").write_text(SVG.format(width))
    (folder / "plots/kept.svg").write_text(SVG.format(7))


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """`main` and `other`, at `main`, with a change that is not committed."""
    repo = Repo(tmp_path / "brittle")
    repo.path.mkdir()
    repo.run("git", "init", "--quiet", "--initial-branch", "main")
    write(repo.path, 100, 2.5, "reproduced", 10)
    repo.commit("main")
    repo.run("git", "checkout", "--quiet", "-b", "other")
    write(repo.path, 500, 2.75, "undecided", 20)
    repo.commit("other")
    repo.run("git", "checkout", "--quiet", "main")
    monkeypatch.chdir(repo.path)
    return repo


def state(repo: Repo) -> str:
    """Every file of the working copy, and where Git is."""
    files = [path for path in sorted(repo.path.rglob("*")) if path.is_file() and ".git" not in path.parts]
    digests = [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files]
    return "\n".join([*digests, repo.run("git", "status", "--branch", "--porcelain")])


def test_branches_are_compared_without_checking_anything_out(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(repo)
    main(["main", "other"])
    assert state(repo) == before
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "d 100 500" in lines
    assert "metrics/margin.json margin.c 2.5 2.75 +0.25" in lines
    assert f"M6 reproduced → undecided {SAYS}" in lines
    assert "measured c 2.5 → c 2.75" in lines
    assert "plots/seeds.csv: 1 rows only on the left, 1 only on the right" in lines
    assert {"< 0 2.5", "> 0 2.75"} <= set(lines)
    assert "plots/margin_flipped.svg" in lines
    for same in ("margin.slack", "margin.m", "M1 ", "plots/same.csv", "plots/kept.svg"):
        assert not any(line.startswith(same) for line in lines)


def test_an_experiment_and_the_workspace_are_sides_too(repo: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    commit = repo.run("git", "rev-parse", "other").strip()
    repo.run("git", "update-ref", f"refs/exps/ab/{'0' * 38}/smaller", commit)  # as DVC stores one
    main(["smaller", "other"])
    assert "0 parameters differ" in capsys.readouterr().out
    write(repo.path, 7, 2.5, "reproduced", 10)
    main(["main"])
    out = capsys.readouterr().out
    assert "→ workspace" in out
    assert "1 parameter differs\n  d  100  7\n\n0 metrics differ" in out


def test_the_workspace_beside_the_commit_it_is_at_has_no_differences(
    repo: Repo, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["HEAD", "workspace"])
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if "differ" in line] == [
        f"0 {what} differ" for what in ("parameters", "metrics", "verdicts", "figures")
    ]


@pytest.mark.parametrize("lacking", ["params.yaml", "metrics/margin.json", "plots/claims.csv", "plots/seeds.csv"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_side_may_lack_a_file(
    repo: Repo, lacking: str, turned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.run("git", "rm", "--quiet", lacking)
    repo.run("git", "rm", "--quiet", "plots/margin_flipped.svg")
    repo.commit("without")
    main([*(["other", "main"] if turned else ["main", "other"]), "--page", str(tmp_path / "page.html")])
    out = capsys.readouterr().out
    assert f"plots/margin_flipped.svg: only on the {'left' if turned else 'right'}" in out
    assert "does not have it" in (tmp_path / "page.html").read_text()
    if lacking == "plots/seeds.csv":
        assert f"plots/seeds.csv: only on the {'left' if turned else 'right'}" in out


def test_the_page_stands_alone_and_text_of_tables_is_text(repo: Repo, tmp_path: Path) -> None:
    main(["main", "other", "--page", str(tmp_path / "page.html")])
    html = (tmp_path / "page.html").read_text()
    assert "default-src 'none'" in html
    assert html.count("<img src=") == html.count('<img src="data:image/svg+xml,') == 2
    assert "<b>" not in html
    assert "one vector &lt;b&gt;flips&lt;/b&gt; all" in html
    assert 'id="M6"' in html
    assert 'id="M1"' not in html
    assert not [id for id in (part.split('"')[0] for part in html.split(' id="')[1:]) if html.count(f' id="{id}"') > 1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["main", "nowhere"], UNKNOWN),
        (["main", "other", "--pages"], "unrecognized arguments: --pages; usage: "),
        (["broken", "main"], "params.yaml of broken ("),
    ],
)
def test_a_wrong_name_is_told_in_one_line(repo: Repo, words: list[str], told: str) -> None:
    repo.run("git", "checkout", "--quiet", "-b", "broken")
    (repo.path / "params.yaml").write_text("d: [\n")
    repo.commit("broken")
    with pytest.raises(BadInput) as wrong:
        main(words)
    assert "\n" not in str(wrong.value)
    assert str(wrong.value).startswith(told)


def test_the_command_ends_with_two(repo: Repo) -> None:
    out = repo.run("python", "-m", "brittle.compare", "main", "nowhere", fails=True)
    assert out.splitlines() == [UNKNOWN]
