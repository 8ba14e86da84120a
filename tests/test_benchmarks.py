"""Every benchmark runs, at a tiny size; how fast anything is, is not tested."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from conftest import ENV, ROOT

BENCHMARKS = ROOT / "benchmarks"
sys.path.append(str(BENCHMARKS))  # as for the benchmarks themselves, which import one another

import gpu_counts
import gpu_paper
from bars import FILE, Result
from pretend_cuda import COMPILER
from run import scripts

HELPERS = {"bars.py", "command.py", "gpu_counts.py", "gpu_paper.py", "run.py", "settings.py", "textbook.py"}
MADE_UP = """
import sys

from bars import bar

if __name__ == "__main__":
    print("got", sys.argv[1:])
    {}
"""


def run(script: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(script), *options]
    return subprocess.run(
        command, cwd=ROOT, env=ENV | environment, capture_output=True, text=True, timeout=600, check=False
    )


def folder_of(folder: Path, **bodies: str) -> Path:
    """A folder with run.py, what it needs, and made-up scripts that do this."""
    for name in ("bars.py", "command.py", "run.py"):
        shutil.copy(BENCHMARKS / name, folder)
    for name, body in bodies.items():
        (folder / f"{name}.py").write_text(MADE_UP.format(body))
    return folder / "run.py"


def table(out: str) -> list[list[str]]:
    """The cells of the table's rows, the empty ones left out."""
    lines = out.splitlines()
    (head,) = (i for i, line in enumerate(lines) if line.split() == ["script", "what", "value", "bar"])
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[head + 1 :]]


def test_no_benchmark_is_left_out() -> None:
    assert {path.name for path in BENCHMARKS.glob("*.py")} == {path.name for path in scripts(BENCHMARKS)} | HELPERS


@pytest.mark.parametrize("script", scripts(BENCHMARKS), ids=lambda path: path.stem)
def test_every_benchmark_runs(script: Path, tmp_path: Path) -> None:
    bars = tmp_path / "bars.jsonl"
    done = run(script, "--tiny", **{FILE: str(bars)})
    assert done.returncode == 0, done.stdout + done.stderr
    results = [Result(**json.loads(line)) for line in bars.read_text().splitlines()]
    assert results
    for result in results:
        assert f"  {result.what}: {result.shown}" in done.stdout
        assert math.isfinite(result.value), result.what
        assert script.stem != "gpu" or result.held is not False, result.what  # counts, whatever the machine


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to pretend a GPU with")
@pytest.mark.parametrize("chapter", ["margin", "slabs", "sparse", "pictures"])
def test_what_a_gpu_is_asked_for_lies_on_a_straight_line_through_two_small_sizes(chapter: str) -> None:
    work = next(work for work in gpu_paper.chapters("tiny")[chapter] if work.size > max(work.small))
    line, counted = work.on_a_line(), gpu_counts.count(partial(work.take, work.size), 1)
    assert line.launches == counted.launches > 0
    np.testing.assert_allclose(line.kernels, counted.kernels, rtol=1e-9)


def test_the_hours_of_a_gpu_are_predicted_by_chapter() -> None:
    done = run(BENCHMARKS / "gpu.py", "--paper", "--tiny")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    found = {row[0]: float(row[1].replace(",", "")) for row in rows if row and row[-1] == "h"}
    assert found.keys() == {"margin", "slabs", "sparse", "pictures"}
    assert all(updates > 0 for updates in found.values())


@pytest.mark.parametrize("name", ["run.py", "contention.py"])
def test_a_wrong_argument_is_named_in_one_line(name: str) -> None:
    done = run(BENCHMARKS / name, "--tinny")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"{name}: unrecognized arguments: --tinny\n"


def test_a_script_that_fails_is_in_the_table_and_the_others_run(tmp_path: Path) -> None:
    program = folder_of(
        tmp_path,
        first="bar('before it broke', 3.14159, unit='s'); sys.exit(7)",
        second="bar('speed', 12, at_least=10)",
        third="pass",
    )
    done = run(program, "--tiny")
    assert done.returncode == 1
    assert table(done.stdout) == [
        ["first.py", "before it broke", "3.14 s"],
        ["first.py", "exit code 7", "failed"],
        ["second.py", "speed", "12 ×", "≥ 10 ×", "held"],
        ["third.py", "recorded nothing", "failed"],
    ]
    assert done.stdout.count("got ['--tiny']") == 3
    assert "  speed: 12 × (bar ≥ 10 ×): yes" in done.stdout


def test_a_missed_bar_gives_exit_code_1(tmp_path: Path) -> None:
    program = folder_of(tmp_path, one="bar('slow', 9.99, at_least=10); bar('off', float('nan'), at_most=2, unit='%')")
    done = run(program)
    assert done.returncode == 1
    assert table(done.stdout) == [
        ["one.py", "slow", "9.99 ×", "≥ 10 ×", "missed"],
        ["one.py", "off", "nan %", "≤ 2 %", "missed"],
    ]
    assert "  slow: 9.99 × (bar ≥ 10 ×): NO" in done.stdout


def test_bars_that_hold_give_exit_code_0(tmp_path: Path) -> None:
    program = folder_of(
        tmp_path, one="bar('mere information', 20, or_more=True); bar('both', 1234, at_least=1000, at_most=2000)"
    )
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert table(done.stdout) == [
        ["one.py", "mere information", "≥ 20 ×"],
        ["one.py", "both", "1,234 ×", "≥ 1,000 ×, ≤ 2,000 ×", "held"],
    ]
