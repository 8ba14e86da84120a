"""The workflow for those who fork the project: it fits GitHub's schema, and runs what there is to run."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from conftest import ENV, ROOT, Repo

FILE = ROOT / ".github/workflows/test.yml"
CHECK = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]


def check(file: Path) -> int:
    return subprocess.run([*CHECK, str(file)], env=ENV, capture_output=True).returncode


def test_it_fits_the_schema() -> None:
    assert check(FILE) == 0


@pytest.mark.parametrize(
    ("right", "wrong"), [("runs-on", "runs_on"), ("    steps:", "    step:"), ("matrix:", "matrx: [")]
)
def test_the_check_notices_what_does_not(right: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "test.yml").write_text(FILE.read_text().replace(right, wrong))
    assert check(tmp_path / "test.yml") != 0


def test_it_runs_the_pythons_that_are_supported_and_targets_that_exist() -> None:
    workflow = YAML(typ="safe").load(FILE)
    pythons = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f">={pythons[0]},<3.{int(pythons[-1].split('.')[1]) + 1}" == wanted
    assert pythons == ["3.11", "3.12", "3.13"]
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    targets = re.findall(r"^make (\w+)", "\n".join(commands), re.MULTILINE)
    assert sorted(targets) == ["env", "test"]
    assert all(re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE) for target in targets)


def test_no_name_of_a_branch_is_run_as_code() -> None:
    workflow = YAML(typ="safe").load(FILE)
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", "")


def test_the_comment_says_what_changed(tmp_path: Path) -> None:
    """The step's own lines, in a repository with two commits."""
    repo = Repo(tmp_path)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").touch()
    repo.run("git", "init", "--quiet")
    repo.run("dvc", "init", "--quiet")
    (tmp_path / "dvc.yaml").write_text("metrics: [m.json]\n")
    for c in (2.5, 2.75):
        (tmp_path / "m.json").write_text(f'{{"c": {c}}}\n')
        repo.commit(str(c))
    steps = YAML(typ="safe").load(FILE)["jobs"]["metrics"]["steps"]
    (compare,) = (step["run"] for step in steps if "dvc metrics diff" in step.get("run", ""))
    repo.run("bash", "-euo", "pipefail", "-c", "export BASE=HEAD~1 HEAD=HEAD\n" + compare)
    comment = (tmp_path / "comment.md").read_text()
    assert comment.startswith("### What this change does to the metrics\n\n|")
    assert re.search(r"\| m\.json +\| c +\| 2\.5 +\| 2\.75 +\| 0\.25 +\|", comment)
